//! The rules of jobs, one behaviour per test: given facts, when a command, then facts or a refusal.
//!
//! Everything goes through `check`, which folds the given facts by `apply` and folds in what was decided, so that
//! what a decision leaves behind can be looked at as well. Which state has which moves at all is walked in
//! `tests/lifecycle`.

mod answers;
mod cancel;
mod create;
mod dispatch;
mod expiry;
mod external;
mod history;
mod holder;
mod lease;
mod pulled;
mod release;
mod report;
mod retry;
mod submit;
mod why;

use super::*;
use crate::body::{BodyName, BodyRef, Digest};
use crate::operation::{Cancelability, NewOperation};
use crate::policy::{Hint, KindPolicy};
use crate::{AttemptId, Decision, Jitter, JobId, OperationId, OwnerId, Refusal, RetryPolicy, Timestamp};

/// When the given facts happened.
const BEFORE: Timestamp = Timestamp::from_seconds(1_000);
/// When the command comes.
const NOW: Timestamp = Timestamp::from_seconds(1_100);

const THRICE: RetryPolicy = RetryPolicy { max_attempts: 3, backoff_seconds: 10, max_backoff_seconds: 60 };

/// Folds the given facts, decides the command, compares, and answers with the job as it is afterwards.
#[track_caller]
fn check(given: &[JobFact], when: JobCommand, then: Decision<JobFact>) -> Option<Job> {
    check_at(NOW, given, when, then)
}

#[track_caller]
fn check_at(now: Timestamp, given: &[JobFact], when: JobCommand, then: Decision<JobFact>) -> Option<Job> {
    let job = fold(None, given, BEFORE);
    let decision = match &job {
        None => decide_new(&id(), &when, now),
        Some(job) => decide(job, &when, now),
    };
    assert_eq!(decision, then);
    match decision {
        Decision::Facts { facts, .. } => fold(job, &facts, now),
        Decision::Nothing => job,
        Decision::Refused { evidence, .. } => fold(job, evidence.as_slice(), now),
    }
}

#[track_caller]
fn fold(mut job: Option<Job>, facts: &[JobFact], at: Timestamp) -> Option<Job> {
    for fact in facts {
        match (&mut job, fact) {
            (None, JobFact::Created(new)) => job = Some(Job::new(id(), new, at)),
            (None, other) => panic!("a history begins with Created, not {other:?}"),
            (Some(job), fact) => apply(job, fact, at).unwrap(),
        }
    }
    job
}

fn job(given: &[JobFact]) -> Job {
    fold(None, given, BEFORE).unwrap()
}

fn id() -> JobId {
    JobId::new("work-1")
}

fn attempt(number: u32) -> AttemptId {
    AttemptId::new(format!("attempt-{number}"))
}

fn operation_id() -> OperationId {
    OperationId::new("op-1")
}

fn body(name: BodyName, seed: u8) -> BodyRef {
    BodyRef { name, sha256: Digest([seed; 32]), size: u64::from(seed) }
}

// Histories.

fn new_job() -> NewJob {
    NewJob { spec: JobSpec::plain(Some("render"), THRICE), due_at: None, bodies: Vec::new() }
}

fn created() -> JobFact {
    created_with(|_| {})
}

fn created_with(change: impl FnOnce(&mut NewJob)) -> JobFact {
    let mut new = new_job();
    change(&mut new);
    JobFact::Created(Box::new(new))
}

/// A job that is tried once only.
fn created_for_one_attempt() -> JobFact {
    created_with(|new| new.spec.retry = RetryPolicy::ONCE)
}

fn dispatched(number: u32) -> JobFact {
    dispatched_by(number, Trigger::Automatic)
}

fn dispatched_by(number: u32, trigger: Trigger) -> JobFact {
    JobFact::Dispatched {
        attempt_id: attempt(number),
        number,
        owner: OwnerId::new("node-1"),
        trigger,
        holder: Holder::Daemon,
    }
}

fn started() -> JobFact {
    JobFact::Started(Details::default())
}

fn failed() -> JobFact {
    JobFact::Failed(Details::default())
}

fn completed() -> JobFact {
    JobFact::Completed(Details::default())
}

fn deferred() -> JobFact {
    JobFact::Deferred { operation_id: operation_id(), then: AfterExternal::Finish }
}

fn requeued(due_at: Timestamp) -> JobFact {
    JobFact::Requeued { due_at, cause: RequeueCause::AttemptFailed, details: Details::default() }
}

fn cancel_requested() -> JobFact {
    JobFact::CancelRequested {
        by: Some("ada".to_owned()),
        reason: "not needed".to_owned(),
        limit_at: Some(BEFORE.plus_seconds(CANCEL_LIMIT_SECONDS)),
    }
}

fn cancelled(cause: CancelCause) -> JobFact {
    JobFact::Cancelled(Conclusion { cause, details: Details::default() })
}

