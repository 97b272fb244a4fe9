//! Creates jobs over kept connections: for a time or up to a number, one by one or in batches, now or due later.
//!
//! Each job says in its title, in microseconds, when it was asked for or is due: from there its lateness is counted.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use super::{Settings, now};
use crate::daemon::connection::Connection;
use crate::daemon::process::{Address, Dispatch};

/// What the title of a job begins with.
pub const TITLE: &str = "render the cover ";
/// The most jobs of one order: more is a mistake.
const MAX_JOBS: usize = 10_000_000;

#[derive(Deserialize)]
pub struct Enqueue {
    /// As many as this, if it says so.
    jobs: Option<usize>,
    /// For so long, if it says so.
    seconds: Option<f64>,
    /// Who ask at the same time.
    clients: usize,
    /// Jobs in one request.
    batch: usize,
    /// A pause after each request, between these.
    pause_ms: Option<[f64; 2]>,
    /// Due from this second since 1970 on, evenly spread over so many.
    due: Option<[f64; 2]>,
    /// The worker that is running; without one a daemon is started that takes no jobs.
    server: Option<Address>,
}

/// What all clients take from.
struct Left {
    taken: Cell<usize>,
    jobs: usize,
    until: Option<Instant>,
}

impl Left {
    /// The number of the first of a request's jobs, and how many it may create.
    fn take(&self, batch: usize) -> Option<(usize, usize)> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let first = self.taken.get();
        let count = batch.min(self.jobs - first);
        self.taken.set(first + count);
        (count > 0).then_some((first, count))
    }
}

pub async fn run(settings: &Settings, enqueue: &Enqueue) -> Result<Value> {
    let (address, _own) = match &enqueue.server {
        Some(address) => (address.clone(), None),
        None => {
            let daemon = settings.start(Dispatch::Off)?;
            (daemon.address.clone(), Some(daemon))
        }
    };
    let mut connections = Vec::with_capacity(enqueue.clients);
    for _ in 0..enqueue.clients {
        connections.push(Connection::to(&address).await?);
    }
    let (began, begin) = (now(), Instant::now());
    let left = Rc::new(Left {
        taken: Cell::new(0),
        jobs: enqueue.jobs.unwrap_or(MAX_JOBS),
        until: enqueue.seconds.map(|seconds| begin + Duration::from_secs_f64(seconds)),
    });
    let tasks = LocalSet::new();
    let clients: Vec<_> = connections
        .into_iter()
        .map(|connection| {
            tasks.spawn_local(client(connection, left.clone(), enqueue.batch, enqueue.pause_ms, enqueue.due))
        })
        .collect();
    tasks.await;
    for client in clients {
        client.await??;
    }
    Ok(json!({ "jobs": left.taken.get(), "began": began, "ended": now() }))
}

async fn client(
    mut connection: Connection,
    left: Rc<Left>,
    batch: usize,
    pause_ms: Option<[f64; 2]>,
    due: Option<[f64; 2]>,
) -> Result<()> {
    while let Some((first, count)) = left.take(batch) {
        let body: Vec<String> =
            (first..first + count).map(|number| job(due.map(|due| due_at(due, number, left.jobs)))).collect();
        if batch == 1 {
            connection.post("/jobs", &body[0]).await?;
        } else {
            let answer =
                connection.post("/jobs/batch", &format!("{{\"jobs\":[{}]}}", body.join(","))).await?;
            let verdict: Verdict = serde_json::from_slice(answer)?;
            ensure!(verdict.accepted == count, "{} of {count} jobs were accepted", verdict.accepted);
        }
        if let Some([least, most]) = pause_ms {
            let pause = least + (most - least) * share(first);
            tokio::time::sleep(Duration::from_secs_f64(pause / 1_000.0)).await;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Verdict {
    accepted: usize,
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn due_at([from, within]: [f64; 2], number: usize, jobs: usize) -> f64 {
    from + within * number as f64 / jobs as f64
}

/// A number from 0 to 1 that looks like chance and is the same in every run.
#[allow(clippy::cast_precision_loss, reason = "a pause need not be exact")]
fn share(number: usize) -> f64 {
    (number.wrapping_mul(2_654_435_761) % 1_000) as f64 / 1_000.0
}

/// The same job as in the bench of the daemon.
#[allow(clippy::cast_possible_truncation, reason = "the present is far from the end of 64 bits")]
fn job(due_at: Option<f64>) -> String {
    let micros = (due_at.unwrap_or_else(now) * 1e6) as i64;
    let due = match due_at.and_then(|_| jiff::Timestamp::from_microsecond(micros).ok()) {
        Some(due) => format!(r#","due_at":"{due}""#),
        None => String::new(),
    };
    format!(
        r#"{{"title":"{TITLE}{micros}","executor":"noop","input":{{"url":"https://example.org/a/b/c","width":1280,"height":720,"format":"png"}},"retry":{{"max_attempts":3,"backoff_seconds":1,"max_backoff_seconds":60}}{due}}}"#
    )
}
