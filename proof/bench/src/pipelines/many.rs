//! Many runs at once: how many come to their end in a second, and the processor time of each, with all that was started for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};

use super::host::Host;
use crate::daemon::Place;

/// Runs at the same time.
pub const AT_ONCE: [usize; 3] = [1, 8, 32];
/// Ticks of the system's clock in a second, wherever Linux runs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Prints a table without bounds.
pub fn print(place: &Place, host: &Arc<Host>, runs: usize) -> Result<()> {
    println!("| runs at once | runs/s | processor time of one run |");
    println!("| ---: | ---: | ---: |");
    for at_once in AT_ONCE {
        let (used, begin) = (processor_seconds()?, Instant::now());
        place.runtime.block_on(all(host, at_once, runs))?;
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let count = runs as f64;
        let (seconds, used) = (begin.elapsed().as_secs_f64(), processor_seconds()? - used);
        println!("| {at_once} | {:.0} | {:.1} ms |", count / seconds, used / count * 1_000.0);
    }
    Ok(())
}

async fn all(host: &Arc<Host>, at_once: usize, runs: usize) -> Result<()> {
    let left = Arc::new(AtomicUsize::new(runs));
    let callers: Vec<_> = (0..at_once)
        .map(|_| {
            let (host, left) = (host.clone(), left.clone());
            tokio::spawn(async move {
                let take = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    host.run().await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(())
}

/// Of this process and of all that it has started and that is over.
fn processor_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").context("no name of the process")?;
    // User and system time, its own and its children's, are fields 14 to 17; what is split here begins with field 3.
    let ticks = fields.split(' ').skip(11).take(4).map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(f64::from(ticks) / TICKS_PER_SECOND)
}
