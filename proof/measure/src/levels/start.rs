//! From the start of the process to the line that says that it is ready: on a store with many finished jobs, beside an empty one. Files
//! are out of the system's cache each time; what a server of a database has in its memory stays there.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::Result;

use crate::bench::{Measured, ROUNDS};
use crate::disk::out_of_the_cache;
use crate::fill;
use crate::line::{Bound, Line, middle};
use crate::process::DaemonProcess;
use crate::site::{Ground, Site};

/// Of the time on an empty store.
const TIMES: f64 = 3.0;
const PLUS_SECONDS: f64 = 0.2;
/// For each second that there is.
const FINISHED_PER_SECOND: f64 = 5_000.0;
const FINISHED_AT_LEAST: f64 = 1_000.0;

/// The two take turns.
pub fn measure(ground: &Ground, time: Duration) -> Result<Measured> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a day at most")]
    let finished = (time.as_secs_f64() * FINISHED_PER_SECOND).max(FINISHED_AT_LEAST) as usize;
    let (full, empty) = (ground.site()?, ground.site()?);
    fill::finished(&full, finished)?;
    // Once before: the first start makes the store and the token.
    for site in [&full, &empty] {
        ready_after(site)?;
    }
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        ground.say(&format!("start: round {round} of {ROUNDS}"));
        rounds.push((ready_after(&full)?, ready_after(&empty)?));
    }
    let share = |(full, empty): &(f64, f64)| full / (TIMES * empty + PLUS_SECONDS);
    let (full, empty) = middle(rounds, share);
    let line = Line {
        what: format!(
            "cold start with {finished} finished jobs, and {TIMES} times an empty one ({:.0} ms) plus 200 ms",
            empty * 1_000.0
        ),
        measured: format!("{:.0} ms", full * 1_000.0),
        against: format!("{:.0} ms", (TIMES * empty + PLUS_SECONDS) * 1_000.0),
        figure: share(&(full, empty)),
        bound: Bound::AtMost(1.0),
    };
    Ok(Measured { lines: vec![line], ..Measured::default() })
}

fn ready_after(site: &Site<'_>) -> Result<f64> {
    out_of_the_cache(&site.dir)?;
    let own = site.arguments();
    let arguments: Vec<&OsStr> = own.iter().map(AsRef::as_ref).collect();
    let daemon = DaemonProcess::start_with(&site.ground.binary, &site.dir, &arguments)?;
    Ok(daemon.ready_after.as_secs_f64())
}
