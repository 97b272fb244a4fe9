//! The bug museum: every planted bug must be caught within a few seeds, or the checkers prove nothing.
#![cfg(feature = "planted-bugs")]

use domain::planted::{Bug, plant};
use simulator::{Story, Violation, Weather, run_agreeing, run_in, run_stepping};

/// A bug that survives this many seeds was not caught.
const MAX_SEEDS: u64 = 200;

#[test]
fn every_planted_bug_is_caught() {
    let mut survivors = Vec::new();
    println!("{:28} {:>6}  caught by", "bug", "seeds");
    for bug in Bug::ALL {
        plant(Some(bug));
        let caught = (0..MAX_SEEDS).find_map(|seed| caught_by(bug, seed).map(|violation| (seed, violation)));
        plant(None);
        let name = format!("{bug:?}");
        match caught {
            Some((seed, violation)) => println!("{name:28} {:>6}  {}", seed + 1, violation.invariant),
            None => {
                println!("{name:28}      -  nothing");
                survivors.push(bug);
            }
        }
    }
    assert!(survivors.is_empty(), "nothing caught {survivors:?}");
}

/// Bugs of the clock show where clocks step.
const OF_THE_CLOCK: [Bug; 9] = [
    Bug::StepBelievedAtOnce,
    Bug::StepNotAdopted,
    Bug::LeasesNotMoved,
    Bug::LivesNotMoved,
    Bug::TimeBeforeStepBackBelieved,
    Bug::GlitchRemembered,
    Bug::SuspendNotCounted,
    Bug::TimersNotMovedBack,
    Bug::TimeOfDayMoved,
];

/// Bugs of the agreement show where nodes disagree about the time.
const OF_THE_AGREEMENT: [Bug; 3] =
    [Bug::CorrectedWithoutMajority, Bug::OddClockNotFollowed, Bug::DisagreementNotEnded];

/// Bugs of the slots show where polls hang.
const OF_THE_SLOTS: [Bug; 1] = [Bug::HungCountsAsAnswered];

/// What a seed finds.
fn caught_by(bug: Bug, seed: u64) -> Option<Violation> {
    if OF_THE_CLOCK.contains(&bug) {
        return run_stepping(seed).err();
    }
    if OF_THE_AGREEMENT.contains(&bug) {
        return run_agreeing(seed).err();
    }
    run_in(weather(bug), seed, Story::Untold).err().map(|failure| failure.violation)
}

fn weather(bug: Bug) -> Weather {
    if OF_THE_SLOTS.contains(&bug) { Weather::Hangs } else { Weather::Mixed }
}

#[test]
fn without_a_bug_the_same_seeds_hold() {
    plant(None);
    for seed in 0..MAX_SEEDS {
        assert!(run_in(Weather::Mixed, seed, Story::Untold).is_ok(), "seed {seed}");
        assert!(run_in(Weather::Hangs, seed, Story::Untold).is_ok(), "seed {seed}");
        assert!(run_stepping(seed).is_ok(), "seed {seed}");
        assert!(run_agreeing(seed).is_ok(), "seed {seed}");
    }
}
