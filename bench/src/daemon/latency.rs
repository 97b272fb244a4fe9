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
use super::report::{Bound, Line, percentile};
use super::{Place, ROUNDS};
use crate::cycle;

const COMMITS: f64 = 10.0;
/// Jobs per round.
const JOBS: usize = 300;
/// Long enough for a job to be over and everything to be quiet again.
const PAUSE: Duration = Duration::from_millis(10);

/// A commit and a job take turns.
pub fn measure(place: &Place) -> Result<Line> {
    let data_dir = place.fresh("latency")?;
    let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::On)?;
    let path = place.fresh("latency-commits")?.join("longhaul.sqlite");
    let engine = cycle::engine(Arc::new(SqliteStore::open(&SqliteOptions::at(&path))?));
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
        rounds.push((percentile(&mut starts, 99), percentile(&mut starts, 50), percentile(&mut commits, 50)));
    }
    let (p99, p50, commit) = super::report::middle(rounds, |(p99, _, commit)| p99 / commit);
    Ok(Line {
        what: format!(
            "from the request to the start of a no-op at idle, p99 (p50 {:.2} ms), and one commit, p50",
            p50 * 1_000.0
        ),
        measured: format!("{:.2} ms", p99 * 1_000.0),
        against: format!("{:.2} ms", commit * 1_000.0),
        figure: p99 / commit,
        bound: Bound::Below(COMMITS),
    })
}

/// No-op jobs one after the other on a daemon that does nothing else: the middle of their times, in seconds.
pub async fn alone(address: &Address, jobs: usize) -> Result<f64> {
    let mut connection = Connection::to(address).await?;
    let mut starts = Vec::with_capacity(jobs);
    for _ in 0..jobs {
        starts.push(one(&mut connection).await?);
    }
    Ok(percentile(&mut starts, 50))
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
