//! The rules of operations, one behaviour per test: given facts, when a command, then facts or a refusal.
//!
//! Everything goes through `check`, which folds the given facts by `apply` and folds in what was decided. What an
//! end does to the job is decided with it: see `tests/properties/together.rs`.

mod accept;
mod cancel;
mod ends;
mod expiry;
mod orphans;
mod poll;
mod texts;
mod volatile;

use super::*;
use crate::body::{BodyName, BodyRef, Digest};
use crate::job::{JobCommand, OperationEnding, ResultRefs, Retryable};
use crate::policy::{Hint, KindPolicy, LifeLimit, TimedOutPolicy};
use crate::{AttemptId, Decision, Jitter, JobId, Json, OperationId, Refusal, Timestamp};

/// When the given facts happened.
const BEFORE: Timestamp = Timestamp::from_seconds(1_000);
/// When the command comes.
const NOW: Timestamp = Timestamp::from_seconds(1_100);
/// The end of the life of the operation that the histories begin with.
const EXPIRES_AT: Timestamp = Timestamp::from_seconds(1_900);

/// Folds the given facts, decides the command, compares, and answers with the operation as it is afterwards.
#[track_caller]
fn check(
    given: &[OperationFact],
    when: OperationCommand,
    then: Decision<OperationFact>,
) -> Option<Operation> {
    check_at(NOW, given, when, then)
}

#[track_caller]
fn check_at(
    now: Timestamp,
    given: &[OperationFact],
    when: OperationCommand,
    then: Decision<OperationFact>,
) -> Option<Operation> {
    let operation = fold(None, given, BEFORE);
    let decision = match &operation {
        None => decide_new(&id(), &when, now),
        Some(operation) => decide(operation, &when, now),
    };
    assert_eq!(decision, then);
    match decision {
        Decision::Facts { facts, .. } => fold(operation, &facts, now),
        Decision::Nothing => operation,
        Decision::Refused { evidence, .. } => fold(operation, evidence.as_slice(), now),
    }
}

#[track_caller]
fn fold(mut operation: Option<Operation>, facts: &[OperationFact], at: Timestamp) -> Option<Operation> {
    for fact in facts {
        match (&mut operation, fact) {
            (None, OperationFact::Dispatched(new)) => operation = Some(Operation::new(id(), new, at)),
            (None, other) => panic!("a history begins with Dispatched, not {other:?}"),
            (Some(operation), fact) => apply(operation, fact, at).unwrap(),
        }
    }
    operation
}

fn operation(given: &[OperationFact]) -> Operation {
    fold(None, given, BEFORE).unwrap()
}

fn id() -> OperationId {
    OperationId::new("op-1")
}

fn job_id() -> JobId {
    JobId::new("work-1")
}

fn body(name: BodyName, seed: u8) -> BodyRef {
    BodyRef { name, sha256: Digest([seed; 32]), size: u64::from(seed) }
}

// Histories.

fn link() -> OperationLink {
    OperationLink {
        job_id: job_id(),
        attempt_id: AttemptId::new("attempt-1"),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        circle: None,
    }
}

fn accepted() -> OperationFact {
    accepted_with(|_| {})
}

fn accepted_with(change: impl FnOnce(&mut Accepted)) -> OperationFact {
    let mut accepted = Accepted {
        link: link(),
        handle: Some(body(BodyName::Handle, 7)),
        cancelability: Cancelability::Cancelable,
        interval_seconds: 5,
        progress_hint: None,
        invalid_hint: false,
        next_poll_at: BEFORE.plus_seconds(5),
        expires_at: EXPIRES_AT,
        policy: KindPolicy::default(),
        bounded_by: Some(LifeLimit::MaxTtl),
        asked_retry_after_seconds: None,
        asked_ttl_seconds: None,
        external_job_id: None,
    };
    change(&mut accepted);
    OperationFact::Dispatched(Box::new(accepted))
}

/// A poll that changed nothing and comes again in so many seconds.
fn polled_again_in(seconds: u64) -> Polled {
    Polled {
        status: None,
        interval_seconds: None,
        asked_retry_after_seconds: None,
        progress_hint: None,
        progress: None,
        expires_at: None,
        error: None,
        invalid_hint: false,
        next_poll_at: NOW.plus_seconds(seconds),
    }
}

