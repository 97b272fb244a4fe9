//! What may happen to a job: one function per command, each naming every state.
//!
//! Three answers: facts, nothing ("already so"), or a refusal with a stable code. `docs/lifecycle.md` is rendered
//! from this file by a test that walks every state and command.

use super::attempt::Trigger;
use super::cancel::CancelAnswer;
use super::command::{Dispatch, JobCommand, OperationEnding, Retryable};
use super::details::Details;
use super::ends::{self, cancelled, expired};
use super::fact::{AnswerKept, CancelCause, Conclusion, ExpiryCause, JobFact, RequeueCause, Unavailability};
use super::report;
use super::spec::NewJob;
use super::state::{AfterExternal, Job, JobState};
use crate::body::BodyRef;
use crate::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_optional, check_text};
use crate::operation::{NewOperation, OperationCommand};
use crate::planted::{Bug, planted};
use crate::{AttemptId, Jitter, JobId, OperationId, Refusal, Timestamp};

type Decision = crate::Decision<JobFact>;

/// Decides a command on a job that does not exist yet.
pub fn decide_new(_id: &JobId, command: &JobCommand, now: Timestamp) -> Decision {
    match command {
        JobCommand::Create(new) => create(new, now),
        // An operation may outlive its job; its own record keeps how it ended.
        JobCommand::ConcludeOperation { .. } => Decision::Nothing,
        JobCommand::Dispatch(_)
        | JobCommand::Resume { .. }
        | JobCommand::Deliver { .. }
        | JobCommand::Heartbeat { .. }
        | JobCommand::Report(_)
        | JobCommand::Defer { .. }
        | JobCommand::Answer { .. }
        | JobCommand::RequestCancel { .. }
        | JobCommand::RecordCancelAnswer { .. }
        | JobCommand::TimeOutCancel
        | JobCommand::LoseLease { .. }
        | JobCommand::Expire
        | JobCommand::Purge
        | JobCommand::Retire => Decision::refuse(Refusal::UnknownRecord),
    }
}

/// Decides a command on a job.
pub fn decide(job: &Job, command: &JobCommand, now: Timestamp) -> Decision {
    match command {
        JobCommand::Create(_) => Decision::refuse(Refusal::AlreadyExists),
        JobCommand::Dispatch(order) => dispatch(job, order, now),
        JobCommand::Resume { attempt_id } => resume(job, attempt_id),
        JobCommand::Deliver { attempt_id } => deliver(job, attempt_id),
        JobCommand::Heartbeat { attempt_id } => heartbeat(job, attempt_id),
        JobCommand::Report(report) => report::decide(job, report, now),
        JobCommand::Defer { attempt_id, operation_id, operation, then } => {
            defer(job, attempt_id, operation_id, operation, *then)
        }
        JobCommand::ConcludeOperation { operation_id, ending, jitter } => {
            conclude_operation(job, operation_id, ending, *jitter, now)
        }
        JobCommand::Answer { answer: body } => answer(job, *body),
        JobCommand::RequestCancel { by, reason } => request_cancel(job, by.as_deref(), reason, now),
        JobCommand::RecordCancelAnswer { attempt_id, answer } => {
            record_cancel_answer(job, attempt_id, answer)
        }
        JobCommand::TimeOutCancel => time_out_cancel(job, now),
        JobCommand::LoseLease { attempt_id, jitter } => lose_lease(job, attempt_id, *jitter, now),
        JobCommand::Expire => expire(job, now),
        JobCommand::Purge => purge(job),
        JobCommand::Retire => retire(job),
    }
}

fn create(new: &NewJob, now: Timestamp) -> Decision {
    if let Err(refusal) = new.check() {
        return refusal.into();
    }
    if [new.spec.deadline_at, new.spec.expires_at].into_iter().flatten().any(|limit| limit <= now) {
        return Refusal::DeadlineElapsed.into();
    }
    Decision::fact(JobFact::Created(Box::new(new.clone())))
}

