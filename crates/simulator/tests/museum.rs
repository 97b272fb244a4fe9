//! The bug museum: every planted bug must be caught within a few seeds, or the checkers prove nothing.
#![cfg(feature = "planted-bugs")]

use domain::planted::{Bug, plant};
use simulator::{Story, run};

/// A bug that survives this many seeds was not caught.
const MAX_SEEDS: u64 = 200;

#[test]
fn every_planted_bug_is_caught() {
    let mut survivors = Vec::new();
    println!("{:28} {:>6}  caught by", "bug", "seeds");
    for bug in Bug::ALL {
        plant(Some(bug));
        let caught = (0..MAX_SEEDS).find_map(|seed| run(seed, Story::Untold).err());
        plant(None);
        let name = format!("{bug:?}");
        match caught {
            Some(failure) => println!("{name:28} {:>6}  {}", failure.seed + 1, failure.violation.invariant),
            None => {
                println!("{name:28}      -  nothing");
                survivors.push(bug);
            }
        }
    }
    assert!(survivors.is_empty(), "nothing caught {survivors:?}");
}

#[test]
fn without_a_bug_the_same_seeds_hold() {
    plant(None);
    for seed in 0..MAX_SEEDS {
        assert!(run(seed, Story::Untold).is_ok(), "seed {seed}");
    }
}
