//! One caller: how long a durable create takes, beside one bare transaction with the same rows.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use store_sql::{SqliteOptions, SqliteStore};
use tokio::runtime::Runtime;

use crate::{cycle, raw};

const CREATES: usize = 2_000;

/// Prints the table. The two take turns, so that a moody disk is moody to both.
pub fn print(runtime: &Runtime, scratch: &Path) -> Result<()> {
    let path = scratch.join("latency.sqlite");
    let engine = cycle::engine(Arc::new(SqliteStore::open(&SqliteOptions::at(&path))?));
    let mut creator = raw::Creator::new(&scratch.join("latency-raw.sqlite"), &scratch.join("ours-1.sqlite"))?;
    let mut ours = Vec::with_capacity(CREATES);
    let mut bare = Vec::with_capacity(CREATES);
    for _ in 0..CREATES {
        let begin = Instant::now();
        runtime.block_on(cycle::create(&engine))?;
        ours.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        creator.create()?;
        bare.push(begin.elapsed().as_secs_f64());
    }
    println!("| one caller, create | p50 ms | p99 ms |");
    println!("| --- | ---: | ---: |");
    println!("| longhaul | {:.3} | {:.3} |", percentile(&mut ours, 50), percentile(&mut ours, 99));
    println!("| bare transaction | {:.3} | {:.3} |", percentile(&mut bare, 50), percentile(&mut bare, 99));
    println!(
        "| ratio | {:.2} | {:.2} |",
        percentile(&mut ours, 50) / percentile(&mut bare, 50),
        percentile(&mut ours, 99) / percentile(&mut bare, 99),
    );
    Ok(())
}

/// In milliseconds.
fn percentile(seconds: &mut [f64], percent: usize) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[(seconds.len() - 1) * percent / 100] * 1_000.0
}
