//! What may happen to a job: one function per command, each naming every state.
//!
//! `dispatch.rs` has attempts, `submit.rs` what is given to services, `external.rs` what goes on there, `cancel.rs` cancels, `report.rs` beside it reports; the rest is here.
//!
//! Three answers: facts, nothing ("already so"), or a refusal with a stable code. `docs/lifecycle.md` is rendered
//! from this file by a test that walks every state and command.

mod cancel;
mod dispatch;
mod external;
pub(super) mod submit;

use super::command::{JobCommand, Retryable};
use super::ends::{self, expired};
use super::fact::{AnswerKept, ExpiryCause, JobFact};
use super::report;
use super::spec::NewJob;
use super::state::{Job, JobState};
use crate::body::{BodyName, BodyRef};
use crate::limits::MAX_ANSWERS;
use crate::{JobId, RecordId, Refusal, Timestamp};

type Decision = crate::Decision<JobFact>;

/// Decides a command on a job that does not exist yet.
pub fn decide_new(id: &JobId, command: &JobCommand, now: Timestamp) -> Decision {
    match command {
        JobCommand::Create(new) => create(id, new, now),
        // An operation may outlive its job; its own record keeps how it ended.
        JobCommand::ConcludeOperation { .. } | JobCommand::MoveTimers { .. } => Decision::Nothing,
        JobCommand::Dispatch(_)
        | JobCommand::QueueAgain { .. }
        | JobCommand::Resume { .. }
        | JobCommand::Deliver { .. }
        | JobCommand::Heartbeat { .. }
        | JobCommand::Report(_)
        | JobCommand::IntendSubmit { .. }
        | JobCommand::LoseSubmit { .. }
        | JobCommand::Defer { .. }
        | JobCommand::Answer { .. }
        | JobCommand::RequestCancel { .. }
        | JobCommand::RecordCancelAnswer { .. }
        | JobCommand::TimeOutCancel
        | JobCommand::LoseLease { .. }
        | JobCommand::TimeOutAttempt { .. }
        | JobCommand::CountStaleReports { .. }
        | JobCommand::Expire
        | JobCommand::Purge
        | JobCommand::Retire => Decision::refuse(Refusal::UnknownRecord),
    }
}

/// Decides a command on a job.
pub fn decide(job: &Job, command: &JobCommand, now: Timestamp) -> Decision {
    match command {
        JobCommand::Create(_) => Decision::refuse(Refusal::AlreadyExists),
        JobCommand::Dispatch(order) => dispatch::dispatch(job, order, now),
        JobCommand::QueueAgain { trigger } => dispatch::queue_again(job, *trigger, now),
        JobCommand::Resume { attempt_id } => dispatch::resume(job, attempt_id),
        JobCommand::Deliver { attempt_id } => dispatch::deliver(job, attempt_id),
        JobCommand::Heartbeat { attempt_id, by } => dispatch::heartbeat(job, attempt_id, by),
        JobCommand::Report(report) => report::decide(job, report, now),
        JobCommand::IntendSubmit { attempt_id, intent } => submit::intend(job, attempt_id, intent),
        JobCommand::LoseSubmit { attempt_id, details, not_before, jitter } => {
            let again = not_before.map_or(Retryable::Yes, Retryable::NotBefore);
            submit::lose(job, attempt_id, details, again, *jitter, now)
        }
        JobCommand::Defer { attempt_id, operation_id, operation, then, left_by } => {
            external::defer(job, attempt_id, operation_id, operation, *then, left_by)
        }
        JobCommand::ConcludeOperation { operation_id, ending, jitter } => {
            external::conclude_operation(job, operation_id, ending, *jitter, now)
        }
        JobCommand::Answer { answer: body } => answer(job, *body),
        JobCommand::RequestCancel { by, reason } => cancel::request_cancel(job, by.as_deref(), reason, now),
        JobCommand::RecordCancelAnswer { attempt_id, answer } => {
            cancel::record_cancel_answer(job, attempt_id, answer)
        }
        JobCommand::TimeOutCancel => cancel::time_out_cancel(job, now),
        JobCommand::LoseLease { attempt_id, jitter } => dispatch::lose_lease(job, attempt_id, *jitter, now),
        JobCommand::TimeOutAttempt { attempt_id, jitter } => {
            dispatch::time_out_attempt(job, attempt_id, *jitter, now)
        }
        JobCommand::CountStaleReports { count } => report::count_stale(job, *count),
        JobCommand::Expire => expire(job, now),
        JobCommand::Purge => purge(job),
        JobCommand::MoveTimers { by_micros } => move_timers(job, *by_micros),
        JobCommand::Retire => retire(job),
    }
}

fn create(id: &JobId, new: &NewJob, now: Timestamp) -> Decision {
    if let Err(refusal) = RecordId::Job(id.clone()).check().and_then(|()| new.check()) {
        return refusal.into();
    }
    if [new.spec.deadline_at, new.spec.expires_at].into_iter().flatten().any(|limit| limit <= now) {
        return Refusal::DeadlineElapsed.into();
    }
    Decision::fact(JobFact::Created(Box::new(new.clone())))
}

fn answer(job: &Job, body: BodyRef) -> Decision {
    if let Err(refusal) = body.check_named(BodyName::Answer) {
        return refusal.into();
    }
    match job.state {
        JobState::AwaitingInput | JobState::Blocked if job.answers.len() >= MAX_ANSWERS => {
            Refusal::TooLarge { what: "answers of one attempt", limit: MAX_ANSWERS }.into()
        }
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

fn move_timers(job: &Job, by_micros: i64) -> Decision {
    match job.state {
        JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => Decision::fact(JobFact::TimersMoved { by_micros }),
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
