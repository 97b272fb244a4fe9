//! How soon a no-op job begins when nothing else is going on, in commits of the same disk.
//!
//! The clock runs from before the request is sent until the daemon decides on the result, which is after the start: three commits
//! lie between. Both ends are times of one machine.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use api::FactList;
use serde::Deserialize;
use store_sql::{SqliteOptions, SqliteStore};

use super::connection::Connection;
use super::load;
use super::process::{Address, DaemonProcess, Dispatch};
use super::report::{Bound, Line, middle, percentile};
use super::{CALLERS, Place, ROUNDS};
use crate::cycle;

const COMMITS: f64 = 10.0;
/// Jobs per round.
const JOBS: usize = 300;
/// Both logs have their size before: a log that grows is slower to sync than one that is written over.
const JOBS_BEFORE: usize = 3_000;
/// Long enough for a job to be over and everything to be quiet again.
const PAUSE: Duration = Duration::from_millis(10);

/// Seconds.
struct Spread {
    p50: f64,
    p99: f64,
}

impl Spread {
    fn of(seconds: &mut [f64]) -> Self {
        Self { p50: percentile(seconds, 50), p99: percentile(seconds, 99) }
    }
}

/// A commit and a job take turns.
pub fn measure(place: &Place) -> Result<Line> {
    let data_dir = place.fresh("latency")?;
    let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::On)?;
    let path = place.fresh("latency-commits")?.join("longhaul.sqlite");
    let engine = cycle::engine(Arc::new(SqliteStore::open(&SqliteOptions::at(&path))?));
    load::runtime()?.block_on(load::create_and_finish(&daemon.address, CALLERS, JOBS_BEFORE))?;
    place.runtime.block_on(cycle::create_many(
        &engine,
        CALLERS,
        JOBS_BEFORE,
        cycle::EXECUTOR,
        cycle::INPUT,
    ))?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (mut commits, mut starts) = (Vec::with_capacity(JOBS), Vec::with_capacity(JOBS));
        load::runtime()?.block_on(async {
            let mut connection = Connection::to(&daemon.address).await?;
            for _ in 0..JOBS {
                tokio::time::sleep(PAUSE).await;
                let begin = Instant::now();
                cycle::create(&engine).await?;
                commits.push(begin.elapsed().as_secs_f64());
                tokio::time::sleep(PAUSE).await;
                starts.push(one(&mut connection).await?);
            }
            anyhow::Ok(())
        })?;
        rounds.push((Spread::of(&mut starts), Spread::of(&mut commits)));
    }
    let ratio = |(start, commit): &(Spread, Spread)| start.p99 / commit.p50;
    let (start, commit) = middle(rounds, ratio);
    Ok(Line {
        what: format!(
            "from the request to the start of a no-op at idle, p99 (p50 {}), and one commit, p50 (p99 {})",
            milliseconds(start.p50),
            milliseconds(commit.p99)
        ),
        measured: milliseconds(start.p99),
        against: milliseconds(commit.p50),
        figure: ratio(&(start, commit)),
        bound: Bound::Below(COMMITS),
    })
}

/// No-op jobs one after the other on two daemons in turns: the middle of their times, in seconds.
pub async fn in_turns(one_daemon: &Address, other: &Address, jobs: usize) -> Result<(f64, f64)> {
    let mut to_one = Connection::to(one_daemon).await?;
    let mut to_other = Connection::to(other).await?;
    let (mut of_one, mut of_other) = (Vec::with_capacity(jobs), Vec::with_capacity(jobs));
    for _ in 0..jobs {
        of_one.push(one(&mut to_one).await?);
        of_other.push(one(&mut to_other).await?);
    }
    Ok((percentile(&mut of_one, 50), percentile(&mut of_other, 50)))
}

#[derive(Deserialize)]
struct Created {
    job_id: String,
}

/// Seconds from the request to the result of one job.
async fn one(connection: &mut Connection) -> Result<f64> {
    let sent = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let created: Created = serde_json::from_slice(connection.post("/jobs", load::NOOP).await?)?;
    loop {
        tokio::time::sleep(PAUSE).await;
        let facts: FactList<'_> = connection.read(&format!("/jobs/{}/facts", created.job_id)).await?;
        let last = facts.facts.last().context("a job has facts")?;
        if last.kind.starts_with("job.completed/") {
            let at: jiff::Timestamp = last.at.parse()?;
            let ended = Duration::from_micros(u64::try_from(at.as_microsecond())?);
            return Ok(ended.saturating_sub(sent).as_secs_f64());
        }
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1_000.0)
}
