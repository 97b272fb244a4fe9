//! Seeds that must hold. `LONGHAUL_SEEDS` says how many; the default takes seconds.

use simulator::{Failure, Sometimes, Story, Weather, batch, run, run_in};

const DEFAULT_SEEDS: u64 = 2_000;
/// Seeds in which nodes stand still again and again.
const PAUSING_SEEDS: u64 = 200;
/// How often a node with work must have stood still past its lease in them.
const LEAST_PAUSES: u64 = 1_000;

// conforms: A21 A22 A24 A28 A30 A31 A32 R107
#[test]
fn no_seed_breaks_an_invariant_and_every_situation_occurs() {
    let (batch, failure) = batch(0..seeds());
    if let Some(failure) = failure {
        panic!("{}", story(&failure));
    }
    let missing = batch.counters.missing();
    assert!(missing.is_empty(), "the batch is void, it never saw {missing:?}");
}

// conforms: A32
#[test]
fn nodes_that_stand_still_past_their_lease_a_thousand_times_break_no_invariant() {
    let (mut pauses, mut taken_over) = (0, 0);
    for seed in 0..PAUSING_SEEDS {
        let report = match run_in(Weather::Pauses, seed, Story::Told) {
            Ok(report) => report,
            Err(failure) => panic!("{}", story(&failure)),
        };
        pauses += report.counters.count(Sometimes::ResumedAfterLease);
        taken_over += report.counters.count(Sometimes::TakeOverWhileHolderLives);
    }
    println!("{pauses} pauses past a lease, {taken_over} records taken from whoever lives");
    assert!(pauses >= LEAST_PAUSES, "only {pauses} pauses past a lease");
    assert!(taken_over >= LEAST_PAUSES, "only {taken_over} were taken over");
}

#[test]
fn a_seed_runs_the_same_way_every_time() {
    for seed in [0, 1, 3, 5, 7, 42, 1_000_003, u64::MAX] {
        let first = run(seed, Story::Untold).expect("the seed holds");
        let second = run(seed, Story::Told).expect("the seed holds");
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn two_seeds_run_differently() {
    let digest = |seed| run(seed, Story::Untold).expect("the seed holds").digest;
    assert_ne!(digest(1), digest(2));
}

fn seeds() -> u64 {
    match std::env::var("LONGHAUL_SEEDS") {
        Ok(seeds) => seeds.parse().expect("LONGHAUL_SEEDS is a number"),
        Err(_) => DEFAULT_SEEDS,
    }
}

fn story(failure: &Failure) -> String {
    let Failure { seed, steps, violation, story } = failure;
    format!(
        "seed {seed} broke {} after {steps} steps: {}\n{}",
        violation.invariant,
        violation.text,
        story.join("\n")
    )
}
