//! The invariants, one function each: what the store says against what the oracle knows. Pure.

use std::collections::{BTreeMap, HashMap};

use crate::finding::Finding;
use crate::history::{History, Job, Move};
use crate::kind::PLUGIN;
use crate::oracle::{Oracle, Standing};

pub const PRESENT: &str = "every acknowledged key is there";
pub const ONE_JOB: &str = "at most one job per key";
pub const NOTHING: &str = "what was refused or never sent left nothing";
pub const ONE_END: &str = "at most one end, and nothing after it";
pub const RISING: &str = "attempts rise one by one";
pub const ONE_START: &str = "at most one accepted start per operation";
pub const ONE_CHILD: &str = "one run per event and one job per step";
pub const RIGHT_END: &str = "work ends as it must";
pub const REPORTED: &str = "an accepted report is the end";
pub const ONCE: &str = "no attempt runs twice";
pub const IN_TURN: &str = "the facts of a record are in turn";

/// A start that the service has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The operation, as the daemon names it.
    pub key: Option<String>,
    /// The job, as the drill names it.
    pub job: String,
}

/// Everything that the ledger alone, or with the oracle, can tell. What was acknowledged after `until` the ledger may not have yet.
pub fn all(oracle: &Oracle, history: &History, until: u64) -> Vec<Finding> {
    let mut found = every_acknowledged_key_is_there(oracle, history, until);
    found.extend(at_most_one_job_per_key(history));
    found.extend(what_was_refused_left_nothing(oracle, history));
    found.extend(one_end_and_nothing_after_it(history));
    found.extend(attempts_rise(history));
    found.extend(one_child_of_each(history));
    found.extend(work_ends_as_it_must(oracle, history));
    found.extend(accepted_report_is_the_end(oracle, history, until));
    found.extend(facts_are_in_turn(history));
    found
}

pub fn every_acknowledged_key_is_there(oracle: &Oracle, history: &History, until: u64) -> Vec<Finding> {
    let missing = |(key, entry): (&str, &crate::oracle::Entry)| {
        let id = entry.id().filter(|_| entry.since <= until)?;
        if history.events.contains_key(id) {
            return None;
        }
        match history.jobs.get(id) {
            None => Some(Finding::new(
                PRESENT,
                id,
                format!("it was acknowledged under {key} and is not in the ledger"),
            )),
            Some(job) if job.key.as_deref() != Some(key) => {
                let what = format!("it was acknowledged under {key} and stands under {:?}", job.key);
                Some(Finding::new(PRESENT, id, what))
            }
            Some(_) => None,
        }
    };
    oracle.entries().filter_map(missing).collect()
}

pub fn at_most_one_job_per_key(history: &History) -> Vec<Finding> {
    let mut ids: HashMap<&str, Vec<&str>> = HashMap::new();
    for (id, job) in &history.jobs {
        if let Some(key) = &job.key {
            ids.entry(key).or_default().push(id);
        }
    }
    for ids in ids.values_mut() {
        ids.sort_unstable();
    }
    let doubled = ids.into_iter().filter(|(_, ids)| ids.len() > 1);
    doubled.map(|(key, ids)| Finding::new(ONE_JOB, key, format!("it has {}", ids.join(" and ")))).collect()
}

pub fn what_was_refused_left_nothing(oracle: &Oracle, history: &History) -> Vec<Finding> {
    let left = |(id, job): (&String, &Job)| {
        let key = job.key.as_deref()?;
        let what = match oracle.entry(key).map(|entry| &entry.standing) {
            None => "nobody asked for it",
            Some(Standing::Never) => "not all of it was ever sent",
            Some(Standing::Refused) => "it was refused",
            Some(Standing::Unknown | Standing::Accepted { .. }) => return None,
        };
        Some(Finding::new(NOTHING, id, format!("{key} has a job, and {what}")))
    };
    history.jobs.iter().filter_map(left).collect()
}

pub fn one_end_and_nothing_after_it(history: &History) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, job) in &history.jobs {
        let mut end: Option<(&str, Option<&str>)> = None;
        for one in &job.moves {
            if let Some((state, cause)) = end
                && !may_follow(state, cause, one)
            {
                found.push(Finding::new(ONE_END, id, format!("it was {state}, and then came {one:?}")));
            }
            end = match one {
                Move::Ended { state, cause } => Some((state, cause.as_deref())),
                Move::Dispatched { .. } | Move::Requeued { .. } | Move::Went(_) => None,
            };
        }
    }
    found
}

/// The documented repairs, and nothing else.
fn may_follow(state: &str, cause: Option<&str>, one: &Move) -> bool {
    match one {
        Move::Dispatched { asked, .. } => *asked && ["failed", "unavailable"].contains(&state),
        Move::Requeued { cause } => cause == "asked" && ["failed", "unavailable"].contains(&state),
        Move::Ended { state: end, .. } => {
            state == "unavailable" && cause == Some("lease_lost") && ["completed", "failed"].contains(end)
        }
        Move::Went(_) => false,
    }
}

pub fn attempts_rise(history: &History) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, job) in &history.jobs {
        let numbers: Vec<u64> = job
            .moves
            .iter()
            .filter_map(|one| match one {
                Move::Dispatched { number, .. } => Some(*number),
                Move::Requeued { .. } | Move::Went(_) | Move::Ended { .. } => None,
            })
            .collect();
        if numbers.iter().zip(1..).any(|(number, expected)| *number != expected) {
            found.push(Finding::new(RISING, id, format!("{numbers:?}")));
        }
    }
    found
}

