//! No-op jobs from the request to their end: over HTTP and through the built-in executor, beside create, claim and complete through
//! `execute`, with as many callers.

use anyhow::Result;

use super::load;
use super::process::{DaemonProcess, Dispatch};
use super::report::{Bound, Line, middle};
use super::{CALLERS, Place, ROUNDS};
use crate::cycle;

/// Of the rate of the store.
const AT_LEAST: f64 = 0.2;

/// The two take turns.
pub fn measure(place: &Place, jobs: usize) -> Result<Line> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let path = place.fresh("finish")?.join("longhaul.sqlite");
        let in_store = place.runtime.block_on(cycle::run(&path, CALLERS, jobs))?.jobs_per_second;
        let data_dir = place.fresh("finish")?;
        let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::On)?;
        let whole = load::runtime()?.block_on(load::create_and_finish(&daemon.address, CALLERS, jobs))?;
        rounds.push((whole, in_store));
    }
    let (whole, in_store) = middle(rounds, |(whole, in_store)| whole / in_store);
    Ok(Line {
        what: format!(
            "no-op jobs over HTTP to their end at {CALLERS} connections, and through `execute` at {CALLERS} callers"
        ),
        measured: format!("{whole:.0}/s"),
        against: format!("{in_store:.0}/s"),
        figure: whole / in_store,
        bound: Bound::AtLeast(AT_LEAST),
    })
}
