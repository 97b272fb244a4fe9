//! Creates over HTTP beside creates through `execute`, with as many callers. Nothing is dispatched in either.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use store_sql::{SqliteOptions, SqliteStore};

use super::load;
use super::process::{DaemonProcess, Dispatch};
use super::report::{Bound, Line, middle};
use super::{CALLERS, Place, ROUNDS};
use crate::cycle;

/// Of the rate of the store.
const AT_LEAST: f64 = 0.25;

/// The two take turns.
pub fn measure(place: &Place, jobs: usize) -> Result<Line> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let in_store = place.runtime.block_on(in_store(place, jobs))?;
        let data_dir = place.fresh("create")?;
        let daemon = DaemonProcess::start(&place.binary, &data_dir, Dispatch::Off)?;
        let over_http = load::runtime()?.block_on(load::create(&daemon.address, CALLERS, jobs))?;
        rounds.push((over_http, in_store));
    }
    let (over_http, in_store) = middle(rounds, |(over_http, in_store)| over_http / in_store);
    Ok(Line {
        what: format!(
            "creates over HTTP at {CALLERS} connections, and through `execute` at {CALLERS} callers"
        ),
        measured: format!("{over_http:.0}/s"),
        against: format!("{in_store:.0}/s"),
        figure: over_http / in_store,
        bound: Bound::AtLeast(AT_LEAST),
    })
}

async fn in_store(place: &Place, jobs: usize) -> Result<f64> {
    let path = place.fresh("create")?.join("longhaul.sqlite");
    let engine = cycle::engine(Arc::new(SqliteStore::open(&SqliteOptions::at(&path))?));
    let begin = Instant::now();
    cycle::create_many(&engine, CALLERS, jobs, cycle::EXECUTOR, cycle::INPUT).await?;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    Ok(jobs as f64 / begin.elapsed().as_secs_f64())
}