/// What the service has accepted: under each key once, and for a job no more often than it was about to be given.
pub fn accepted_starts(starts: &[Start], oracle: &Oracle, history: &History) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut keys: BTreeMap<&str, u64> = BTreeMap::new();
    let mut jobs: BTreeMap<&str, u64> = BTreeMap::new();
    for start in starts {
        *jobs.entry(&start.job).or_default() += 1;
        match &start.key {
            Some(key) => *keys.entry(key).or_default() += 1,
            None => found.push(Finding::new(ONE_START, &start.job, "it was started without a key")),
        }
    }
    for (key, count) in keys.into_iter().filter(|(_, count)| *count > 1) {
        found.push(Finding::new(ONE_START, key, format!("it was started {count} times")));
    }
    for (key, count) in jobs {
        let job = oracle.entry(key).and_then(|entry| entry.id()).and_then(|id| history.jobs.get(id));
        // One that is not known yet was created by a request that was not answered.
        let Some(job) = job else { continue };
        if count > job.intents {
            let what = format!("{count} starts were accepted, {} were written down first", job.intents);
            found.push(Finding::new(ONE_START, key, what));
        }
    }
    found
}

pub fn one_child_of_each(history: &History) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, event) in &history.events {
        if event.settled > 1 {
            found.push(Finding::new(ONE_CHILD, id, format!("it was settled {} times", event.settled)));
        }
    }
    let mut starts: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (id, run) in &history.runs {
        starts.entry((&run.event, &run.pipeline)).or_default().push(id);
        for (visit, jobs) in run.steps.iter().filter(|(_, jobs)| jobs.len() > 1) {
            found.push(Finding::new(
                ONE_CHILD,
                id,
                format!("visit {visit} has the jobs {}", jobs.join(" and ")),
            ));
        }
        if run.ended.len() > 1 {
            found.push(Finding::new(ONE_CHILD, id, format!("it ended {} times", run.ended.len())));
        }
    }
    for ((event, pipeline), runs) in starts.into_iter().filter(|(_, runs)| runs.len() > 1) {
        found.push(Finding::new(ONE_CHILD, event, format!("{pipeline} has the runs {}", runs.join(" and "))));
    }
    let mut emitted: HashMap<&str, u64> = HashMap::new();
    for event in history.events.values() {
        if let Some(job) = &event.emitted_by {
            *emitted.entry(job).or_default() += 1;
        }
    }
    for (id, job) in history.jobs.iter().filter(|(_, job)| job.executor.as_deref() == Some(PLUGIN)) {
        let (count, due) =
            (emitted.get(id.as_str()).copied().unwrap_or_default(), job.end() == Some("completed"));
        if count != u64::from(due) {
            let end = job.end().unwrap_or("open");
            found.push(Finding::new(ONE_CHILD, id, format!("it is {end} and has emitted {count} events")));
        }
    }
    found
}

pub fn work_ends_as_it_must(oracle: &Oracle, history: &History) -> Vec<Finding> {
    let mut found = Vec::new();
    for (key, entry) in oracle.entries() {
        let Some(job) = entry.id().and_then(|id| history.jobs.get(id)) else { continue };
        let Some(end) = job.end() else { continue };
        let stopped = entry.cancel_asked && entry.kind.may_end_stopped(end, job);
        if !stopped && !entry.kind.may_end().contains(&end) {
            let asked = if entry.cancel_asked { "it was asked to stop" } else { "nobody asked to stop it" };
            found.push(Finding::new(
                RIGHT_END,
                entry.id().unwrap_or(key),
                format!("{} work is {end}, and {asked}", entry.kind.name()),
            ));
        }
    }
    found
}

pub fn accepted_report_is_the_end(oracle: &Oracle, history: &History, until: u64) -> Vec<Finding> {
    let mut found = Vec::new();
    for (key, entry) in oracle.entries() {
        let Some(job) = entry.id().and_then(|id| history.jobs.get(id)) else { continue };
        for (attempt, _) in entry.reports.iter().filter(|(_, at)| *at <= until) {
            if job.last_attempt() != Some(attempt) || job.end() != Some("completed") {
                let what = format!(
                    "the report of {attempt} was accepted; it is {:?} by {:?}",
                    job.end(),
                    job.last_attempt()
                );
                found.push(Finding::new(REPORTED, entry.id().unwrap_or(key), what));
            }
        }
    }
    found
}

/// The lines that commands have left, one for each attempt: `job number`.
pub fn no_attempt_runs_twice(effects: &str, history: &History) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut seen: HashMap<&str, u64> = HashMap::new();
    for line in effects.lines() {
        *seen.entry(line).or_default() += 1;
    }
    for (line, count) in seen {
        let Some((id, number)) = line.split_once(' ') else { continue };
        if count > 1 {
            found.push(Finding::new(ONCE, id, format!("attempt {number} has run {count} times")));
        }
        let attempts = history.jobs.get(id).map_or(0, Job::attempts);
        if number.parse::<u64>().is_ok_and(|number| number > attempts) {
            found.push(Finding::new(
                ONCE,
                id,
                format!("attempt {number} has run, the ledger has {attempts}"),
            ));
        }
    }
    found
}

pub fn facts_are_in_turn(history: &History) -> Vec<Finding> {
    let gaps = history.jobs.iter().filter(|(_, job)| !job.gaps.is_empty());
    let mut found: Vec<Finding> =
        gaps.map(|(id, job)| Finding::new(IN_TURN, id, format!("not in turn: {:?}", job.gaps))).collect();
    found.extend(history.unreadable.iter().map(|what| Finding::new(IN_TURN, "the ledger", what.clone())));
    found
}

#[cfg(test)]
mod tests;
