//! Seeds that must hold. `LONGHAUL_SEEDS` says how many; the default takes seconds.

use simulator::{Failure, Story, batch, run};

const DEFAULT_SEEDS: u64 = 200;

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

#[test]
fn a_seed_runs_the_same_way_every_time() {
    for seed in [0, 1, 7, 42, 1_000_003, u64::MAX] {
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
