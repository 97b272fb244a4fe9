//! The stores on a file and on a server beside their model: the same orders, legal and not, the same answers, the same records.
//!
//! `LONGHAUL_CASES` says how many histories are lived through. The test is over only when everything that can be ordered was
//! ordered, and everything that can be refused was refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod chance;
mod coverage;
mod orders;
mod steps;
mod twins;

use coverage::Coverage;
use steps::Steps;
use twins::Twins;

const CASES: u64 = 150;
const STEPS: usize = 70;

#[tokio::test]
async fn every_store_answers_and_remembers_as_the_model_does_over_any_history() {
    let cases = match std::env::var("LONGHAUL_CASES") {
        Ok(cases) => cases.parse().expect("LONGHAUL_CASES is a number"),
        Err(_) => CASES,
    };
    let mut coverage = Coverage::default();
    for seed in 0..cases {
        let mut twins = Twins::new(seed).await;
        let mut steps = Steps::new(seed);
        let mut history = Vec::new();
        for _ in 0..STEPS {
            let step = steps.next(&twins).await;
            history.push(format!("{step:?}"));
            let answers = twins.take(&step).await;
            coverage.saw(&step, &answers.model);
            let same = answers.model == answers.sqlite && answers.model == answers.postgres;
            assert!(same, "seed {seed}: {answers:#?}\nafter {}", history.join("\n"));
            if let Err(difference) = twins.compare(&orders::every_id()).await {
                panic!("seed {seed}: {difference}\nafter {}", history.join("\n"));
            }
            steps.heard(answers.model);
        }
        if let Err(difference) = twins.reopen_and_compare(&orders::every_id()).await {
            panic!("seed {seed}, reopened: {difference}\nafter {}", history.join("\n"));
        }
    }
    println!("{coverage}");
    let missing = coverage.missing();
    assert!(missing.is_empty(), "in {cases} histories never seen: {missing:?}");
}
