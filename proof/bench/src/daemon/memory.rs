//! The memory of a daemon that has accepted many jobs over HTTP, all of them queued.

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::Place;
use super::connection::Connection;
use super::load;
use super::process::{Address, DaemonProcess, Dispatch};
use super::report::{Bound, Line};

const BELOW_MIB: f64 = 150.0;
/// Jobs in one request.
const BATCH: usize = 1_000;

/// Counted while the daemon that accepted them still runs.
pub fn measure(place: &Place, queued: usize) -> Result<Line> {
    let data_dir = place.fresh("memory")?;
    let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::Off)?;
    let (before, _) = daemon.memory_kib()?;
    load::runtime()?.block_on(accept(&daemon.address, queued))?;
    let (after, most) = daemon.memory_kib()?;
    Ok(Line {
        what: format!("memory with {queued} queued jobs (most ever {:.0} MiB), and with none", mib(most)),
        measured: format!("{:.1} MiB", mib(after)),
        against: format!("{:.1} MiB", mib(before)),
        figure: mib(most),
        bound: Bound::Below(BELOW_MIB),
    })
}

#[derive(Deserialize)]
struct Verdict {
    accepted: usize,
}

async fn accept(address: &Address, jobs: usize) -> Result<()> {
    let mut connection = Connection::to(address).await?;
    let mut left = jobs;
    while left > 0 {
        let count = left.min(BATCH);
        let body = format!("{{\"jobs\":[{}]}}", vec![load::NOOP; count].join(","));
        let verdict: Verdict = serde_json::from_slice(connection.post("/jobs/batch", &body).await?)?;
        ensure!(verdict.accepted == count, "{} of {count} jobs were accepted", verdict.accepted);
        left -= count;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1_024.0
}
