//! Clocks that step: no seed breaks an invariant, and every situation occurs. `LONGHAUL_SEEDS` says how many seeds.

use simulator::{AgreeingCounters, SteppingCounters, run_agreeing, run_stepping};

const SEEDS: u64 = 300;

#[test]
fn clock_steps_take_nothing_from_the_living_in_any_seed() {
    let mut seen = SteppingCounters::default();
    for seed in 0..seeds() {
        let counters = run_stepping(seed).unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
        seen.add(counters);
    }
    println!("{seen:?}");
    assert!(seen.every_situation_occurred(), "{seen:?}");
}

#[test]
fn nodes_agree_on_the_time_in_any_seed() {
    let mut seen = AgreeingCounters::default();
    for seed in 0..seeds() {
        let counters = run_agreeing(seed).unwrap_or_else(|broken| panic!("seed {seed}: {broken:?}"));
        seen.add(counters);
    }
    println!("{seen:?}");
    assert!(seen.every_situation_occurred(), "the run is void, it never saw all of {seen:?}");
}

fn seeds() -> u64 {
    match std::env::var("LONGHAUL_SEEDS") {
        Ok(seeds) => seeds.parse().expect("LONGHAUL_SEEDS is a number"),
        Err(_) => SEEDS,
    }
}
