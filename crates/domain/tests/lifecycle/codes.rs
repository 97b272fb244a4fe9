//! The codes of refusals: stable, unique, and each of them reached.

use std::collections::BTreeSet;

use domain::claim::{Lease, acquire, admit};
use domain::event::{self, Event, EventCommand, EventFact, NewEvent, Origin, Settlement, Settler};
use domain::job::{self, Job, JobCommand, NewJob, Trigger};
use domain::limits::MAX_TITLE_BYTES;
use domain::run::{self, NewRun, Node, NodeKind, OnError, Run, RunCommand, RunFact, Shape, StepEnd};
use domain::{
    BodyName, BodyRef, Decision, Digest, EventId, Fence, JobId, Json, OwnerId, RecordId, Refusal, RunId,
};

use crate::job_situations::{NOW, new_job};
use crate::walk;

/// One of each refusal, or more.
fn every_refusal() -> Vec<Refusal> {
    let walked = walk::jobs().refusals().into_iter().chain(walk::operations().refusals());
    let others = [claims().to_vec(), routing(), limits(), not_of_the_rules()];
    walked.chain(others.into_iter().flatten()).collect()
}

#[test]
fn every_code_is_in_snake_case_and_names_one_refusal() {
    let codes: BTreeSet<&str> = Refusal::CODES.iter().copied().collect();
    assert_eq!(codes.len(), Refusal::CODES.len(), "{codes:?}");
    for code in codes {
        assert!(is_in_snake_case(code), "{code}");
    }
}

