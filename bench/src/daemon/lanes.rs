//! One lane is full and very many due jobs wait in it; how fast the jobs of another lane go, beside a daemon whose full lane has
//! nothing waiting.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use store_sql::{Durability, SqliteOptions, SqliteStore};

use super::process::{DaemonProcess, Dispatch};
use super::report::{Bound, Line, middle};
use super::{CALLERS, Place, ROUNDS};
use super::{latency, load};
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
        times.push(runtime.block_on(latency::in_turns(&with.address, &without.address, ALONE))?);
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
