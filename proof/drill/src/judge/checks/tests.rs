//! Each rule sees what it is for, and is silent otherwise.

use super::*;
use crate::kind::Kind;

/// A ledger with one job of key `k`, and these facts after its creation: name and payload.
fn history(facts: &[(&str, &str)]) -> History {
    let mut history = History::default();
    take(&mut history, "work-1", "k", facts);
    history
}

fn take(history: &mut History, id: &str, key: &str, facts: &[(&str, &str)]) {
    let spec = format!(r#"{{"spec":{{"source_kind":"drill","source_id":"{key}","executor":"grind"}}}}"#);
    let all = [("created", spec.as_str())].into_iter().chain(facts.iter().copied());
    for (version, (name, said)) in all.enumerate() {
        let version = version + 1;
        history.take(&format!(
            r#"{{"position":{version},"stream":"{id}","version":{version},"kind":"job.{name}/1","payload":{{"{name}":{said}}}}}"#
        ));
    }
}

fn oracle() -> Oracle {
    let mut oracle = Oracle::default();
    oracle.asks("k", Kind::Noop, "{}");
    oracle.accepted("k", "work-1", "a");
    oracle
}

fn attempt(number: u64, asked: &str) -> String {
    format!(r#"{{"attempt_id":"attempt-{number}","number":{number},"owner":"daemon-a"{asked}}}"#)
}

#[test]
fn acknowledged_job_that_is_gone_or_stands_under_another_key_is_found() {
    assert_eq!(every_acknowledged_key_is_there(&oracle(), &history(&[]), 1), []);
    assert_eq!(every_acknowledged_key_is_there(&oracle(), &History::default(), 1).len(), 1);
    // Acknowledged after the ledger was read.
    assert_eq!(every_acknowledged_key_is_there(&oracle(), &History::default(), 0), []);
    let mut other = History::default();
    take(&mut other, "work-1", "other", &[]);
    assert_eq!(every_acknowledged_key_is_there(&oracle(), &other, 1).len(), 1);
}

#[test]
fn second_job_under_one_key_is_found() {
    let mut history = history(&[]);
    assert_eq!(at_most_one_job_per_key(&history), []);
    take(&mut history, "work-2", "k", &[]);
    assert_eq!(at_most_one_job_per_key(&history).len(), 1);
}

#[test]
fn job_of_a_key_that_was_refused_or_never_sent_is_found() {
    let found = |standing: fn(&mut Oracle)| {
        let mut oracle = Oracle::default();
        oracle.asks("k", Kind::Noop, "{}");
        standing(&mut oracle);
        what_was_refused_left_nothing(&oracle, &history(&[])).len()
    };
    assert_eq!(found(|_| ()), 0, "it is under way");
    assert_eq!(found(|oracle| oracle.never_sent("k")), 1);
    assert_eq!(found(|oracle| oracle.refused("k", "no")), 1);
    assert_eq!(found(|oracle| oracle.unanswered("k")), 0);
    assert_eq!(found(|oracle| oracle.accepted("k", "work-1", "a")), 0);
    assert_eq!(what_was_refused_left_nothing(&Oracle::default(), &history(&[])).len(), 1);
}

#[test]
fn nothing_follows_an_end_but_what_was_asked_for_or_a_late_report() {
    let found = |facts: &[(&str, &str)]| one_end_and_nothing_after_it(&history(facts)).len();
    let (first, second) = (attempt(1, ""), attempt(2, ""));
    let asked = attempt(2, r#","trigger":"retry""#);
    assert_eq!(found(&[("dispatched", &first), ("completed", "{}")]), 0);
    assert_eq!(found(&[("dispatched", &first), ("completed", "{}"), ("completed", "{}")]), 1);
    assert_eq!(found(&[("dispatched", &first), ("completed", "{}"), ("dispatched", &asked)]), 1);
    assert_eq!(found(&[("dispatched", &first), ("failed", "{}"), ("dispatched", &second)]), 1);
    assert_eq!(found(&[("dispatched", &first), ("failed", "{}"), ("dispatched", &asked)]), 0);
    assert_eq!(found(&[("failed", "{}"), ("requeued", r#"{"cause":"asked"}"#)]), 0);
    assert_eq!(found(&[("failed", "{}"), ("requeued", r#"{"cause":"lease_lost"}"#)]), 1);
    let lost = ("became_unavailable", r#"{"cause":"lease_lost"}"#);
    assert_eq!(found(&[lost, ("completed", "{}")]), 0);
    assert_eq!(found(&[("became_unavailable", r#"{"cause":"reported"}"#), ("completed", "{}")]), 1);
    assert_eq!(found(&[("cancelled", r#"{"cause":"confirmed"}"#), ("started", "{}")]), 1);
}

#[test]
fn attempt_number_that_is_used_again_is_found() {
    let (first, second) = (attempt(1, ""), attempt(2, ""));
    assert_eq!(attempts_rise(&history(&[("dispatched", &first), ("dispatched", &second)])), []);
    assert_eq!(attempts_rise(&history(&[("dispatched", &first), ("dispatched", &first)])).len(), 1);
}

#[test]
fn start_too_many_is_found_by_its_key_and_by_its_job() {
    let start = |key: &str| Start { key: Some(key.to_owned()), job: "k".to_owned() };
    let intended = history(&[("submit_intended", "{}")]);
    let found = |starts: &[Start]| accepted_starts(starts, &oracle(), &intended).len();
    assert_eq!(found(&[start("op-1")]), 0);
    assert_eq!(found(&[start("op-1"), start("op-2")]), 1);
    assert_eq!(found(&[start("op-1"), start("op-1")]), 2);
    assert_eq!(found(&[Start { key: None, job: "k".to_owned() }]), 1);
    // A job that the oracle does not know yet was created by a request that was not answered.
    assert_eq!(found(&[Start { key: Some("op-9".to_owned()), job: "unknown".to_owned() }]), 0);
}

#[test]
fn child_too_many_or_too_few_is_found() {
    let line = |stream: &str, version: u64, kind: &str, payload: &str| {
        format!(
            r#"{{"position":9,"stream":"{stream}","version":{version},"kind":"{kind}/1","payload":{payload}}}"#
        )
    };
    let published = r#"{"published":{"type":"drill.ground","origin":{"emitted":{"job_id":"work-1"}}}}"#;
    let done = [("completed", "{}")];
    assert_eq!(one_child_of_each(&history(&done)).len(), 1, "completed without an event");
    let mut one = history(&done);
    one.take(&line("event-1", 1, "event.published", published));
    assert_eq!(one_child_of_each(&one), []);
    one.take(&line("event-2", 1, "event.published", published));
    assert_eq!(one_child_of_each(&one).len(), 1, "two events of one job");

    let started = r#"{"started":{"event_id":"event-1","pipeline":"mill"}}"#;
    let step = |job: &str| format!(r#"{{"step_started":{{"visit":0,"job_id":"{job}"}}}}"#);
    let mut runs = History::default();
    runs.take(&line("run-1", 1, "run.started", started));
    runs.take(&line("run-1", 2, "run.step_started", &step("work-a")));
    assert_eq!(one_child_of_each(&runs), []);
    runs.take(&line("run-1", 3, "run.step_started", &step("work-b")));
    runs.take(&line("run-2", 1, "run.started", started));
    assert_eq!(one_child_of_each(&runs).len(), 2, "two jobs of a visit, two runs of an event");
}

#[test]
fn honest_work_completes_or_was_asked_to_stop() {
    let ended = |state: &str| history(&[(state, r#"{"cause":"confirmed"}"#)]);
    assert_eq!(work_ends_as_it_must(&oracle(), &ended("completed")), []);
    assert_eq!(work_ends_as_it_must(&oracle(), &ended("failed")).len(), 1);
    assert_eq!(work_ends_as_it_must(&oracle(), &ended("cancelled")).len(), 1);
    let mut asked = oracle();
    asked.entry_mut("k").unwrap().cancel_asked = true;
    assert_eq!(work_ends_as_it_must(&asked, &ended("cancelled")), []);
    assert_eq!(work_ends_as_it_must(&asked, &ended("failed")).len(), 1);
    // Its worker failed before it heard that it should stop.
    let mut pulled = asked;
    pulled.entry_mut("k").unwrap().kind = Kind::Pulled;
    let failed = [("cancel_requested", "{}"), ("failed", r#"{"cause":"reported"}"#)];
    assert_eq!(work_ends_as_it_must(&pulled, &history(&failed)), []);
    assert_eq!(work_ends_as_it_must(&pulled, &ended("failed")).len(), 1, "the request came after the end");
    pulled.entry_mut("k").unwrap().cancel_asked = false;
    assert_eq!(work_ends_as_it_must(&pulled, &history(&failed)).len(), 1);
}

#[test]
fn accepted_report_that_is_not_the_end_is_found() {
    let mut oracle = oracle();
    oracle.reported("k", "attempt-1");
    let (first, second) = (attempt(1, ""), attempt(2, ""));
    let found = |facts: &[(&str, &str)]| accepted_report_is_the_end(&oracle, &history(facts), 2).len();
    assert_eq!(found(&[("dispatched", &first), ("completed", "{}")]), 0);
    assert_eq!(found(&[("dispatched", &first)]), 1);
    assert_eq!(found(&[("dispatched", &first), ("dispatched", &second), ("completed", "{}")]), 1);
}

#[test]
fn attempt_that_ran_twice_or_is_not_known_is_found() {
    let first = attempt(1, "");
    let one = history(&[("dispatched", &first)]);
    assert_eq!(no_attempt_runs_twice("work-1 1\n", &one), []);
    assert_eq!(no_attempt_runs_twice("work-1 1\nwork-1 1\n", &one).len(), 1);
    assert_eq!(no_attempt_runs_twice("work-1 2\n", &one).len(), 1);
}

#[test]
fn missing_fact_and_unreadable_line_are_found() {
    let mut history = history(&[]);
    assert_eq!(facts_are_in_turn(&history), []);
    history.take(
        r#"{"position":9,"stream":"work-1","version":3,"kind":"job.completed/1","payload":{"completed":{}}}"#,
    );
    history.take("{");
    assert_eq!(facts_are_in_turn(&history).len(), 2);
}
