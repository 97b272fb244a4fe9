//! The same work beside more and more records: what a job, a read and a list cost beside 1,000, 10,000, ... finished jobs, and what the raw
//! database pays for the same rows in the same store. All sizes take turns.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use domain::RecordId;
use serde::Serialize;
use store::JobQuery;
use store_sql::Durability;

use super::store::pattern;
use crate::bench::{Measured, ROUNDS};
use crate::cycle::{self, Until};
use crate::fill;
use crate::line::{Bound, Line, middle};
use crate::process::Usage;
use crate::raw::{self, Pattern};
use crate::site::{Ground, Site};
use crate::work::ms_each;

/// What a job may cost beside the most records, of what it costs beside this many.
const AT_MOST: f64 = 1.3;
const COMPARED_WITH: usize = 10_000;
const FIRST: usize = 1_000;
const TIMES: usize = 10;
const CALLERS: usize = 64;
/// Of each kind, per round.
const READS: usize = 500;
const LISTS: usize = 50;
const PAGE: usize = 50;
/// Create, dispatch, complete.
const FACTS: f64 = 3.0;

/// What work costs beside so many records.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Finished jobs that were there before.
    pub records: usize,
    /// A job from its create to its end, with many at the same time.
    pub job_ms: f64,
    /// The same on a processor.
    pub cpu_ms: f64,
    /// A read of one job, any of them.
    pub read_ms: f64,
    /// A list of the newest.
    pub list_ms: f64,
    /// The raw database writing the rows of a job into the same store.
    pub raw_ms: f64,
}

/// One of the costs.
type Cost = fn(&Point) -> f64;

/// A store with records in it.
struct Full<'a> {
    site: Site<'a>,
    records: usize,
    ids: Vec<RecordId>,
    rounds: Vec<Point>,
}

/// A point for each size, and a line for each cost.
pub fn measure(ground: &Ground, time: Duration, most: usize) -> Result<Measured> {
    let sizes: Vec<usize> = std::iter::successors(Some(FIRST), |size| Some(size * TIMES))
        .take_while(|size| *size <= most)
        .collect();
    let mut stores = Vec::new();
    for records in sizes {
        ground.say(&format!("growth: filling a store with {records} records"));
        let site = ground.site()?;
        let ids = fill::finished(&site, records)?;
        stores.push(Full { site, records, ids, rounds: Vec::new() });
    }
    let piece = time / (ROUNDS * u32::try_from(stores.len())? * 2);
    let pattern = pattern(ground)?;
    for round in 1..=ROUNDS {
        for full in &mut stores {
            ground.say(&format!("growth: beside {} records, round {round} of {ROUNDS}", full.records));
            let point = full.point(&pattern, piece)?;
            full.rounds.push(point);
        }
    }
    let growth: Vec<Point> = stores.into_iter().map(Full::middle).collect();
    let lines = lines(&growth)?;
    Ok(Measured { lines, growth, ..Measured::default() })
}

fn lines(growth: &[Point]) -> Result<Vec<Line>> {
    let (largest, smaller) = growth.split_last().context("there is a size")?;
    let compared = smaller.iter().rev().find(|point| point.records <= COMPARED_WITH);
    // With one size there is nothing to compare.
    let compared = compared.unwrap_or(largest);
    let kinds: [(&str, Cost, Bound); 5] = [
        ("a job", |point| point.job_ms, Bound::AtMost(AT_MOST)),
        ("a job on a processor", |point| point.cpu_ms, Bound::AtMost(AT_MOST)),
        // What a read of any old job takes is mostly what the caches do not hold.
        ("a read of one job", |point| point.read_ms, Bound::Told),
        ("a list of the newest", |point| point.list_ms, Bound::Told),
        ("the raw database's rows of a job", |point| point.raw_ms, Bound::Told),
    ];
    Ok(kinds
        .into_iter()
        .map(|(what, of, bound)| Line {
            what: format!("{what} beside {} records, and beside {}", largest.records, compared.records),
            measured: format!("{:.3} ms", of(largest)),
            against: format!("{:.3} ms", of(compared)),
            figure: of(largest) / of(compared).max(f64::MIN_POSITIVE),
            bound,
        })
        .collect())
}

impl Full<'_> {
    fn point(&self, pattern: &Pattern, time: Duration) -> Result<Point> {
        let ground = self.site.ground;
        ground.go_on()?;
        let opened = self.site.open(Durability::Full)?;
        let (cpu, transactions) = (Usage::of(std::process::id())?, opened.transactions());
        let until = Until::Time(Instant::now() + time);
        let ran = ground.runtime.block_on(cycle::until(opened.store(), CALLERS, until))?;
        let (cpu, jobs) = (cpu.since()?, ran.each.len());
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let facts = FACTS * jobs as f64 / (opened.transactions() - transactions).max(1) as f64;
        let store = opened.store();
        let read_ms = ground.runtime.block_on(async {
            let begin = Instant::now();
            for id in self.ids.iter().cycle().step_by(self.ids.len() / READS + 1).take(READS) {
                store.load(id).await?.context("what was written is there")?;
            }
            anyhow::Ok(ms_each(begin.elapsed(), READS))
        })?;
        let list_ms = ground.runtime.block_on(async {
            let query = JobQuery { limit: PAGE, ..JobQuery::default() };
            let begin = Instant::now();
            for _ in 0..LISTS {
                store.jobs(query.clone()).await?;
            }
            anyhow::Ok(ms_each(begin.elapsed(), LISTS))
        })?;
        drop(store);
        opened.close(ground);
        let raw = raw::write(&self.site, pattern, jobs, facts.max(1.0))?;
        Ok(Point {
            records: self.records,
            job_ms: ms_each(ran.time, jobs),
            cpu_ms: ms_each(cpu, jobs),
            read_ms,
            list_ms,
            raw_ms: 1_000.0 / raw.per_second,
        })
    }

    /// Each cost is the middle one of its rounds.
    fn middle(self) -> Point {
        let of = |cost: Cost| middle(self.rounds.iter().map(cost).collect(), |cost: &f64| *cost);
        Point {
            records: self.records,
            job_ms: of(|point| point.job_ms),
            cpu_ms: of(|point| point.cpu_ms),
            read_ms: of(|point| point.read_ms),
            list_ms: of(|point| point.list_ms),
            raw_ms: of(|point| point.raw_ms),
        }
    }
}
