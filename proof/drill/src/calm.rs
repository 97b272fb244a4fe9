//! The calm after the drill: nothing is broken any more, every question is answered, and everything that was accepted must be over in
//! bounded time. Whatever is not says why.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use crate::client;
use crate::finding::Finding;
use crate::inspect::{Extent, Inspector};
use crate::plan::Sending;
use crate::scratch::LEASE_SECONDS;
use crate::stage::{ANSWER_WITHIN, Stage};
use crate::wire::Request;

pub const OVER: &str = "nothing is open after calm";
/// A lease that is lost twice, a service that does not let go, and some.
pub const OVER_WITHIN: Duration = Duration::from_secs(3 * LEASE_SECONDS + 30);
/// What nobody pulls and no other node takes over is over sooner: a cancel that nobody confirms takes as long as a lease.
pub const ALONE_OVER_WITHIN: Duration = Duration::from_secs(2 * LEASE_SECONDS);
/// A client has one more thing to finish.
const CLIENTS_WITHIN: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(500);
const CLIENT_LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);
/// Of so many that are stuck it is told why.
const TOLD: usize = 20;

/// Waits until everything is over, for at most so long; how long that took, and what is not.
pub fn wait(
    stage: &Stage,
    inspector: &mut Inspector<'_>,
    within: Duration,
    mut look: impl FnMut(usize),
) -> Result<(Duration, Vec<Finding>)> {
    let began = Instant::now();
    while stage.clients.load(Ordering::SeqCst) > 0 && !stage.is_over() && began.elapsed() < CLIENTS_WITHIN {
        std::thread::sleep(CLIENT_LOOK);
    }
    let began = Instant::now();
    // Taken out first: the oracle is asked again for each of them.
    let unknown = stage.oracle().unknown();
    for key in unknown {
        client::create(stage, &key, Sending::Whole);
    }
    loop {
        inspector.read_ledger(Extent::Touched)?;
        let open = inspector.history.open_jobs().len() + inspector.history.open_routing().len();
        look(open);
        if open == 0 || stage.is_over() {
            return Ok((began.elapsed(), Vec::new()));
        }
        if began.elapsed() > within {
            return Ok((began.elapsed(), stuck(stage, inspector)));
        }
        answer_all(stage, inspector);
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Answers whatever waits for an answer.
fn answer_all(stage: &Stage, inspector: &Inspector<'_>) {
    let waits = |id: &&str| inspector.history.jobs.get(*id).is_some_and(crate::history::Job::awaits_input);
    for id in inspector.history.open_jobs().into_iter().filter(waits) {
        let (path, body) = (format!("/jobs/{id}/answer"), json!({ "answer": "go on" }).to_string());
        let key = format!("calm-{id}");
        let request = Request {
            method: "POST",
            path: &path,
            key: Some(&key),
            body: Some(&body),
            within: ANSWER_WITHIN,
        };
        let _ = stage.ask(&request, Sending::Whole, PATIENCE, || ());
    }
}

fn stuck(stage: &Stage, inspector: &Inspector<'_>) -> Vec<Finding> {
    let jobs = inspector.history.open_jobs();
    let mut found: Vec<Finding> = jobs
        .iter()
        .take(TOLD)
        .map(|id| {
            let why = stage.read(&format!("/jobs/{id}/why"), PATIENCE);
            Finding::new(OVER, *id, why.map_or_else(|| "and cannot say why".to_owned(), |why| why.body))
        })
        .collect();
    let others = inspector.history.open_routing();
    found.extend(others.iter().take(TOLD).map(|id| Finding::new(OVER, *id, "it goes on")));
    let untold = jobs.len().saturating_sub(TOLD) + others.len().saturating_sub(TOLD);
    if untold > 0 {
        found.push(Finding::new(OVER, "others", format!("{untold} more")));
    }
    found
}
