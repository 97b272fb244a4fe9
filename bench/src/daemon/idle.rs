//! A daemon that has done its work and has nothing to do: how much of a processor it takes, and whether a thread of its store wakes.

use std::time::Duration;

use anyhow::Result;

use super::load;
use super::process::{DaemonProcess, Dispatch};
use super::report::{Bound, Line};
use super::{CALLERS, Place};

const BELOW_PERCENT: f64 = 0.1;
const JOBS_BEFORE: usize = 2_000;
/// What is under way comes to its end first: the last checkpoint, the last kept connection.
const SETTLE: Duration = Duration::from_secs(3);

/// Two lines: the processor, and the store.
pub fn measure(place: &Place, seconds: u64) -> Result<[Line; 2]> {
    let data_dir = place.fresh("idle")?;
    let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::On)?;
    load::runtime()?.block_on(load::create_and_finish(&daemon.address, CALLERS, JOBS_BEFORE))?;
    std::thread::sleep(SETTLE);
    let before = daemon.usage()?;
    let watched = Duration::from_secs(seconds);
    std::thread::sleep(watched);
    let after = daemon.usage()?;
    let spent = Duration::from_nanos(after.nanoseconds - before.nanoseconds);
    let percent = spent.as_secs_f64() / watched.as_secs_f64() * 100.0;
    let wakes = after.store_wakes - before.store_wakes;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let figure = wakes as f64;
    Ok([
        Line {
            what: format!("idle for {seconds} s, processor time in percent"),
            measured: format!("{:.2} ms", spent.as_secs_f64() * 1_000.0),
            against: format!("{seconds} s"),
            figure: percent,
            bound: Bound::Below(BELOW_PERCENT),
        },
        Line {
            what: format!("idle for {seconds} s, how often a thread of the store woke"),
            measured: wakes.to_string(),
            against: "0".to_owned(),
            figure,
            bound: Bound::AtMost(0.0),
        },
    ])
}
