//! How soon the next step begins when the one before it has ended and nothing else is going on, in commits of the same disk.
//!
//! The clock runs from the time at which the engine decides on the end of a step, which the ledger has, to the first thing that the next
//! step's plugin does. Three commits lie between (the end itself with the next job, the taking, the dispatch) and two starts of a
//! process. Both are times of one machine.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use store_sql::{SqliteOptions, SqliteStore};

use super::cost::PAUSE;
use super::host::Host;
use crate::cycle;
use crate::daemon::report::{Bound, Line, middle, percentile};
use crate::daemon::{Place, ROUNDS};

const COMMITS: f64 = 10.0;
/// The log has its size before: one that grows is slower to sync than one that is written over.
const JOBS_BEFORE: usize = 3_000;
const CALLERS: usize = 64;

/// Seconds.
struct Round {
    hop_p50: f64,
    hop_p99: f64,
    commit_p50: f64,
    commit_p99: f64,
}

/// A commit and a run take turns.
pub fn measure(place: &Place, host: &Host, runs: usize) -> Result<Line> {
    let path = place.fresh("hop-commits")?.join("longhaul.sqlite");
    let engine = cycle::engine(Arc::new(SqliteStore::open(&SqliteOptions::at(&path))?));
    let before = cycle::create_many(&engine, CALLERS, JOBS_BEFORE, cycle::EXECUTOR, cycle::INPUT);
    place.runtime.block_on(before)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (mut hops, mut commits) = (Vec::with_capacity(runs * 2), Vec::with_capacity(runs));
        place.runtime.block_on(async {
            for _ in 0..runs {
                tokio::time::sleep(PAUSE).await;
                let begin = Instant::now();
                cycle::create(&engine).await?;
                commits.push(begin.elapsed().as_secs_f64());
                tokio::time::sleep(PAUSE).await;
                hops.extend(hops_of_one(host).await?);
            }
            anyhow::Ok(())
        })?;
        rounds.push(Round {
            hop_p50: percentile(&mut hops, 50),
            hop_p99: percentile(&mut hops, 99),
            commit_p50: percentile(&mut commits, 50),
            commit_p99: percentile(&mut commits, 99),
        });
    }
    let ratio = |round: &Round| round.hop_p99 / round.commit_p50;
    let round = middle(rounds, ratio);
    Ok(Line {
        what: format!(
            "from the end of a step to the start of the next one's plugin at idle, p99 (p50 {:.2} ms), and one commit, \
             p50 (p99 {:.2} ms)",
            round.hop_p50 * 1_000.0,
            round.commit_p99 * 1_000.0
        ),
        measured: format!("{:.2} ms", round.hop_p99 * 1_000.0),
        against: format!("{:.2} ms", round.commit_p50 * 1_000.0),
        figure: ratio(&round),
        bound: Bound::Below(COMMITS),
    })
}

/// Seconds of each hop of one run.
async fn hops_of_one(host: &Host) -> Result<Vec<f64>> {
    let jobs = host.jobs_of(&host.run().await?).await?;
    let mut hops = Vec::new();
    for pair in jobs.windows(2) {
        let ended = pair[0].completed_at.context("the step has ended")?.micros();
        let began: i64 =
            pair[1].result.summary.as_deref().context("the plugin says when it began")?.parse()?;
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        hops.push((began - ended) as f64 / 1_000_000.0);
    }
    Ok(hops)
}
