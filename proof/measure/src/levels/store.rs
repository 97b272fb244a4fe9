//! The core: no-op jobs created, claimed and completed through `execute`, every step durable before the next, beside the raw database
//! that writes the same rows in transactions of the same size.

use std::time::{Duration, Instant};

use anyhow::Result;
use store_sql::Durability;

use crate::bench::{Measured, ROUNDS};
use crate::cycle::{self, Until};
use crate::line::{Bound, Line, middle};
use crate::process::Usage;
use crate::raw::{self, Pattern};
use crate::site::Ground;
use crate::work::{Spread, Work, count, ms_each, per_second};

/// Of the rate of the raw database.
const AT_LEAST: f64 = 0.5;
const CALLERS: [usize; 3] = [1, 64, 256];
/// Create, dispatch, complete.
const FACTS: f64 = 3.0;

/// A line and a kind of work for each number of callers.
pub fn measure(ground: &Ground, time: Duration) -> Result<Measured> {
    // Ours and the raw database's, in every round.
    let piece = time / (u32::try_from(CALLERS.len())? * ROUNDS * 2);
    let pattern = pattern(ground)?;
    let mut measured = Measured::default();
    for callers in CALLERS {
        let mut rounds = Vec::new();
        for round in 1..=ROUNDS {
            ground.say(&format!("store: {callers} callers, round {round} of {ROUNDS}"));
            rounds.push(one(ground, &pattern, callers, piece)?);
        }
        let ratio = |work: &Work| work.raw.as_ref().map_or(0.0, |raw| work.per_second / raw.per_second);
        let work = middle(rounds, ratio);
        let Some(raw) = &work.raw else { continue };
        measured.lines.push(Line {
            what: format!(
                "no-op jobs through `execute` at {}, and raw SQL in transactions of {}",
                named(callers),
                raw.facts()
            ),
            measured: format!("{:.0}/s", work.per_second),
            against: format!("{:.0}/s", raw.per_second),
            figure: ratio(&work),
            bound: Bound::AtLeast(AT_LEAST),
        });
        measured.works.push(work);
    }
    Ok(measured)
}

fn named(callers: usize) -> String {
    if callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") }
}

/// What one no-op job writes.
pub fn pattern(ground: &Ground) -> Result<Pattern> {
    let site = ground.site()?;
    let opened = site.open(Durability::Full)?;
    ground.runtime.block_on(cycle::until(opened.store(), 1, Until::Jobs(1)))?;
    opened.close(ground);
    Pattern::since(&site.books()?, 0)
}

fn one(ground: &Ground, pattern: &Pattern, callers: usize, time: Duration) -> Result<Work> {
    let site = ground.site()?;
    let opened = site.open(Durability::Full)?;
    let empty = site.books()?.bytes()?;
    let (cpu, transactions) = (Usage::of(std::process::id())?, opened.transactions());
    let until = Until::Time(Instant::now() + time);
    let ran = ground.runtime.block_on(cycle::until(opened.store(), callers, until))?;
    let (cpu, jobs) = (cpu.since()?, ran.each.len());
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let facts = FACTS * count(jobs) / (opened.transactions() - transactions).max(1) as f64;
    opened.close(ground);
    let bytes = site.books()?.bytes()? - empty;
    drop(site);
    let raw = raw::write(&ground.site()?, pattern, jobs, facts.max(1.0))?;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let bytes_each = bytes as f64 / count(jobs);
    Ok(Work {
        what: format!("no-op jobs through `execute`, {}", named(callers)),
        count: jobs,
        per_second: per_second(jobs, ran.time),
        latency_ms: Spread::of(ran.each).map(|spread| spread.among(callers)),
        cpu_ms_each: Some(ms_each(cpu, jobs)),
        bytes_each: Some(bytes_each),
        raw: Some(raw),
    })
}