fn expired(cause: super::ExpiryCause) -> JobFact {
    JobFact::Expired(Conclusion { cause, details: Details::default() })
}

fn unavailable(cause: Unavailability) -> JobFact {
    JobFact::BecameUnavailable(Conclusion { cause, details: Details::default() })
}

/// A dispatched job in each state that is not over and holds its attempt.
fn dispatched_and_open() -> [(JobStateName, Vec<JobFact>); 6] {
    [
        (JobStateName::Dispatching, vec![created(), dispatched(1)]),
        (JobStateName::Delivered, vec![created(), dispatched(1), JobFact::Delivered]),
        (JobStateName::Running, vec![created(), dispatched(1), started()]),
        (
            JobStateName::AwaitingInput,
            vec![created(), dispatched(1), JobFact::InputAwaited(Details::default())],
        ),
        (JobStateName::AwaitingExternal, vec![created(), dispatched(1), deferred()]),
        (JobStateName::Blocked, vec![created(), dispatched(1), JobFact::Blocked(Details::default())]),
    ]
}

/// A dispatched job in each of its ends, `unavailable` twice: by report and by lost lease.
fn dispatched_and_over() -> [(JobStateName, Vec<JobFact>); 6] {
    [
        (JobStateName::Completed, completed()),
        (JobStateName::Failed, failed()),
        (JobStateName::Cancelled, cancelled(CancelCause::Confirmed)),
        (JobStateName::Expired, expired(super::ExpiryCause::TimeOver)),
        (JobStateName::Unavailable, unavailable(Unavailability::Reported)),
        (JobStateName::Unavailable, unavailable(Unavailability::LeaseLost)),
    ]
    .map(|(name, end)| (name, vec![created(), dispatched(1), end]))
}

// Commands.

fn dispatch(number: u32, trigger: Trigger) -> JobCommand {
    JobCommand::Dispatch(Dispatch {
        attempt_id: attempt(number),
        owner: OwnerId::new("node-1"),
        trigger,
        holder: Holder::Daemon,
    })
}

/// A report by an attempt that may not be tried again if it failed.
fn reports(number: u32, state: JobStateName) -> JobCommand {
    report(Some(attempt(number)), state, Details::default(), Retryable::No)
}

fn reports_with(number: u32, state: JobStateName, details: Details) -> JobCommand {
    report(Some(attempt(number)), state, details, Retryable::No)
}

/// A report by the doer of work that was never dispatched.
fn patch(state: JobStateName) -> JobCommand {
    report(None, state, Details::default(), Retryable::No)
}

fn report(
    attempt_id: Option<AttemptId>,
    state: JobStateName,
    details: Details,
    retryable: Retryable,
) -> JobCommand {
    JobCommand::Report(Box::new(Report {
        attempt_id,
        state,
        details,
        retryable,
        jitter: Jitter(0),
        submit: SubmitWord::Unsaid,
        by: Reporter::Daemon,
    }))
}

fn defer(number: u32, operation: NewOperation) -> JobCommand {
    JobCommand::Defer {
        attempt_id: attempt(number),
        operation_id: operation_id(),
        operation: Box::new(operation),
        then: AfterExternal::Finish,
        left_by: LeftBy::Executor,
    }
}

fn new_operation() -> NewOperation {
    NewOperation {
        job_id: id(),
        attempt_id: attempt(1),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        circle: None,
        handle: Some(body(BodyName::Handle, 7)),
        cancelability: Cancelability::Cancelable,
        retry_after: Hint::Seconds(5),
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

fn conclude(ending: OperationEnding) -> JobCommand {
    JobCommand::ConcludeOperation { operation_id: operation_id(), ending, jitter: Jitter(0) }
}

fn request_cancel() -> JobCommand {
    JobCommand::RequestCancel { by: Some("ada".to_owned()), reason: "not needed".to_owned() }
}

fn cancel_or_refuse() -> JobCommand {
    JobCommand::CancelOrRefuse { by: Some("ada".to_owned()), reason: "not needed".to_owned() }
}

/// A cancel of work that was over.
fn late_cancel() -> JobFact {
    JobFact::CancelRequested { by: Some("ada".to_owned()), reason: "not needed".to_owned(), limit_at: None }
}

fn lose_lease(number: u32) -> JobCommand {
    JobCommand::LoseLease { attempt_id: attempt(number), jitter: Jitter(0), error: None }
}

// What is said.

fn note(text: &str) -> Details {
    Details { note: Some(text.to_owned()), ..Details::default() }
}

fn result(result: ResultRefs) -> Details {
    Details { result, ..Details::default() }
}

fn summary(text: &str) -> ResultRefs {
    ResultRefs { summary: Some(text.to_owned()), ..ResultRefs::default() }
}