fn is_in_snake_case(code: &str) -> bool {
    code.split('_').all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// Longer than any reason of ours.
const LONG_REASON_BYTES: usize = 40;

// conforms: R59
#[test]
fn every_state_reason_is_a_short_code() {
    let reasons = walk::state_reasons();
    for reason in &reasons {
        assert!(is_in_snake_case(reason) && reason.len() < LONG_REASON_BYTES, "{reason}");
    }
    for known in ["cancel_requested", "deadline_elapsed", "attempt_failed", "runner_interrupted"] {
        assert!(reasons.contains(known), "{known}: {reasons:?}");
    }
}

#[test]
fn every_message_is_lower_case_without_a_full_stop() {
    for refusal in every_refusal() {
        let message = refusal.to_string();
        assert!(message.starts_with(|first: char| first.is_lowercase()), "{message}");
        assert!(!message.ends_with('.'), "{message}");
    }
}

#[test]
fn every_code_is_reached() {
    let reached: BTreeSet<&str> = every_refusal().iter().map(Refusal::code).collect();
    let all: BTreeSet<&str> = Refusal::CODES.iter().copied().collect();
    assert_eq!(reached, all);
}

/// Of claims: one that lives is not taken, one that is lost writes nothing.
fn claims() -> [Refusal; 2] {
    let (ours, theirs) = (OwnerId::new("node-1"), OwnerId::new("node-2"));
    let claim = acquire(None, &ours, NOW, Lease::DEFAULT).expect("a free claim is taken");
    let held = acquire(Some(&claim), &theirs, NOW, Lease::DEFAULT).expect_err("it lives");
    let lost = admit(Some(&claim), &Fence { owner: theirs, claim_version: 0 }).expect_err("it is ours");
    [held, lost]
}

/// Of events and runs: what is not over is not forgotten, and a run that has gone on does not come back.
fn routing() -> Vec<Refusal> {
    let event = Event::new(
        EventId::new("event-1"),
        &NewEvent::new("tide", body_ref(BodyName::Payload), Origin::Published { by: None }),
        NOW,
    );
    let tolerant = Node {
        id: "a".to_owned(),
        kind: NodeKind::Step,
        next: None,
        conditional: false,
        on_error: OnError::Continue,
    };
    let begun = NewRun {
        pipeline: "tides".to_owned(),
        version: "1".to_owned(),
        shape: Shape(vec![tolerant]),
        plan: body_ref(BodyName::Plan),
        input: body_ref(BodyName::Input),
        event_id: event.id.clone(),
        parent: None,
        circle: None,
        depth: 0,
        max_depth: None,
        dedupe_key: None,
        correlation: None,
    };
    let mut run = Run::new(RunId::new("run-1"), &begun, NOW);
    let open = refusal(run::decide(&run, &RunCommand::Retire, NOW));
    let job_id = JobId::new("work-1");
    for fact in [
        RunFact::StepStarted { visit: 0, job_id: job_id.clone() },
        RunFact::StepEnded { visit: 0, end: StepEnd::Failed { code: "boom".to_owned() } },
    ] {
        run::apply(&mut run, &fact, NOW).expect("it fits");
    }
    let moved_on = refusal(run::decide(&run, &RunCommand::ReopenStep { visit: 0, job_id }, NOW));
    let waits = refusal(event::decide(&event, &EventCommand::Retire, NOW));
    let mut claimants = event.clone();
    claimants.said.settled_by = Settler::Claimants;
    let settle = EventCommand::Settle { routes: Vec::new(), moves_its_run: false };
    let not_the_routers = refusal(event::decide(&claimants, &settle, NOW));
    let mut settled = event;
    event::apply(&mut settled, &EventFact::Settled(Settlement::default()), NOW).expect("it waits");
    let settled = settled.may_be_claimed().err();
    [open, moved_on, waits, not_the_routers, settled].into_iter().flatten().collect()
}

/// Of limits: what is too long, and what asks for too much.
fn limits() -> Vec<Refusal> {
    let long = |new: &mut NewJob| new.spec.title = "x".repeat(MAX_TITLE_BYTES + 1);
    let often = |new: &mut NewJob| new.spec.retry.max_attempts = u32::MAX;
    let changes: [fn(&mut NewJob); 2] = [long, often];
    let refused = changes.map(|change| {
        let mut new = new_job();
        change(&mut new);
        let id = RecordId::parse("work-1").expect("that is a job's id");
        refusal(domain::record::decide(None, &id, &JobCommand::Create(Box::new(new)).into(), NOW))
    });
    refused.into_iter().flatten().collect()
}

/// What no state decides: texts are refused where they are read, and a command goes to its own kind of record.
fn not_of_the_rules() -> Vec<Refusal> {
    let operation = RecordId::parse("op-1").expect("that is an operation's id");
    let wrong_kind = domain::record::decide(None, &operation, &JobCommand::Expire.into(), NOW);
    let unread = [
        RecordId::parse("job-1").expect_err("no record has such an id"),
        Json::parse("{").expect_err("that is not JSON"),
        Json::parse(r#"{"a":1,"a":2}"#).expect_err("a key stands twice"),
        Json::parse(r#""\u0000""#).expect_err("it cannot be stored"),
        body_ref(BodyName::Result).check_named(BodyName::Answer).expect_err("it is no answer"),
        // Said by the engine, which knows whether an order is given under a claim.
        Refusal::ClaimRequired,
    ];
    unread.into_iter().chain(refusal(wrong_kind)).chain(waits_for_puller()).collect()
}

/// A job that is due in a lane that others pull from is not run by the daemon.
fn waits_for_puller() -> Option<Refusal> {
    let mut new = new_job();
    new.spec.executor = None;
    new.spec.lane = Some("print".to_owned());
    new.due_at = None;
    let job = Job::new(JobId::new("work-1"), &new, NOW);
    refusal(job::decide(&job, &JobCommand::QueueAgain { trigger: Trigger::Run }, NOW))
}

fn body_ref(name: BodyName) -> BodyRef {
    BodyRef { name, sha256: Digest([0; 32]), size: 1 }
}

fn refusal<F>(decision: Decision<F>) -> Option<Refusal> {
    match decision {
        Decision::Refused { refusal, .. } => Some(refusal),
        Decision::Facts { .. } | Decision::Nothing => None,
    }
}
