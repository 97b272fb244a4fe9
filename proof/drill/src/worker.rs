//! A worker that pulls: does most of what it is handed, fails at some, vanishes with some, and is late with some.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kind::LANE;
use crate::nodes::PAST_LEASE;
use crate::plan::{Manner, Manners, Sending};
use crate::stage::{ANSWER_WITHIN, Stage};
use crate::wire::{Answer, Request, Sent};

const WAIT_SECONDS: u64 = 1;
/// Longer than it may wait for work.
const PULL_WITHIN: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(20);
const REST: Duration = Duration::from_millis(50);
/// Reports that are held back at the same time.
const MAX_LATE: usize = 100;

/// A worker.
pub struct Worker<'a> {
    stage: &'a Stage,
    number: usize,
    manners: Manners,
    late: Vec<(Instant, Handed)>,
}

#[derive(Clone)]
struct Handed {
    job: String,
    attempt: String,
    key: String,
}

impl<'a> Worker<'a> {
    pub fn new(stage: &'a Stage, number: usize) -> Self {
        Self { stage, number, manners: Manners::new(stage.seed, number), late: Vec::new() }
    }

    /// Goes on until everything is over.
    pub fn run(mut self) {
        while !self.stage.is_over() {
            let now = Instant::now();
            // In calm nobody has to wait for one who is late on purpose.
            let calm = self.stage.is_calm();
            let (due, late) = self.late.drain(..).partition(|(at, _)| calm || *at <= now);
            self.late = late;
            for (_, handed) in due {
                self.complete(&handed);
            }
            match self.pull() {
                Some(handed) => self.work(handed),
                None => self.stage.think(REST),
            }
        }
    }

    fn work(&mut self, handed: Handed) {
        match self.manners.next() {
            Manner::IsHeardOf => {
                let _ = self.post(&handed, "heartbeat", json!({ "progress": { "done": 1, "of": 2 } }));
                self.complete(&handed);
            }
            Manner::Fails => {
                let _ = self.post(&handed, "fail", json!({ "reason": "drilled" }));
            }
            Manner::Vanishes if !self.stage.is_calm() => {}
            Manner::IsLate if !self.stage.is_calm() && self.late.len() < MAX_LATE => {
                self.late.push((Instant::now() + PAST_LEASE, handed));
            }
            Manner::Does | Manner::Vanishes | Manner::IsLate => self.complete(&handed),
        }
    }

    fn pull(&self) -> Option<Handed> {
        let body = json!({
            "worker_id": format!("drill-worker-{}", self.number),
            "lanes": [LANE],
            "wait_seconds": WAIT_SECONDS,
        });
        let body = body.to_string();
        let request =
            Request { method: "POST", path: "/jobs/next", key: None, body: Some(&body), within: PULL_WITHIN };
        // One that is handed out and does not arrive is a lost lease.
        let Sent::Answered(answer) = self.stage.send(&request, Sending::Whole) else { return None };
        let handed = &answer.json()["job"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Handed {
            job: text(&handed["job_id"])?,
            attempt: text(&handed["attempt_id"])?,
            key: text(&handed["input"]["drill"])?,
        })
    }

    fn complete(&self, handed: &Handed) {
        let Some(answer) = self.post(handed, "complete", json!({ "result": { "by": handed.attempt } }))
        else {
            return;
        };
        let mut oracle = self.stage.oracle();
        if answer.is_success() {
            oracle.reported(&handed.key, &handed.attempt);
        } else if answer.status == 409 {
            oracle.tally.stale += 1;
        }
    }

    fn post(&self, handed: &Handed, verb: &str, mut body: Value) -> Option<Answer> {
        body["attempt_id"] = json!(handed.attempt);
        let (path, body) = (format!("/jobs/{}/{verb}", handed.job), body.to_string());
        // The same report again changes nothing: it needs no key.
        let request =
            Request { method: "POST", path: &path, key: None, body: Some(&body), within: ANSWER_WITHIN };
        self.stage.ask(&request, Sending::Whole, PATIENCE, || self.stage.oracle().tally.ambiguous += 1)
    }
}