/// Exactly one runner gets a queued job: the commit's expected version lets one of these facts in.
fn dispatch(job: &Job, order: &Dispatch, now: Timestamp) -> Decision {
    let state = job.state.name();
    match (&job.state, order.trigger) {
        (
            JobState::Queued { .. } | JobState::Failed | JobState::Unavailable { .. } | JobState::Delivered,
            _,
        ) if job.cancel.is_some() && !state.is_terminal() => Refusal::CancelPending.into(),
        (JobState::Queued { due_at }, Trigger::Automatic) if now < *due_at => {
            Refusal::NotDue { due_at: *due_at }.into()
        }
        (JobState::Queued { .. }, Trigger::Automatic | Trigger::Run)
        | (JobState::Failed | JobState::Unavailable { .. }, Trigger::Run | Trigger::Retry)
        | (JobState::Delivered, Trigger::Retry) => begin_attempt(job, order, now),
        (_, Trigger::Automatic) if planted(Bug::DispatchFromAnyState) => begin_attempt(job, order, now),
        (JobState::Queued { .. }, Trigger::Retry) => Refusal::NotRetryable { state }.into(),
        (
            JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Expired
            | JobState::Unavailable { .. },
            Trigger::Automatic,
        ) => Refusal::Terminal { state }.into(),
        (
            JobState::Dispatching
            | JobState::Delivered
            | JobState::Running
            | JobState::AwaitingInput
            | JobState::AwaitingExternal { .. }
            | JobState::Blocked,
            Trigger::Automatic,
        ) => Refusal::LeaseHeld { state }.into(),
        (
            JobState::Dispatching
            | JobState::Delivered
            | JobState::Running
            | JobState::AwaitingInput
            | JobState::AwaitingExternal { .. }
            | JobState::Blocked
            | JobState::Completed
            | JobState::Cancelled
            | JobState::Expired,
            Trigger::Run,
        ) => Refusal::NotRunnable { state }.into(),
        (
            JobState::Dispatching
            | JobState::Running
            | JobState::AwaitingInput
            | JobState::AwaitingExternal { .. }
            | JobState::Blocked
            | JobState::Completed
            | JobState::Cancelled
            | JobState::Expired,
            Trigger::Retry,
        ) => Refusal::NotRetryable { state }.into(),
    }
}

fn begin_attempt(job: &Job, order: &Dispatch, now: Timestamp) -> Decision {
    if job.expires_at().is_some_and(|limit| limit <= now) {
        return Refusal::DeadlineElapsed.into();
    }
    let number =
        if planted(Bug::AttemptNumberReused) { job.attempt_count.max(1) } else { job.attempt_count + 1 };
    Decision::fact(JobFact::Dispatched {
        attempt_id: order.attempt_id.clone(),
        number,
        owner: order.owner.clone(),
        trigger: order.trigger,
    })
}

fn resume(job: &Job, attempt_id: &AttemptId) -> Decision {
    if let Err(refusal) = ends::current(job, attempt_id) {
        return refusal.into();
    }
    match job.state {
        JobState::Running if job.resume_pending && job.cancel.is_some() => Refusal::CancelPending.into(),
        JobState::Running if job.resume_pending => Decision::fact(JobFact::Resumed),
        JobState::Running => Decision::Nothing,
        JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Refusal::NotRunnable { state: job.state.name() }.into(),
    }
}

fn deliver(job: &Job, attempt_id: &AttemptId) -> Decision {
    if let Err(refusal) = ends::current(job, attempt_id) {
        return refusal.into();
    }
    match job.state {
        JobState::Dispatching => Decision::fact(JobFact::Delivered),
        // The executor may have started before its acceptance was recorded.
        JobState::Delivered | JobState::Running => Decision::Nothing,
        JobState::Queued { .. }
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => ends::no_move(job, super::JobStateName::Delivered),
    }
}

/// Renewing the lease is the claim's business; on the record only the first heartbeat leaves a fact.
fn heartbeat(job: &Job, attempt_id: &AttemptId) -> Decision {
    if let Err(refusal) = ends::current(job, attempt_id) {
        return refusal.into();
    }
    match job.state {
        JobState::Dispatching | JobState::Delivered => Decision::fact(JobFact::Started(Details::default())),
        JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => Decision::Nothing,
        JobState::Queued { .. } => Refusal::StaleAttempt.into(),
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Refusal::Terminal { state: job.state.name() }.into(),
    }
}

