//! Follows one job: its status now and after every change, told by the stream of its facts and never by asking again and again.
//!
//! A daemon that goes away meanwhile is waited for: the job is durable, and whoever waits for it should not notice a restart.

use std::time::{Duration, Instant};

use anyhow::Result;
use api::JobStatus;

use super::{CallError, Client, Connection};
use crate::exit::{Failed, TIMED_OUT};

/// How long a daemon that has gone away may take to come back.
const BACK_WITHIN: Duration = Duration::from_secs(30);
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// How a job ended.
pub const ENDS: [&str; 5] = ["completed", "failed", "cancelled", "expired", "unavailable"];

/// Shows the status now and after every change, until the job is over: its last status. A time that is over first is a failure.
pub fn follow(
    connection: &Connection,
    id: &str,
    within: Option<Duration>,
    look: &mut dyn FnMut(&JobStatus<'_>),
) -> Result<JobStatus<'static>> {
    let until = within.map(|within| Instant::now() + within);
    let mut client = connection.client()?;
    let mut position = newest_position(&client, id).map_err(|error| Failed::job("follow", id, error))?;
    let mut gone_since: Option<Instant> = None;
    loop {
        match follow_once(&client, id, until, &mut position, look) {
            Ok(Some(status)) => return Ok(status),
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
            Err(error) => return Err(Failed::job("follow", id, error).into()),
        }
        if is_over(until) {
            let message = "the time is over; the job goes on".to_owned();
            return Err(Failed { code: TIMED_OUT, message }.into());
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
    look: &mut dyn FnMut(&JobStatus<'_>),
) -> Result<Option<JobStatus<'static>>, CallError> {
    let mut seen = |client: &Client| -> Result<Option<JobStatus<'static>>, CallError> {
        let status = client.status(id)?;
        look(&status);
        Ok(ENDS.contains(&&*status.state).then_some(status))
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

/// Where the job's newest fact is in the ledger.
fn newest_position(client: &Client, id: &str) -> Result<u64, CallError> {
    let mut position = 0;
    for page in client.pages_of_facts(id) {
        position = page?.facts.last().map_or(position, |last| last.position);
    }
    Ok(position)
}

fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}
