//! The core on PostgreSQL: create, claim and complete through `execute`, beside raw SQL that writes the same rows in batches of the
//! same size on one connection.

use std::sync::Arc;

use anyhow::{Context, Result};
use store_sql::{PostgresOptions, PostgresStore};

use super::server::{Server, address, ledger};
use super::{Sizes, raw};
use crate::cycle;
use crate::daemon::Place;
use crate::daemon::report::{Bound, Line, middle};

/// Of the rate of raw SQL.
const AT_LEAST: f64 = 0.5;
const CALLERS: [usize; 2] = [64, 256];

/// The two take turns.
pub fn measure(place: &Place, server: &Server, sizes: &Sizes) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for callers in CALLERS {
        let mut rounds = Vec::new();
        for _ in 0..sizes.rounds {
            rounds.push(place.runtime.block_on(round(server, callers, sizes.jobs))?);
        }
        let (ours, raw, facts) = middle(rounds, |(ours, raw, _)| ours / raw);
        lines.push(Line {
            what: format!(
                "no-op jobs through `execute` at {callers} callers, {facts:.0} facts a transaction, and raw SQL in such batches"
            ),
            measured: format!("{ours:.0}/s"),
            against: format!("{raw:.0}/s"),
            figure: ours / raw,
            bound: Bound::AtLeast(AT_LEAST),
        });
    }
    Ok(lines)
}

async fn round(server: &Server, callers: usize, jobs: usize) -> Result<(f64, f64, f64)> {
    let schema = server.fresh().await?;
    let store = Arc::new(PostgresStore::open(&PostgresOptions::at(address(&schema)?)).await?);
    let ours = cycle::on(store.clone(), callers, jobs).await?;
    Arc::into_inner(store).context("the run is over")?.close().await;
    let facts = ledger(&schema, jobs).await?.facts_per_transaction;
    let raw = raw::run(server, schema, jobs, facts).await?;
    Ok((ours, raw, facts))
}
