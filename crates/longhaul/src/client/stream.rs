//! The facts of one job: those that there are, and more as they come, read from `/facts/stream`.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use api::FactList;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Call, CallError, Client, job_path, segment};

/// Twice the daemon's heartbeat: a connection that is silent for longer is dead.
const SILENT_FOR: Duration = Duration::from_secs(30);
/// Facts read at once.
const PAGE: usize = api::limits::MAX_PAGE;
/// One event: a fact and its payload.
const MAX_LINE_BYTES: u64 = 4 * 1_048_576;

/// The stream of a job's facts, from a position on.
pub struct Facts {
    lines: BufReader<Box<dyn Read>>,
}

/// One event of it: a fact with its place, or word of the work outside, which has none.
#[derive(Debug, Deserialize)]
pub struct Told {
    pub position: Option<u64>,
    pub stream: Option<String>,
    pub kind: Option<String>,
    pub at: Option<String>,
    pub payload: Option<Box<RawValue>>,
}

impl Client {
    /// All facts of a job, oldest first, page by page.
    pub fn pages_of_facts(&self, id: &str) -> impl Iterator<Item = Result<FactList<'static>, CallError>> {
        let mut next = Some(String::new());
        std::iter::from_fn(move || {
            let path = job_path(id, &format!("/facts?limit={PAGE}{}", next.take()?));
            let page: Result<FactList<'static>, _> = self.call(Call::get(&path));
            if let Ok(FactList { next_cursor: Some(cursor), .. }) = &page {
                next = Some(format!("&cursor={}", segment(cursor)));
            }
            Some(page)
        })
    }

    /// Opens the stream of a job after this position, for at most so long.
    pub fn facts_after(&self, id: &str, position: u64, within: Option<Duration>) -> Result<Facts, CallError> {
        let path = format!("/facts/stream?job={}&after={position}", segment(id));
        self.facts(&path, within)
    }

    /// Opens the stream of everything that happens after this position.
    pub fn ledger_after(&self, position: u64) -> Result<Facts, CallError> {
        self.facts(&format!("/facts/stream?after={position}"), None)
    }

    fn facts(&self, path: &str, within: Option<Duration>) -> Result<Facts, CallError> {
        let request = self.request(&Call::get(path))?;
        let configured = self.agent.configure_request(request).timeout_per_read(Some(SILENT_FOR));
        let request = configured.timeout_global(within).build();
        let response = self.agent.run(request).map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            let closed = || CallError::Unintelligible("the stream did not open".to_owned());
            return Err(self.read(response).err().unwrap_or_else(closed));
        }
        let reader = response.into_body().into_with_config().limit(u64::MAX).reader();
        Ok(Facts { lines: BufReader::new(Box::new(reader)) })
    }
}

impl Facts {
    /// What is told next; nothing when the stream has ended, for whatever reason: it is opened again then.
    pub fn next(&mut self) -> Option<Told> {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.lines.by_ref().take(MAX_LINE_BYTES).read_line(&mut line);
            if !matches!(read, Ok(1..)) {
                return None;
            }
            if let Some(text) = line.strip_prefix("data:")
                && let Ok(told) = serde_json::from_str(text)
            {
                return Some(told);
            }
        }
    }
}