fn running() -> OperationFact {
    OperationFact::Polled(Polled { status: Some(ReportedStatus::Running), ..polled_again_in(5) })
}

fn poll_failed() -> OperationFact {
    OperationFact::Polled(Polled { error: Some(unreachable_error()), ..polled_again_in(5) })
}

fn unreachable_error() -> PollError {
    PollError { code: "connect_failed".to_owned(), status: Some(503), ..PollError::default() }
}

fn cancel_requested() -> OperationFact {
    OperationFact::CancelRequested { by: Some("ada".to_owned()), reason: "not needed".to_owned() }
}

fn completed(result: ResultRefs) -> OperationFact {
    OperationFact::Resolved(Ending::Completed { result })
}

fn failed() -> OperationFact {
    OperationFact::Resolved(Ending::Failed {
        failure_detail: "out of paper".to_owned(),
        error_code: Some("no_paper".to_owned()),
        result: ResultRefs::default(),
    })
}

/// Every way in which an operation is over, with the status that it shows.
fn ends() -> Vec<(OperationStatus, OperationFact)> {
    vec![
        (OperationStatus::Completed, completed(summary("12 pages"))),
        (OperationStatus::Failed, failed()),
        (OperationStatus::TimedOut, OperationFact::Resolved(Ending::TimedOut)),
        (OperationStatus::Expired, OperationFact::Resolved(Ending::Expired)),
        (OperationStatus::Unknown, OperationFact::Resolved(Ending::Unknown)),
        (OperationStatus::Cancelled, OperationFact::Cancelled),
        (OperationStatus::Expired, OperationFact::Expired { cause: ExpiryCause::LifetimeOver }),
        (OperationStatus::Expired, OperationFact::Expired { cause: ExpiryCause::MaxAttemptsExhausted }),
    ]
}

/// The ends after which nothing may run outside.
fn ends_with_nothing_left() -> impl Iterator<Item = (OperationStatus, OperationFact)> {
    ends().into_iter().filter(|(_, end)| operation(&[accepted(), end.clone()]).orphan().is_none())
}

// Commands.

fn new_operation() -> NewOperation {
    NewOperation {
        job_id: job_id(),
        attempt_id: AttemptId::new("attempt-1"),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        circle: None,
        handle: Some(body(BodyName::Handle, 7)),
        cancelability: Cancelability::Cancelable,
        retry_after: Hint::Absent,
        fail_after: Hint::Absent,
        action_ttl: Hint::Absent,
        deadline_at: None,
        progress_hint: None,
        policy: KindPolicy::default(),
        jitter: Jitter(0),
        ttl_limit: None,
        external_job_id: None,
    }
}

fn answers(answer: PollAnswer) -> OperationCommand {
    OperationCommand::RecordPoll(Box::new(Poll { answer, jitter: Jitter(0) }))
}

fn still(status: ReportedStatus, hints: PollHints) -> OperationCommand {
    answers(PollAnswer::Open(status, hints))
}

fn still_pending() -> OperationCommand {
    still(ReportedStatus::Pending, PollHints::default())
}

fn fails(retryable: Retryable) -> PollAnswer {
    PollAnswer::Failed(PollFailure {
        failure_detail: "out of paper".to_owned(),
        error_code: Some("no_paper".to_owned()),
        result: ResultRefs::default(),
        retryable,
    })
}

fn poll_error(error: PollError) -> OperationCommand {
    OperationCommand::RecordPoll(Box::new(Poll {
        answer: PollAnswer::NotNow { error, retry_after: crate::policy::Hint::Absent },
        jitter: Jitter(0),
    }))
}

/// The facts, and the word to the job in the same step.
fn and_the_job(facts: impl Into<Vec<OperationFact>>, ending: OperationEnding) -> Decision<OperationFact> {
    let conclude = JobCommand::ConcludeOperation { operation_id: id(), ending, jitter: Jitter(0) };
    Decision::facts(facts).then(job_id(), conclude)
}

fn summary(text: &str) -> ResultRefs {
    ResultRefs { summary: Some(text.to_owned()), ..ResultRefs::default() }
}
