//! One lane is full and very many due jobs wait in it; how fast the jobs of another lane go, beside a daemon whose full lane has
//! nothing waiting.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use api::FactList;
use serde::Deserialize;
use store_sql::{Durability, SqliteOptions, SqliteStore};

use super::connection::Connection;
use super::load;
use super::process::{Address, DaemonProcess, Dispatch};
use super::report::{Bound, Line, middle, percentile};
use super::{CALLERS, Place, ROUNDS};
use crate::cycle;

/// The lane that is full: each of its jobs takes longer than the bench.
const FULL: &str = "slow";
const FOR_LONG: &[u8] = br#"{"seconds":86400}"#;
/// What its executor does at the same time.
const SLOTS: usize = 16;
/// As fast as without, but for the moods of the machine.
const AT_LEAST: f64 = 0.8;
const AT_MOST: f64 = 1.25;
const PREPARING_CALLERS: usize = 512;
/// Jobs one after the other, per round.
const ALONE: usize = 100;
/// Long enough for a job to be over and everything to be quiet again.
const PAUSE: Duration = Duration::from_millis(10);

/// Two lines: jobs per second, and the time of one job alone.
pub fn measure(place: &Place, jobs: usize, waiting: usize) -> Result<[Line; 2]> {
    let with = prepare(place, "lanes-with", waiting + SLOTS)?;
    let without = prepare(place, "lanes-without", SLOTS)?;
    let with = DaemonProcess::start(&place.binary, &with, Dispatch::On)?;
    let without = DaemonProcess::start(&place.binary, &without, Dispatch::On)?;
    let (mut rates, mut times) = (Vec::new(), Vec::new());
    let runtime = load::runtime()?;
    for _ in 0..ROUNDS {
        let rate = |daemon: &DaemonProcess| {
            runtime.block_on(load::create_and_finish(&daemon.address, CALLERS, jobs))
        };
        rates.push((rate(&with)?, rate(&without)?));
        times.push(runtime.block_on(in_turns(&with.address, &without.address, ALONE))?);
    }
    // Its jobs would keep a graceful stop waiting.
    with.kill()?;
    without.kill()?;
    let ratio = |(with, without): &(f64, f64)| with / without;
    let (rates, times) = (middle(rates, ratio), middle(times, ratio));
    Ok([
        Line {
            what: format!(
                "no-op jobs to their end beside {waiting} due jobs in a full lane, and beside none"
            ),
            measured: format!("{:.0}/s", rates.0),
            against: format!("{:.0}/s", rates.1),
            figure: ratio(&rates),
            bound: Bound::AtLeast(AT_LEAST),
        },
        Line {
            what: format!("one no-op alone beside {waiting} due jobs in a full lane, p50, and beside none"),
            measured: format!("{:.2} ms", times.0 * 1_000.0),
            against: format!("{:.2} ms", times.1 * 1_000.0),
            figure: ratio(&times),
            bound: Bound::AtMost(AT_MOST),
        },
    ])
}

/// A store with this many due jobs in the lane.
fn prepare(place: &Place, name: &str, jobs: usize) -> Result<PathBuf> {
    let data_dir = place.fresh(name)?;
    let options = SqliteOptions {
        durability: Durability::Relaxed,
        ..SqliteOptions::at(data_dir.join("longhaul.sqlite"))
    };
    let engine = cycle::engine(Arc::new(SqliteStore::open(&options)?));
    place.runtime.block_on(cycle::create_many(&engine, PREPARING_CALLERS, jobs, FULL, FOR_LONG))?;
    Ok(data_dir)
}

/// No-op jobs one after the other on two daemons in turns: the middle of their times, in seconds.
async fn in_turns(one_daemon: &Address, other: &Address, jobs: usize) -> Result<(f64, f64)> {
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

/// Seconds from the request to the result of one job: both ends are times of one machine.
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
