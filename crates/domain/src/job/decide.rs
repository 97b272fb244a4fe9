//! What may happen to a job: one function per command, each naming every state.
//!
//! `dispatch.rs` has attempts and what becomes of their executors, `submit.rs` what is given to services, `external.rs` what goes on
//! there, `cancel.rs` cancels, `report.rs` beside it reports; the rest is here.
//!
//! Three answers: facts, nothing ("already so"), or a refusal with a stable code. `docs/lifecycle.md` is rendered
//! from this file by a test that walks every state and command.

mod cancel;
pub(super) mod dispatch;
mod external;
pub(super) mod submit;

use super::command::{JobCommand, Retryable};
use super::ends::{self, expired};
use super::fact::{AnswerKept, ExpiryCause, JobFact};
use super::phase::{Phase, Waiting};
use super::report;
use super::spec::NewJob;
use super::state::Job;
use crate::body::{BodyName, BodyRef};
use crate::limits::{MAX_ANSWERS, MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_optional};
use crate::{JobId, RecordId, Refusal, Timestamp};

type Decision = crate::Decision<JobFact>;

/// Decides a command on a job that does not exist yet.
pub fn decide_new(id: &JobId, command: &JobCommand, now: Timestamp) -> Decision {
    match command {
        JobCommand::Create(new) => create(id, new, now),
        // An operation may outlive its job; its own record keeps how it ended.
        JobCommand::ConcludeOperation { .. }
        | JobCommand::RecordCancelTry { .. }
        | JobCommand::RecordRelease { .. }
        | JobCommand::MoveTimers { .. } => Decision::Nothing,
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
        | JobCommand::Pause { .. }
        | JobCommand::Unpause { .. }
        | JobCommand::RequestCancel { .. }
        | JobCommand::CancelOrRefuse { .. }
        | JobCommand::CountCancelRepeats { .. }
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
        JobCommand::Pause { by, reason } => pause(job, by.as_ref(), reason.as_ref()),
        JobCommand::Unpause { by, reason } => unpause(job, by.as_ref(), reason.as_ref()),
        JobCommand::RequestCancel { by, reason } => cancel::request_cancel(job, by.as_deref(), reason, now),
        JobCommand::CancelOrRefuse { by, reason } => {
            cancel::cancel_or_refuse(job, by.as_deref(), reason, now)
        }
        JobCommand::RecordCancelTry { attempt_id, tried } => {
            cancel::record_cancel_try(job, attempt_id, tried)
        }
        JobCommand::CountCancelRepeats { count } => cancel::count_repeats(job, *count),
        JobCommand::RecordCancelAnswer { attempt_id, answer, release } => {
            cancel::record_cancel_answer(job, attempt_id, answer, *release)
        }
        JobCommand::RecordRelease { attempt_id, release } => {
            dispatch::record_release(job, attempt_id, *release)
        }
        JobCommand::TimeOutCancel => cancel::time_out_cancel(job, now),
        JobCommand::LoseLease { attempt_id, jitter, error } => {
            dispatch::lose_lease(job, attempt_id, *error, *jitter, now)
        }
        JobCommand::TimeOutAttempt { attempt_id, jitter } => {
            dispatch::time_out_attempt(job, attempt_id, *jitter, now)
        }
        JobCommand::CountStaleReports { count } => report::count_stale(job, *count),
        JobCommand::Expire => expire(job, now),
        JobCommand::Purge => purge(job),
        JobCommand::MoveTimers { by_micros } => move_timers(job, *by_micros, now),
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
    match job.state.phase() {
        Phase::Waiting(Waiting::Input | Waiting::Blocked) if job.answers.len() >= MAX_ANSWERS => {
            Refusal::TooLarge { what: "answers of one attempt", limit: MAX_ANSWERS }.into()
        }
        Phase::Waiting(Waiting::Input | Waiting::Blocked) if job.cancel.is_some() => {
            Refusal::CancelPending.into()
        }
        Phase::Waiting(Waiting::Input | Waiting::Blocked) => {
            Decision::fact(JobFact::Answered(AnswerKept { answer: body }))
        }
        Phase::Queued { .. }
        | Phase::Held(_)
        | Phase::Waiting(Waiting::External { .. })
        | Phase::Ended(_) => Refusal::NotAwaitingInput { state: job.state.name() }.into(),
    }
}

fn check_pause(by: Option<&String>, reason: Option<&String>) -> Result<(), Refusal> {
    check_optional("requested_by_peer_id", by.map(String::as_str), MAX_LABEL_BYTES)
        .and_then(|()| check_optional("reason", reason.map(String::as_str), MAX_NOTE_BYTES))
}

fn unpause(job: &Job, by: Option<&String>, reason: Option<&String>) -> Decision {
    match check_pause(by, reason) {
        Err(refusal) => refusal.into(),
        Ok(()) if job.paused.is_none() => Decision::Nothing,
        Ok(()) => Decision::fact(JobFact::Unpaused { by: by.cloned(), reason: reason.cloned() }),
    }
}

fn pause(job: &Job, by: Option<&String>, reason: Option<&String>) -> Decision {
    if let Err(refusal) = check_pause(by, reason) {
        return refusal.into();
    }
    match job.state.phase() {
        Phase::Queued { .. } if job.cancel.is_some() => Refusal::CancelPending.into(),
        Phase::Queued { .. } if job.paused.is_some() => Decision::Nothing,
        Phase::Queued { .. } => Decision::fact(JobFact::Paused { by: by.cloned(), reason: reason.cloned() }),
        Phase::Held(_) | Phase::Waiting(_) | Phase::Ended(_) => {
            Refusal::NotPausable { state: job.state.name() }.into()
        }
    }
}

fn expire(job: &Job, now: Timestamp) -> Decision {
    match job.state.phase() {
        Phase::Queued { .. } | Phase::Held(_) | Phase::Waiting(_) => match job.expires_at() {
            Some(limit) if limit <= now => {
                ends::abandoning(job, expired(ExpiryCause::TimeOver), "job_expired")
            }
            Some(due_at) => Refusal::NotDue { due_at }.into(),
            None => Refusal::NotDue { due_at: Timestamp::from_micros(i64::MAX) }.into(),
        },
        Phase::Ended(_) => Decision::Nothing,
    }
}

fn move_timers(job: &Job, by_micros: i64, now: Timestamp) -> Decision {
    // What ended at a time that has not come yet is done something with: only that goes on from now.
    let goes_back = by_micros < 0 && job.updated_at > now;
    match job.state.phase() {
        Phase::Queued { .. } | Phase::Held(_) | Phase::Waiting(_) => {
            Decision::fact(JobFact::TimersMoved { by_micros })
        }
        Phase::Ended(_) if goes_back => Decision::fact(JobFact::TimersMoved { by_micros }),
        Phase::Ended(_) => Decision::Nothing,
    }
}

fn purge(job: &Job) -> Decision {
    match job.state.phase() {
        Phase::Ended(_) if job.purged => Decision::Nothing,
        Phase::Ended(_) => Decision::fact(JobFact::Purged),
        Phase::Queued { .. } | Phase::Held(_) | Phase::Waiting(_) => {
            Refusal::NotTerminal { state: job.state.name() }.into()
        }
    }
}

fn retire(job: &Job) -> Decision {
    match job.state.phase() {
        Phase::Ended(_) => Decision::fact(JobFact::Retired),
        Phase::Queued { .. } | Phase::Held(_) | Phase::Waiting(_) => {
            Refusal::NotTerminal { state: job.state.name() }.into()
        }
    }
}
