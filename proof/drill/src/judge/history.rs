//! What the store says has happened, folded from the exported ledger line by line. Pure, and no code of the store is used.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;

/// The ledger as far as it was read.
#[derive(Debug, Default)]
pub struct History {
    /// The place of the newest fact.
    pub position: u64,
    /// How many there are.
    pub facts: u64,
    pub jobs: HashMap<String, Job>,
    pub events: HashMap<String, Event>,
    pub runs: HashMap<String, Run>,
    /// The first thing that could not be read.
    pub unreadable: Option<String>,
}

/// One job.
#[derive(Debug, Default)]
pub struct Job {
    /// The key that it was asked for under, if a drill did.
    pub key: Option<String>,
    /// The step of a run that it is.
    pub step: Option<String>,
    pub executor: Option<String>,
    pub moves: Vec<Move>,
    /// The versions of its facts that came twice or not in turn.
    pub gaps: Vec<u64>,
    version: u64,
    /// What it was about to leave outside, by attempt.
    pub intents: u64,
    pub stale_reports: u64,
    /// Whether it was asked to stop while it was under way.
    pub cancel_requested: bool,
}

/// What changed a job's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    Dispatched {
        attempt: String,
        number: u64,
        owner: String,
        asked: bool,
    },
    Requeued {
        cause: String,
    },
    /// Anything that is neither an attempt nor an end.
    Went(&'static str),
    Ended {
        state: &'static str,
        cause: Option<String>,
    },
}

/// One event.
#[derive(Debug, Default)]
pub struct Event {
    /// The job that emitted it.
    pub emitted_by: Option<String>,
    pub kind: String,
    pub settled: u64,
    /// The runs that it started, by pipeline.
    pub started: Vec<(String, String)>,
}

/// One run.
#[derive(Debug, Default)]
pub struct Run {
    pub event: String,
    pub pipeline: String,
    /// The jobs of each visit.
    pub steps: BTreeMap<u64, Vec<String>>,
    pub ended: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    position: u64,
    stream: String,
    version: u64,
    kind: String,
    payload: Value,
}

impl History {
    /// Takes the next lines of the export.
    pub fn take(&mut self, lines: &str) {
        for line in lines.lines() {
            match serde_json::from_str::<Line>(line) {
                Ok(line) => self.fold(line),
                Err(error) => {
                    self.unreadable.get_or_insert_with(|| format!("{error}: {line}"));
                }
            }
        }
    }

    fn fold(&mut self, line: Line) {
        self.position = line.position;
        self.facts += 1;
        let Some((record, name)) = line.kind.split_once('.') else { return };
        let name = name.split('/').next().unwrap_or(name);
        match record {
            "job" => self.jobs.entry(line.stream).or_default().fold(name, line.version, &line.payload),
            "event" => self.events.entry(line.stream).or_default().fold(name, &line.payload[name]),
            "run" => self.runs.entry(line.stream).or_default().fold(name, &line.payload[name]),
            _ => {}
        }
    }

    /// The jobs that are not over.
    pub fn open_jobs(&self) -> Vec<&str> {
        self.jobs.iter().filter(|(_, job)| job.end().is_none()).map(|(id, _)| id.as_str()).collect()
    }

    /// The events and runs that are not over.
    pub fn open_routing(&self) -> Vec<&str> {
        let events = self.events.iter().filter(|(_, event)| event.settled == 0).map(|(id, _)| id.as_str());
        let runs = self.runs.iter().filter(|(_, run)| run.ended.is_empty()).map(|(id, _)| id.as_str());
        events.chain(runs).collect()
    }

    /// Attempts whose lease ended without a word: somebody else went on.
    pub fn taken_over(&self) -> u64 {
        let lost = |job: &Job| {
            let lost = |one: &&Move| match one {
                Move::Requeued { cause } => cause == "lease_lost",
                Move::Ended { cause, .. } => cause.as_deref() == Some("lease_lost"),
                Move::Dispatched { .. } | Move::Went(_) => false,
            };
            job.moves.iter().filter(lost).count() as u64
        };
        self.jobs.values().map(lost).sum()
    }

    /// How many jobs ended in which state.
    pub fn ends(&self) -> BTreeMap<&'static str, u64> {
        let mut ends = BTreeMap::new();
        for job in self.jobs.values() {
            *ends.entry(job.end().unwrap_or("open")).or_default() += 1;
        }
        ends
    }
}

