//! Many seeds in a row, and what they add up to.

use std::ops::Range;

use crate::counters::Counters;
use crate::run::{Failure, Story, run};

/// What a batch of seeds has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch {
    /// Runs.
    pub seeds: u64,
    /// Events.
    pub steps: u64,
    /// Facts written.
    pub facts: u64,
    /// Microseconds of simulated time.
    pub simulated: i64,
    /// What happened.
    pub counters: Counters,
}

/// Runs these seeds until one fails; that one is run again for its story.
pub fn batch(seeds: Range<u64>) -> (Batch, Option<Box<Failure>>) {
    let mut batch = Batch::default();
    for seed in seeds {
        batch.seeds += 1;
        match run(seed, Story::Untold) {
            Ok(report) => {
                batch.steps += report.steps;
                batch.facts += report.facts;
                batch.simulated += report.simulated;
                batch.counters += report.counters;
            }
            Err(failure) => return (batch, Some(run(seed, Story::Told).err().unwrap_or(failure))),
        }
    }
    (batch, None)
}
