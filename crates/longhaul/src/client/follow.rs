//! Follows one job: its status now and after every change, told by the stream of its facts and never by asking again and again.
//!
//! A daemon that goes away meanwhile is waited for: the job is durable, and whoever waits for it should not notice a restart.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::Result;
use api::{FactList, JobStatus, StatusAnswer};

use super::{Call, CallError, Client, Connection, job_path};
use crate::exit::Failed;

/// How long a daemon that has gone away may take to come back.
const BACK_WITHIN: Duration = Duration::from_secs(30);
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Facts read at once to find the job's newest.
const PAGE: usize = 1_000;

/// How a job ended.
pub const ENDS: [&str; 5] = ["completed", "failed", "cancelled", "expired", "unavailable"];

/// What came of following.
pub enum Followed {
    /// Whoever looked has seen enough, or the job is over: its last status.
    Over(Box<JobStatus<'static>>),
    /// The time is over first.
    TimeOver,
}

/// Shows the status now and after every change, until the job is over, `look` breaks, or the time is over.
pub fn follow(
    connection: &Connection,
    id: &str,
    within: Option<Duration>,
    look: &mut dyn FnMut(&JobStatus<'_>) -> ControlFlow<()>,
) -> Result<Followed> {
    let until = within.map(|within| Instant::now() + within);
    let mut client = connection.client()?;
    let mut position = newest_position(&client, id).map_err(|error| Failed::job("follow", id, &error))?;
    let mut gone_since: Option<Instant> = None;
    loop {
        match follow_once(&client, id, until, &mut position, look) {
            Ok(Some(status)) => return Ok(Followed::Over(Box::new(status))),
            Ok(None) => gone_since = None,
            Err(error) if error.may_pass() => {
                let since = *gone_since.get_or_insert_with(|| {
                    eprintln!("longhaul: the daemon does not answer now; waiting for it");
                    Instant::now()
                });
                if since.elapsed() > BACK_WITHIN && !is_over(until) {
                    return Err(Failed::from(error).into());
                }
            }
            Err(error) => return Err(Failed::job("follow", id, &error).into()),
        }
        if is_over(until) {
            return Ok(Followed::TimeOver);
        }
        std::thread::sleep(TRY_AGAIN_AFTER);
        // Started again it may be somewhere else; while it is stopped it is nowhere.
        if gone_since.is_some()
            && let Ok(found) = connection.client()
        {
            client = found;
        }
    }
}

/// As long as one stream lasts: the last status when there is nothing more to see, nothing when the stream has ended.
fn follow_once(
    client: &Client,
    id: &str,
    until: Option<Instant>,
    position: &mut u64,
    look: &mut dyn FnMut(&JobStatus<'_>) -> ControlFlow<()>,
) -> Result<Option<JobStatus<'static>>, CallError> {
    let mut seen = |client: &Client| -> Result<Option<JobStatus<'static>>, CallError> {
        let status = status(client, id)?;
        let enough = look(&status).is_break();
        Ok((enough || ENDS.contains(&&*status.state)).then_some(status))
    };
    if let Some(last) = seen(client)? {
        return Ok(Some(last));
    }
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) {
        return Ok(None);
    }
    let mut facts = client.facts_after(id, *position, left)?;
    while let Some(told) = facts.next() {
        *position = told.position.unwrap_or(*position);
        if let Some(last) = seen(client)? {
            return Ok(Some(last));
        }
    }
    Ok(None)
}

/// The status of a job.
fn status(client: &Client, id: &str) -> Result<JobStatus<'static>, CallError> {
    let answer: StatusAnswer<'static> = client.call(Call::get(&job_path(id, "")))?;
    Ok(answer.status)
}

/// Where the job's newest fact is in the ledger.
fn newest_position(client: &Client, id: &str) -> Result<u64, CallError> {
    let mut position = 0;
    let mut cursor = String::new();
    loop {
        let path = job_path(id, &format!("/facts?limit={PAGE}{cursor}"));
        let page: FactList<'static> = client.call(Call::get(&path))?;
        position = page.facts.last().map_or(position, |last| last.position);
        match page.next_cursor {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(position),
        }
    }
}

fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}
