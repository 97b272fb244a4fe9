//! Looks at everything after a round: exports the ledger and verifies the store in processes of their own, reads the service's ledger,
//! asks over HTTP, and lets the checks judge.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::checks::{self, Start};
use crate::client;
use crate::finding::Finding;
use crate::history::History;
use crate::kind::Kind;
use crate::plan::Sending;
use crate::process::Binary;
use crate::random::Draw;
use crate::stage::{ANSWER_WITHIN, Stage};
use crate::wire::{Request, Sent, send};

pub const VIEWS: &str = "views equal replay";
/// For one look at the whole store.
const LOOK_WITHIN: Duration = Duration::from_mins(5);
/// Keys that are asked for again after each round, and at the end.
const SAMPLE: u64 = 6;
const LAST_SAMPLE: u64 = 600;
/// The service may have been killed a moment ago.
const MOST_ASKS: usize = 20;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What was touched since the last time.
    Touched,
    /// Everything, from the beginning.
    Full,
    /// Everything, and many are asked again.
    Last,
}

/// Whoever looks.
pub struct Inspector<'a> {
    pub binary: &'a Binary,
    pub stage: &'a Stage,
    /// What names the store to `verify` and `export`.
    pub store: Vec<OsString>,
    pub history: History,
    pub draw: Draw,
    /// Where `verify --since` begins.
    verified: u64,
    /// How long looks took.
    pub looked_for: Duration,
    pub verified_records: u64,
}

impl<'a> Inspector<'a> {
    pub fn new(binary: &'a Binary, stage: &'a Stage, store: Vec<OsString>) -> Self {
        let draw = Draw::of(stage.seed, "looks");
        Self {
            binary,
            stage,
            store,
            history: History::default(),
            draw,
            verified: 0,
            looked_for: Duration::ZERO,
            verified_records: 0,
        }
    }

    /// What should not be.
    pub fn look(&mut self, extent: Extent, service: Option<&str>) -> Result<Vec<Finding>> {
        let began = Instant::now();
        // Before the ledger is read: it must have at least what was there by then.
        let until = self.stage.oracle().moment();
        let effects = std::fs::read_to_string(&self.stage.effects)?;
        let starts = service.map(starts).transpose()?.flatten();
        self.read_ledger(extent)?;
        let mut found = self.verify(extent)?;
        self.sample(extent);
        let mut oracle = self.stage.oracle();
        found.extend(oracle.take_findings());
        found.extend(checks::all(&oracle, &self.history, until));
        found.extend(checks::no_attempt_runs_twice(&effects, &self.history));
        if let Some(starts) = starts {
            found.extend(checks::accepted_starts(&starts, &oracle, &self.history));
        }
        self.looked_for += began.elapsed();
        Ok(found)
    }

    /// Goes on with the ledger, or reads it anew: a stream that has gone is only missed by who looks at everything.
    pub fn read_ledger(&mut self, extent: Extent) -> Result<()> {
        if extent != Extent::Touched {
            self.history = History::default();
        }
        let after = self.history.position.to_string();
        let output = self.run(&["export", "facts", "--after", &after])?;
        if !output.status.success() {
            anyhow::bail!("export fails: {}", String::from_utf8_lossy(&output.stderr));
        }
        self.history.take(&String::from_utf8_lossy(&output.stdout));
        Ok(())
    }

    pub fn verify(&mut self, extent: Extent) -> Result<Vec<Finding>> {
        let since = self.verified.to_string();
        let output = match extent {
            Extent::Touched => self.run(&["verify", "--since", &since])?,
            Extent::Full | Extent::Last => self.run(&["verify"])?,
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let differs = text.lines().filter_map(|line| line.strip_prefix("differs: "));
        let mut found: Vec<Finding> = differs
            .map(|line| {
                let (record, what) = line.split_once(": ").unwrap_or((line, ""));
                Finding::new(VIEWS, record, what)
            })
            .collect();
        if !output.status.success() && found.is_empty() {
            found.push(Finding::new(VIEWS, "the store", String::from_utf8_lossy(&output.stderr)));
        }
        if let Some(position) = text.lines().last().and_then(|line| line.rsplit(' ').next()?.parse().ok())
            && extent == Extent::Touched
        {
            self.verified = position;
        }
        let records = text
            .lines()
            .find_map(|line| line.split(" facts, ").nth(1)?.split(' ').next()?.parse::<u64>().ok());
        self.verified_records += records.unwrap_or_default();
        Ok(found)
    }

    /// Some that were accepted before are asked for again, and looked at.
    fn sample(&mut self, extent: Extent) {
        let keys: Vec<String> = {
            let oracle = self.stage.oracle();
            // Of work that fails until it is retried the end may change between a client's look and ours.
            let settled =
                oracle.entries().filter(|(_, entry)| entry.id().is_some() && entry.kind != Kind::Failing);
            settled.map(|(key, _)| key.to_owned()).collect()
        };
        let count = if extent == Extent::Last { LAST_SAMPLE } else { SAMPLE };
        for _ in 0..count.min(keys.len() as u64) {
            if self.stage.is_over() {
                break;
            }
            if let Some(key) = self.draw.one(&keys) {
                client::create(self.stage, key, Sending::Whole);
                client::look(self.stage, key);
            }
        }
    }

    fn run(&self, arguments: &[&str]) -> Result<std::process::Output> {
        let arguments: Vec<OsString> =
            arguments.iter().map(OsString::from).chain(self.store.iter().cloned()).collect();
        self.binary.output(&arguments, LOOK_WITHIN)
    }
}

/// Every start that the service has accepted; nothing if it is down.
fn starts(url: &str) -> Result<Option<Vec<Start>>> {
    let request = Request { method: "GET", path: "/ledger", key: None, body: None, within: ANSWER_WITHIN };
    for _ in 0..MOST_ASKS {
        let Sent::Answered(answer) = send(url, "", &request, Sending::Whole) else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let ledger = answer.json();
        let starts = ledger["starts"].as_array().context("the service has a ledger")?;
        let start = |start: &serde_json::Value| Start {
            key: start["key"].as_str().map(str::to_owned),
            job: start["input"]["result"]["drill"].as_str().unwrap_or_default().to_owned(),
        };
        return Ok(Some(starts.iter().map(start).collect()));
    }
    Ok(None)
}

/// What names a store to `verify` and `export`.
pub fn store_of(database: Option<&str>, dir: &Path) -> Vec<OsString> {
    match database {
        Some(address) => vec!["--database".into(), address.into()],
        None => vec!["--data-dir".into(), dir.into()],
    }
}
