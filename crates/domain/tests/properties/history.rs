//! Properties of whole histories: they fold again, ends absorb, attempts rise, nothing grows without limit.

use std::cell::RefCell;
use std::collections::BTreeMap;

use domain::job::{JobFact, JobState, JobStateName, Trigger};
use domain::limits::{KEPT_ATTEMPTS, KEPT_CANCEL_ANSWERS, KEPT_CANCEL_REPEATS, KEPT_EVIDENCE, KEPT_NOTES};
use domain::operation::{Operation, OperationFact, OperationStatus};
use domain::{Fact, Record, RecordId, Refusal, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::orders::{Beginning, Orders, START, Step, beginning, step};
use crate::world::{Outcome, World};

const DEFAULT_CASES: u32 = 512;

/// What was seen in a batch, and how often.
#[derive(Default)]
struct Seen(RefCell<BTreeMap<String, u32>>);

impl Seen {
    fn count(&self, what: impl Into<String>) {
        *self.0.borrow_mut().entry(what.into()).or_default() += 1;
    }

    /// A batch in which this never happened proves nothing. Batches made smaller on purpose may.
    fn must_have(&self, wanted: &[&str]) {
        let seen = self.0.borrow();
        let missing: Vec<&&str> = wanted.iter().filter(|wanted| !seen.contains_key(**wanted)).collect();
        assert!(missing.is_empty() || cases() < DEFAULT_CASES, "never happened: {missing:?}; seen: {seen:?}");
    }
}

fn cases() -> u32 {
    let asked = std::env::var_os("LONGHAUL_CASES");
    asked.and_then(|text| text.to_str()?.parse().ok()).unwrap_or(DEFAULT_CASES)
}

/// Tries the property over so many histories, the same ones in every run.
fn try_all<S: Strategy>(histories: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    if let Err(failure) = TestRunner::new_with_rng(config, random).run(&histories, property) {
        panic!("{failure}");
    }
}

fn any_history() -> impl Strategy<Value = (Beginning, Vec<Step>)> {
    (beginning(), proptest::collection::vec(step(), 1..90))
}

/// A few steps, over and over.
fn repeating_history() -> impl Strategy<Value = (Beginning, Vec<Step>)> {
    let few = proptest::collection::vec(step(), 1..6);
    (beginning(), few.prop_map(|few| few.repeat(120)))
}

/// Walks a history, and shows each step: the world before, the one after, when, and what became of it.
fn walk(
    beginning: Beginning,
    steps: &[Step],
    orders: Orders,
    mut look: impl FnMut(&World, &World, Timestamp, &Outcome) -> Result<(), TestCaseError>,
) -> Result<World, TestCaseError> {
    let mut world = beginning.world();
    let mut now = START;
    for step in steps {
        now = step.at(now);
        let before = world.clone();
        let (id, command) = step.order(orders, &world, now);
        let outcome = world.execute(id, command, now);
        look(&before, &world, now, &outcome)?;
    }
    Ok(world)
}

#[test]
fn every_history_folds_again_from_its_facts_to_the_same_state() {
    let seen = Seen::default();
    try_all(any_history(), |(beginning, steps)| {
        let world = walk(beginning, &steps, Orders::Any, |before, after, _, outcome| {
            seen.count(after.job().state.name().as_str());
            after.operations().for_each(|operation| seen.count(format!("op {}", operation.status())));
            if let Outcome::Refused(refusal) = outcome {
                seen.count(refusal.code());
                let kept = after.ledger.len() - before.ledger.len();
                let late = matches!(refusal, Refusal::StaleAttempt | Refusal::Terminal { .. });
                let new = &after.ledger[before.ledger.len()..];
                // What may run outside is written down also when no more reports are kept.
                let is_full = before.job().evidence.len() == KEPT_EVIDENCE;
                let orphan = match new {
                    [first, _, _] => matches!(first.fact, Fact::Job(JobFact::StaleReportKept(_))),
                    [first, _] => is_full && matches!(first.fact, Fact::Operation(_)),
                    _ => false,
                };
                if orphan {
                    seen.count("orphan");
                }
                prop_assert!(kept == 0 || kept == 1 || orphan, "a refusal leaves at most evidence: {new:?}");
                prop_assert!(kept != 1 || late || after.job().evidence.len() > before.job().evidence.len());
            }
            Ok(())
        })?;
        let again = world.folded_again();
        prop_assert_eq!(&again.records, &world.records);
        prop_assert_eq!(&again.ledger, &world.ledger);
        Ok(())
    });
    let states = JobStateName::ALL.map(JobStateName::as_str);
    seen.must_have(&states);
    let statuses = OperationStatus::ALL.map(|status| format!("op {status}"));
    seen.must_have(&statuses.each_ref().map(String::as_str));
    seen.must_have(&["stale_attempt", "attempt_required", "terminal", "lease_held", "deadline_elapsed"]);
}

#[test]
fn every_state_reads_back_from_its_text() {
    try_all(any_history(), |(beginning, steps)| {
        let world = walk(beginning, &steps, Orders::Any, |_, _, _, _| Ok(()))?;
        for record in world.records.values() {
            let text = serde_json::to_string(record).expect("a record is JSON");
            let read = Record::read(&record.id(), &mut serde_json::Deserializer::from_str(&text));
            prop_assert_eq!(&read.expect("its text is the record"), record);
        }
        Ok(())
    });
}

// conforms: R41
#[test]
fn an_end_is_left_only_by_a_documented_repair() {
    let seen = Seen::default();
    try_all(any_history(), |(beginning, steps)| {
        walk(beginning, &steps, Orders::Any, |before, after, _, _| {
            let (from, to) = (&before.job().state, &after.job().state);
            if !from.name().is_terminal() || from == to {
                return Ok(());
            }
            let facts = &after.ledger[before.ledger.len()..];
            let [line] = facts else {
                return Err(TestCaseError::fail(format!("{from:?} left by {facts:?}")));
            };
            let repair = match (from, &line.fact) {
                (
                    JobState::Failed | JobState::Unavailable { .. },
                    Fact::Job(JobFact::Dispatched { trigger: Trigger::Run | Trigger::Retry, .. }),
                ) => "a new attempt",
                (
                    JobState::Unavailable { lease_lost: true },
                    Fact::Job(JobFact::Completed(_) | JobFact::Failed(_)),
                ) => "a late report",
                _ => return Err(TestCaseError::fail(format!("{from:?} became {to:?} by {line:?}"))),
            };
            seen.count(repair);
            Ok(())
        })?;
        Ok(())
    });
    seen.must_have(&["a new attempt", "a late report"]);
}

#[test]
fn attempt_numbers_strictly_rise_and_the_end_is_that_of_the_newest() {
    let seen = Seen::default();
    try_all(any_history(), |(beginning, steps)| {
        let world = walk(beginning, &steps, Orders::Any, |_, after, _, _| {
            let job = after.job();
            let numbers: Vec<u32> = job.attempts.iter().map(|attempt| attempt.number).collect();
            prop_assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
            prop_assert_eq!(numbers.last().copied().unwrap_or(0), job.attempt_count);
            let Some((newest, older)) = job.attempts.split_last() else { return Ok(()) };
            prop_assert!(older.iter().all(|attempt| attempt.end.is_some()));
            let queued = job.state.name() == JobStateName::Queued;
            let over = queued || job.state.name().is_terminal();
            prop_assert_eq!(newest.end.is_some(), over, "{:?} while {:?}", &newest.end, &job.state);
            Ok(())
        })?;
        let dispatched = world.ledger.iter().filter_map(|line| {
            if let Fact::Job(JobFact::Dispatched { number, .. }) = line.fact { Some(number) } else { None }
        });
        let numbers: Vec<u32> = dispatched.collect();
        prop_assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        if numbers.len() > 3 {
            seen.count("a fourth attempt");
        }
        Ok(())
    });
    seen.must_have(&["a fourth attempt"]);
}

#[test]
fn one_job_waits_for_one_open_operation_and_for_no_other() {
    let seen = Seen::default();
    try_all(any_history(), |(beginning, steps)| {
        walk(beginning, &steps, Orders::FromOutside, |_, after, _, _| {
            let open: Vec<&Operation> =
                after.operations().filter(|operation| operation.ended.is_none()).collect();
            let JobState::AwaitingExternal { operation, .. } = &after.job().state else {
                prop_assert!(open.is_empty(), "nobody waits for {open:?}");
                return Ok(());
            };
            seen.count("a job waits");
            prop_assert_eq!(open.len(), 1);
            prop_assert_eq!(&open[0].id, operation);
            let current = after.job().last_attempt().map(|attempt| &attempt.id);
            prop_assert_eq!(current, Some(&open[0].link.attempt_id));
            Ok(())
        })?;
        Ok(())
    });
    seen.must_have(&["a job waits"]);
}

/// Nobody ever waited for it: it was given up as it was written down.
fn is_orphan_from_the_start(operation: &Operation) -> bool {
    operation.ended.as_ref().is_some_and(|ended| ended.at == operation.dispatched_at)
}

// conforms: L34 O41
#[test]
fn an_operation_stays_within_what_the_host_granted_and_ends_once() {
    let seen = Seen::default();
    try_all(any_history(), |(beginning, steps)| {
        walk(beginning, &steps, Orders::Any, |before, after, now, _| {
            for operation in after.operations() {
                let policy = &operation.policy;
                let granted = operation.dispatched_at.plus_seconds(policy.max_ttl_seconds);
                prop_assert!(operation.expires_at <= granted);
                prop_assert!(operation.polls <= policy.max_attempts);
                if let (Some(limit), false) = (after.job().expires_at(), is_orphan_from_the_start(operation))
                {
                    prop_assert!(operation.expires_at <= limit, "it outlives its job");
                }
                let Some(Record::Operation(old)) = before.records.get(&RecordId::from(operation.id.clone()))
                else {
                    continue;
                };
                prop_assert_eq!(&operation.link, &old.link);
                prop_assert_eq!(operation.dispatched_at, old.dispatched_at);
                prop_assert_eq!(&operation.external_job_id, &old.external_job_id);
                prop_assert!(operation.expires_at <= old.expires_at, "its life was prolonged");
                prop_assert!(old.ended.is_none() || old.ended == operation.ended, "it ended twice");
                prop_assert!(
                    !(old.status() == OperationStatus::Running
                        && operation.status() == OperationStatus::Pending)
                );
            }
            for line in &after.ledger[before.ledger.len()..] {
                let Some(Record::Operation(operation)) = after.records.get(&line.record) else { continue };
                let shortest = now.plus_seconds(u64::from(operation.policy.min_retry_after_seconds));
                if let Fact::Operation(OperationFact::Polled(polled)) = &line.fact {
                    seen.count("polled");
                    prop_assert!(polled.next_poll_at >= shortest);
                } else if let Fact::Operation(OperationFact::Contradicted { .. }) = &line.fact {
                    seen.count("contradicted");
                }
            }
            Ok(())
        })?;
        Ok(())
    });
    seen.must_have(&["polled", "contradicted"]);
}

#[test]
fn no_record_grows_without_limit() {
    let seen = Seen::default();
    try_all(repeating_history(), |(beginning, steps)| {
        let world = walk(beginning, &steps, Orders::Any, |_, after, _, _| {
            let job = after.job();
            let answers = job.cancel.as_ref().map_or(0, |cancel| cancel.answers.len());
            let repeats = job.cancel.as_ref().map_or(0, |cancel| cancel.repeated.len());
            for (what, length, limit) in [
                ("notes", job.notes.len(), KEPT_NOTES),
                ("attempts", job.attempts.len(), KEPT_ATTEMPTS),
                ("evidence", job.evidence.len(), KEPT_EVIDENCE),
                ("cancel answers", answers, KEPT_CANCEL_ANSWERS),
                ("repeated cancels", repeats, KEPT_CANCEL_REPEATS),
                ("bodies", job.bodies.len(), domain::BodyName::ALL.len()),
            ] {
                prop_assert!(length <= limit, "{length} {what}");
                if length == limit {
                    seen.count(what);
                }
            }
            for operation in after.operations() {
                let limit = usize::from(operation.policy.diagnostics_max_items);
                let answers = operation.cancel.as_ref().map_or(0, |cancel| cancel.answers.len());
                prop_assert!(operation.diagnostics.len() <= limit);
                prop_assert!(answers <= KEPT_CANCEL_ANSWERS);
                if operation.diagnostics.len() == limit {
                    seen.count("diagnostics");
                }
            }
            Ok(())
        })?;
        let evidence =
            world.ledger.iter().filter(|line| matches!(line.fact, Fact::Job(JobFact::StaleReportKept(_))));
        prop_assert!(evidence.count() <= KEPT_EVIDENCE, "the ledger takes no more evidence than is kept");
        Ok(())
    });
    seen.must_have(&["notes", "attempts", "evidence", "diagnostics"]);
}
