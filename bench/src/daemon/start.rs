//! From the start of the process to the line that says that it is ready: on a store with many finished jobs, beside an empty one.
//! The files are out of the system's cache each time.

use std::path::Path;

use anyhow::Result;
use measure::disk::out_of_the_cache;

use super::process::{DaemonProcess, Dispatch};
use super::report::{Bound, Line, middle};
use super::{Place, ROUNDS};
use crate::cycle;

/// Of the time on an empty store.
const TIMES: f64 = 3.0;
const PLUS_SECONDS: f64 = 0.2;
const PREPARING_CALLERS: usize = 256;

/// The two take turns.
pub fn measure(place: &Place, finished: usize) -> Result<Line> {
    let full = place.fresh("start-full")?;
    let path = full.join("longhaul.sqlite");
    place.runtime.block_on(cycle::run(&path, PREPARING_CALLERS, finished.max(PREPARING_CALLERS)))?;
    let empty = place.fresh("start-empty")?;
    // Once before: the first start makes the store and the token.
    for data_dir in [&full, &empty] {
        drop(DaemonProcess::start(&place.binary, data_dir, Dispatch::On)?);
    }
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push((ready_after(place, &full)?, ready_after(place, &empty)?));
    }
    let share = |(full, empty): &(f64, f64)| full / (TIMES * empty + PLUS_SECONDS);
    let (full, empty) = middle(rounds, share);
    Ok(Line {
        what: format!(
            "cold start with {finished} finished jobs, and {TIMES} times an empty one ({:.0} ms) plus 200 ms",
            empty * 1_000.0
        ),
        measured: format!("{:.0} ms", full * 1_000.0),
        against: format!("{:.0} ms", (TIMES * empty + PLUS_SECONDS) * 1_000.0),
        figure: share(&(full, empty)),
        bound: Bound::AtMost(1.0),
    })
}

fn ready_after(place: &Place, data_dir: &Path) -> Result<f64> {
    out_of_the_cache(data_dir)?;
    Ok(DaemonProcess::start(&place.binary, data_dir, Dispatch::On)?.ready_after.as_secs_f64())
}
