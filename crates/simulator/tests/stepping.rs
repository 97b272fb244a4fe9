//! Clocks that step: no seed breaks an invariant, and every situation occurs.

use simulator::{SteppingCounters, run_stepping};

const SEEDS: u64 = 300;

#[test]
fn clock_steps_take_nothing_from_the_living_in_any_seed() {
    let mut seen = SteppingCounters::default();
    for seed in 0..SEEDS {
        let counters = run_stepping(seed).unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
        seen.add(counters);
    }
    println!("{seen:?}");
    assert!(seen.every_situation_occurred(), "{seen:?}");
}
