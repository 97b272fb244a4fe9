//! Commands that kill their supervisor each time that they run, again and again; how fast other jobs go beside them, and without them.

use anyhow::Result;

use super::connection::Connection;
use super::load;
use super::process::{DaemonProcess, Dispatch};
use super::report::{Bound, Line, middle};
use super::{CALLERS, Place, ROUNDS};

/// Each of them dies once a second, for longer than the bench takes.
const POISON: &str = r#"{"title":"poison","executor":"command","input":{"argv":["sh","-c","kill -9 $PPID; sleep 1000"]},"retry":{"max_attempts":1000,"backoff_seconds":1,"max_backoff_seconds":1}}"#;
const POISONED: usize = 4;
/// Of the rate without them.
const AT_LEAST: f64 = 0.9;

/// The two take turns, each on a daemon of its own that stays.
pub fn measure(place: &Place, jobs: usize) -> Result<Line> {
    let start = |name: &str| DaemonProcess::start(&place.binary, &place.fresh(name)?, Dispatch::On);
    let (with, without) = (start("poison-with")?, start("poison-without")?);
    let runtime = load::runtime()?;
    runtime.block_on(async {
        let mut connection = Connection::to(&with.address).await?;
        for _ in 0..POISONED {
            connection.post("/jobs", POISON).await?;
        }
        anyhow::Ok(())
    })?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let rate = |daemon: &DaemonProcess| {
            runtime.block_on(load::create_and_finish(&daemon.address, CALLERS, jobs))
        };
        rounds.push((rate(&with)?, rate(&without)?));
    }
    with.kill()?;
    without.kill()?;
    let ratio = |(with, without): &(f64, f64)| with / without;
    let rates = middle(rounds, ratio);
    Ok(Line {
        what: format!(
            "no-op jobs to their end beside {POISONED} commands that kill their supervisor once a second, and beside none"
        ),
        measured: format!("{:.0}/s", rates.0),
        against: format!("{:.0}/s", rates.1),
        figure: ratio(&rates),
        bound: Bound::AtLeast(AT_LEAST),
    })
}