impl Job {
    fn fold(&mut self, name: &str, version: u64, payload: &Value) {
        if version != self.version + 1 {
            self.gaps.push(version);
        }
        self.version = version;
        let said = &payload[name];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let ended = |state| Move::Ended { state, cause: text(&said["cause"]) };
        self.moves.push(match name {
            "created" => {
                let spec = &said["spec"];
                self.key = text(&spec["source_id"]).filter(|_| spec["source_kind"] == "drill");
                self.executor = text(&spec["executor"]);
                self.step = spec.get("step").map(Value::to_string);
                return;
            }
            "dispatched" => Move::Dispatched {
                attempt: text(&said["attempt_id"]).unwrap_or_default(),
                number: said["number"].as_u64().unwrap_or_default(),
                owner: text(&said["owner"]).unwrap_or_default(),
                asked: ["run", "retry"].iter().any(|word| said["trigger"] == *word),
            },
            "requeued" => Move::Requeued { cause: text(&said["cause"]).unwrap_or_default() },
            "completed" => ended("completed"),
            "failed" => ended("failed"),
            "cancelled" => ended("cancelled"),
            "expired" => ended("expired"),
            "became_unavailable" => ended("unavailable"),
            "delivered" => Move::Went("delivered"),
            "started" => Move::Went("running"),
            "input_awaited" => Move::Went("awaiting_input"),
            "blocked" => Move::Went("blocked"),
            "deferred" => Move::Went("awaiting_external"),
            "external_arrived" | "resumed" => Move::Went("running"),
            "submit_intended" => {
                self.intents += 1;
                return;
            }
            "stale_report_kept" => {
                self.stale_reports += 1;
                return;
            }
            "cancel_requested" => {
                self.cancel_requested = true;
                return;
            }
            // Notes and answers change no state.
            _ => return,
        });
    }

    /// How it ended, if it is over.
    pub fn end(&self) -> Option<&'static str> {
        match self.moves.last() {
            Some(Move::Ended { state, .. }) => Some(state),
            Some(Move::Dispatched { .. } | Move::Requeued { .. } | Move::Went(_)) | None => None,
        }
    }

    /// Whether it waits for an answer.
    pub fn awaits_input(&self) -> bool {
        self.moves.last() == Some(&Move::Went("awaiting_input"))
    }

    /// How many attempts there were.
    pub fn attempts(&self) -> u64 {
        self.moves.iter().filter(|one| matches!(one, Move::Dispatched { .. })).count() as u64
    }

    /// The attempt that is or was the last.
    pub fn last_attempt(&self) -> Option<&str> {
        self.moves.iter().rev().find_map(|one| match one {
            Move::Dispatched { attempt, .. } => Some(attempt.as_str()),
            Move::Requeued { .. } | Move::Went(_) | Move::Ended { .. } => None,
        })
    }
}

impl Event {
    fn fold(&mut self, name: &str, said: &Value) {
        match name {
            "published" => {
                said["type"].as_str().unwrap_or_default().clone_into(&mut self.kind);
                self.emitted_by = said["origin"]["emitted"]["job_id"].as_str().map(str::to_owned);
            }
            "settled" => {
                self.settled += 1;
                for route in said["routes"].as_array().into_iter().flatten() {
                    if let Some(run) = route["disposition"]["started"].as_str() {
                        let pipeline = route["pipeline"].as_str().unwrap_or_default().to_owned();
                        self.started.push((pipeline, run.to_owned()));
                    }
                }
            }
            _ => {}
        }
    }
}

impl Run {
    fn fold(&mut self, name: &str, said: &Value) {
        match name {
            "started" => {
                said["event_id"].as_str().unwrap_or_default().clone_into(&mut self.event);
                said["pipeline"].as_str().unwrap_or_default().clone_into(&mut self.pipeline);
            }
            "step_started" => {
                let job = said["job_id"].as_str().unwrap_or_default().to_owned();
                self.steps.entry(said["visit"].as_u64().unwrap_or_default()).or_default().push(job);
            }
            "ended" => self.ended.push(said.as_str().unwrap_or_default().to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn story_of_a_job_is_read_from_its_lines() {
        let mut history = History::default();
        history.take(
            r#"{"position":1,"stream":"work-1","version":1,"kind":"job.created/1","payload":{"created":{"spec":{"source_kind":"drill","source_id":"k","executor":"noop"}}}}
{"position":2,"stream":"work-1","version":2,"kind":"job.dispatched/1","payload":{"dispatched":{"attempt_id":"attempt-1","number":1,"owner":"daemon-a"}}}
{"position":3,"stream":"work-1","version":3,"kind":"job.requeued/1","payload":{"requeued":{"due_at":1,"cause":"lease_lost"}}}
{"position":4,"stream":"work-1","version":4,"kind":"job.dispatched/1","payload":{"dispatched":{"attempt_id":"attempt-2","number":2,"owner":"daemon-b"}}}
{"position":7,"stream":"work-1","version":5,"kind":"job.completed/1","payload":{"completed":{}}}
"#,
        );
        let job = &history.jobs["work-1"];
        assert_eq!((job.key.as_deref(), job.end(), job.attempts()), (Some("k"), Some("completed"), 2));
        assert_eq!((job.last_attempt(), history.taken_over(), history.position), (Some("attempt-2"), 1, 7));
        assert!(history.open_jobs().is_empty() && history.unreadable.is_none() && job.gaps.is_empty());
    }
}
