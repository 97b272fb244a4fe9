//! The raw database: one connection that writes the rows of our own run in transactions of our run's size, with the same tables,
//! indexes and sync setting. It reads nothing, locks nothing and asks nobody.

mod pattern;
mod postgres;
pub mod rows;
mod sqlite;

use std::time::{Duration, Instant};

use anyhow::Result;

pub use pattern::Pattern;
pub use sqlite::{Checkpointer, open};

use crate::books::Books;
use crate::process::Usage;
use crate::site::Site;
use crate::work::{Raw, Spread, count, ms_each, per_second};
use pattern::Sink;
use postgres::Batch;
use sqlite::Rows;

/// Writes so many units of work after a pattern, in transactions of so many facts.
pub fn write(site: &Site<'_>, pattern: &Pattern, units: usize, facts_per_transaction: f64) -> Result<Raw> {
    let books = site.raw()?;
    let (bytes, position) = (books.bytes()?, books.position()?);
    let (time, cpu, times) = match books {
        Books::Sqlite(mut connection) => {
            let checkpointer = Checkpointer::beside(&mut connection, &site.file())?;
            let mut sink = Rows::new(&connection)?;
            let written = in_turns(&mut sink, pattern, units, facts_per_transaction, position)?;
            drop(sink);
            drop(connection);
            checkpointer.join(&site.file())?;
            written
        }
        Books::Postgres(runtime, client) => {
            let mut sink = Batch::new(&runtime, &client, pattern)?;
            let written = in_turns(&mut sink, pattern, units, facts_per_transaction, position)?;
            // Whoever opens this store next must not give a position again.
            runtime.block_on(client.batch_execute(
                "SELECT setval('fact_positions', greatest(1, (SELECT max(position) FROM facts)))",
            ))?;
            written
        }
    };
    let books = site.books()?;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let bytes_each = (books.bytes()? - bytes) as f64 / count(units);
    Ok(Raw {
        per_second: per_second(units, time),
        facts_per_transaction,
        cpu_ms_each: ms_each(cpu, units),
        bytes_each,
        transaction_ms: Spread::of(times),
    })
}

/// As in our run, a transaction holds steps of all kinds: as many groups of units as there are steps take turns. No transaction
/// holds two steps of the same unit.
fn in_turns(
    sink: &mut impl Sink,
    pattern: &Pattern,
    units: usize,
    facts_per_transaction: f64,
    mut position: i64,
) -> Result<(Duration, Duration, Vec<f64>)> {
    let steps = pattern.steps();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few thousand facts")]
    let facts = facts_per_transaction.round().max(1.0) as usize;
    let per_step = (facts / steps).max(1);
    let groups = units.div_ceil(per_step);
    let first = usize::try_from(position)?;
    let mut times = Vec::new();
    let (begin, cpu) = (Instant::now(), Usage::of(std::process::id())?);
    let mut began = Instant::now();
    for turn in 0..groups + steps - 1 {
        let mut held = 0;
        for step in 0..steps {
            let Some(group) = turn.checked_sub(step).filter(|group| *group < groups) else { continue };
            for unit in group * per_step..units.min((group + 1) * per_step) {
                position += 1;
                pattern.write(sink, first + unit, step, position)?;
                held += 1;
            }
            if held >= facts || step + 1 == steps {
                sink.commit()?;
                times.push(began.elapsed().as_secs_f64());
                (held, began) = (0, Instant::now());
            }
        }
        if held > 0 {
            sink.commit()?;
            times.push(began.elapsed().as_secs_f64());
            began = Instant::now();
        }
    }
    Ok((begin.elapsed(), cpu.since()?, times))
}