fn defer(
    job: &Job,
    attempt_id: &AttemptId,
    operation_id: &OperationId,
    operation: &NewOperation,
    then: AfterExternal,
) -> Decision {
    if let Err(refusal) = ends::current(job, attempt_id) {
        return refusal.into();
    }
    match &job.state {
        JobState::Dispatching | JobState::Delivered | JobState::Running => {
            let deferred = JobFact::Deferred { operation_id: operation_id.clone(), then };
            // It belongs to this job and this attempt, and the job's own end bounds it, whatever its executor says.
            let deadline_at = crate::time::earliest(operation.deadline_at, job.expires_at());
            let operation = NewOperation {
                job_id: job.id.clone(),
                attempt_id: attempt_id.clone(),
                deadline_at,
                ..operation.clone()
            };
            let accept = OperationCommand::Accept(Box::new(operation));
            let decision = Decision::fact(deferred).then(operation_id.clone(), accept);
            match &job.cancel {
                None => decision,
                Some(cancel) => decision.then(
                    operation_id.clone(),
                    OperationCommand::RequestCancel {
                        by: cancel.by.clone(),
                        reason: cancel.reason.clone(),
                        origin: crate::operation::CancelOrigin::ParentJob,
                    },
                ),
            }
        }
        JobState::AwaitingExternal { operation, .. } if operation == operation_id => Decision::Nothing,
        JobState::Queued { .. }
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => ends::no_move(job, super::JobStateName::AwaitingExternal),
    }
}

/// A job that has moved on takes no notice: the operation's own record keeps how it ended.
fn conclude_operation(
    job: &Job,
    operation_id: &OperationId,
    ending: &OperationEnding,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    let then = match &job.state {
        JobState::AwaitingExternal { operation, then } if operation == operation_id => *then,
        JobState::AwaitingExternal { .. }
        | JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::Blocked
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => return Decision::Nothing,
    };
    match ending {
        OperationEnding::Completed(result) => {
            let details = Details { result: result.clone(), ..Details::default() };
            Decision::fact(match then {
                AfterExternal::Finish => JobFact::Completed(details),
                // What went on outside is over and nobody goes on: the cancel is confirmed.
                AfterExternal::Resume if job.cancel.is_some() => cancelled(CancelCause::Confirmed),
                AfterExternal::Resume => JobFact::ExternalArrived(details),
            })
        }
        OperationEnding::Failed { reason, result, retryable } => {
            let details =
                Details { reason: Some(reason.clone()), result: result.clone(), ..Details::default() };
            Decision::fact(ends::failed_or_requeued(job, details, *retryable, jitter, now))
        }
        OperationEnding::TimedOut => Decision::fact(ends::failed_or_requeued(
            job,
            Details::because("operation_timed_out"),
            Retryable::Yes,
            jitter,
            now,
        )),
        OperationEnding::Unknown => Decision::fact(JobFact::Failed(Details::because("operation_unknown"))),
        OperationEnding::Cancelled if job.cancel.is_some() => {
            Decision::fact(cancelled(CancelCause::Confirmed))
        }
        OperationEnding::Cancelled => {
            Decision::fact(JobFact::Failed(Details::because("operation_cancelled_outside")))
        }
        OperationEnding::Expired => Decision::fact(expired(ExpiryCause::OperationExpired)),
    }
}

fn answer(job: &Job, body: BodyRef) -> Decision {
    if let Err(refusal) = body.check() {
        return refusal.into();
    }
    match job.state {
        JobState::AwaitingInput | JobState::Blocked if job.cancel.is_some() => Refusal::CancelPending.into(),
        JobState::AwaitingInput | JobState::Blocked => {
            Decision::fact(JobFact::Answered(AnswerKept { answer: body }))
        }
        JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingExternal { .. }
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Refusal::NotAwaitingInput { state: job.state.name() }.into(),
    }
}

