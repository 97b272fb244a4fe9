//! A daemon that has done its work and has nothing to do: how much of a processor it takes, and whether its store is asked anything.

use std::time::Duration;

use anyhow::Result;

use super::http;
use crate::bench::Measured;
use crate::host::Host;
use crate::line::{Bound, Line};
use crate::site::Ground;

const BELOW_PERCENT: f64 = 0.1;
const JOBS_BEFORE: usize = 500;
/// What is under way comes to its end first: the last checkpoint, the last kept connection.
const SETTLE: Duration = Duration::from_secs(2);
/// Less than this says nothing.
const AT_LEAST: Duration = Duration::from_secs(2);

/// The processor; on a file also the store.
pub fn measure(ground: &Ground, time: Duration) -> Result<Measured> {
    let host = Host::start(ground.site()?, &[])?;
    ground.say("idle: nothing goes on");
    host.all(&http::noop(), JOBS_BEFORE)?;
    ground.wait(SETTLE)?;
    let before = host.daemon.usage()?;
    let watched = time.saturating_sub(SETTLE).max(AT_LEAST);
    ground.wait(watched)?;
    let after = host.daemon.usage()?;
    let spent = Duration::from_nanos(after.nanoseconds.saturating_sub(before.nanoseconds));
    let seconds = watched.as_secs_f64();
    let mut lines = vec![Line {
        what: format!("idle for {seconds:.0} s, processor time in percent"),
        measured: format!("{:.2} ms", spent.as_secs_f64() * 1_000.0),
        against: format!("{seconds:.0} s"),
        figure: spent.as_secs_f64() / seconds * 100.0,
        bound: Bound::Below(BELOW_PERCENT),
    }];
    if host.site.is_file() {
        let wakes = after.store_wakes - before.store_wakes;
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let figure = wakes as f64;
        lines.push(Line {
            what: format!("idle for {seconds:.0} s, how often a thread of the store woke"),
            measured: wakes.to_string(),
            against: "0".to_owned(),
            figure,
            bound: Bound::AtMost(0.0),
        });
    }
    Ok(Measured { lines, ..Measured::default() })
}