fn request_cancel(job: &Job, by: Option<&str>, reason: &str, now: Timestamp) -> Decision {
    if let Err(refusal) = check_text("cancel reason", reason, MAX_NOTE_BYTES)
        .and_then(|()| check_optional("cancel requester", by, MAX_LABEL_BYTES))
    {
        return refusal.into();
    }
    let requested = JobFact::CancelRequested {
        by: by.map(str::to_owned),
        reason: reason.to_owned(),
        limit_at: now.plus_seconds(super::CANCEL_LIMIT_SECONDS),
    };
    match &job.state {
        JobState::Queued { .. } => Decision::facts([requested, cancelled(CancelCause::NeverStarted)]),
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. }
            if planted(Bug::CancelOverwritesTerminal) =>
        {
            Decision::fact(cancelled(CancelCause::Confirmed))
        }
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked
            if job.cancel.is_some() =>
        {
            Decision::Nothing
        }
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::Blocked => Decision::fact(requested),
        JobState::AwaitingExternal { operation, .. } => Decision::fact(requested).then(
            operation.clone(),
            OperationCommand::RequestCancel {
                by: by.map(str::to_owned),
                reason: reason.to_owned(),
                origin: crate::operation::CancelOrigin::ParentJob,
            },
        ),
        // A late cancel changes nothing and gets the same answer every time.
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::Nothing,
    }
}

fn record_cancel_answer(job: &Job, attempt_id: &AttemptId, answer: &CancelAnswer) -> Decision {
    if let Err(refusal) = answer.check().and_then(|()| ends::current(job, attempt_id)) {
        return refusal.into();
    }
    match job.state {
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => match (answer, job.cancel.is_some()) {
            (_, false) => Refusal::NoCancelPending.into(),
            (CancelAnswer::Cancelled, true) => {
                ends::abandoning(job, cancelled(CancelCause::Confirmed), "cancelled")
            }
            (CancelAnswer::Accepted | CancelAnswer::Refused(_) | CancelAnswer::Unreachable, true) => {
                Decision::fact(JobFact::CancelAnswered(answer.clone()))
            }
        },
        JobState::Queued { .. } => Refusal::NoCancelPending.into(),
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::Nothing,
    }
}

fn time_out_cancel(job: &Job, now: Timestamp) -> Decision {
    match job.state {
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => match &job.cancel {
            None => Refusal::NoCancelPending.into(),
            Some(cancel) if now < cancel.limit_at => Refusal::NotDue { due_at: cancel.limit_at }.into(),
            Some(_) => ends::abandoning(job, cancelled(CancelCause::TimedOut), "cancel_unconfirmed"),
        },
        JobState::Queued { .. } => Refusal::NoCancelPending.into(),
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::Nothing,
    }
}

fn lose_lease(job: &Job, attempt_id: &AttemptId, jitter: Jitter, now: Timestamp) -> Decision {
    match job.state {
        JobState::Dispatching | JobState::Delivered | JobState::Running
            if ends::current(job, attempt_id).is_ok() && !job.resume_pending =>
        {
            let details = Details::default();
            Decision::fact(if job.cancel.is_some() {
                cancelled(CancelCause::LeaseLost)
            } else if job.may_retry_by_itself() {
                let wait = job.spec.retry.wait_micros(job.attempt_count, jitter);
                let due_at = now.plus_micros(wait);
                JobFact::Requeued { due_at, cause: RequeueCause::LeaseLost, details }
            } else {
                JobFact::BecameUnavailable(Conclusion { cause: Unavailability::LeaseLost, details })
            })
        }
        // Another attempt is current, or nobody needs a lease here any more.
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::Queued { .. }
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::Nothing,
    }
}

fn expire(job: &Job, now: Timestamp) -> Decision {
    match job.state {
        JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => match job.expires_at() {
            Some(limit) if limit <= now => {
                ends::abandoning(job, expired(ExpiryCause::TimeOver), "job_expired")
            }
            Some(due_at) => Refusal::NotDue { due_at }.into(),
            None => Refusal::NotDue { due_at: Timestamp::from_micros(i64::MAX) }.into(),
        },
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::Nothing,
    }
}

fn purge(job: &Job) -> Decision {
    match job.state {
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. }
            if job.purged =>
        {
            Decision::Nothing
        }
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::fact(JobFact::Purged),
        JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => Refusal::NotTerminal { state: job.state.name() }.into(),
    }
}

fn retire(job: &Job) -> Decision {
    match job.state {
        JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => Decision::fact(JobFact::Retired),
        JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => Refusal::NotTerminal { state: job.state.name() }.into(),
    }
}
