//! Shared pieces of the rules: the attempt fence, and the ways in which a job or an attempt ends.

use super::command::Retryable;
use super::details::Details;
use super::fact::{CancelCause, Conclusion, ExpiryCause, JobFact, RequeueCause};
use super::holder::Reporter;
use super::intent::Intent;
use super::phase::{Phase, Waiting};
use super::state::{Job, JobState, JobStateName};
use crate::operation::{Cancelability, NewOperation, OperationCommand};
use crate::planted::{Bug, planted};
use crate::policy::{Hint, KindPolicy, RETRY_AFTER_CEILING_SECONDS};
use crate::{AttemptId, Decision, Jitter, Refusal, Timestamp};

/// The reason of a job whose request to a service may have arrived.
pub(super) const SUBMIT_OUTCOME_UNKNOWN: &str = "submit_outcome_unknown";

/// Whether this attempt is the current one. None is while the job is in the queue, and none from which it was sent there ever again.
pub(super) fn current(job: &Job, attempt_id: &AttemptId) -> Result<(), Refusal> {
    let queued = matches!(job.state, JobState::Queued { .. });
    match job.last_attempt() {
        Some(attempt) if attempt.id == *attempt_id && !attempt.was_sent_back() && !queued => Ok(()),
        Some(_) if planted(Bug::AttemptNotChecked) => Ok(()),
        Some(_) | None => Err(Refusal::StaleAttempt),
    }
}

/// Whether the attempt was handed to whoever reports on it. What is not known of an attempt is settled by `current`.
pub(super) fn handed_to(job: &Job, attempt_id: &AttemptId, by: &Reporter) -> Result<(), Refusal> {
    match job.attempts.iter().find(|attempt| attempt.id == *attempt_id) {
        Some(attempt) if !attempt.accepts_reports_of(by) => Err(Refusal::AttemptNotYours),
        Some(_) | None => Ok(()),
    }
}

/// The refusal of a move that the state does not have.
pub(super) fn no_move(job: &Job, to: JobStateName) -> Refusal {
    let from = job.state.name();
    if from.is_terminal() {
        Refusal::Terminal { state: from }
    } else {
        Refusal::TransitionRefused { from, to }
    }
}

/// A failure: tried again if the executor and the policy allow it and nobody asked to stop.
pub(super) fn failed_or_requeued(
    job: &Job,
    details: Details,
    retryable: Retryable,
    jitter: Jitter,
    now: Timestamp,
) -> JobFact {
    if job.fails_for_good(retryable) {
        let attempts_used_up = job.used_its_last_attempt(retryable);
        return JobFact::Failed(Details { attempts_used_up, ..details });
    }
    let backed_off = now.plus_micros(job.spec.retry.wait_micros(job.attempt_count, jitter));
    let due_at = backed_off.max(not_before(retryable, now));
    JobFact::Requeued { due_at, cause: RequeueCause::AttemptFailed, details }
}

/// Before when another attempt is not wanted. Whatever was said, no work is parked for longer than the host ever waits.
fn not_before(retryable: Retryable, now: Timestamp) -> Timestamp {
    match retryable {
        Retryable::NotBefore(at) => at.min(now.plus_seconds(u64::from(RETRY_AFTER_CEILING_SECONDS))),
        Retryable::Yes | Retryable::No => now,
    }
}

/// An end that leaves nobody waiting for what may go on outside: the host gives up an open operation, and writes down a request of
/// which nobody knows what came.
pub(super) fn abandoning(job: &Job, end: JobFact, reason: &str) -> Decision<JobFact> {
    let decision = match &job.intent {
        None => Decision::fact(end),
        Some(_) if planted(Bug::IntentForgotten) => Decision::fact(end),
        Some(intent) => Decision::fact(end).then(intent.operation_id.clone(), unknown_outside(job, intent)),
    };
    match job.state.phase() {
        Phase::Waiting(Waiting::External { .. }) if planted(Bug::OperationNotAbandoned) => decision,
        Phase::Waiting(Waiting::External { operation, .. }) => {
            decision.then(operation.clone(), OperationCommand::Abandon { reason: reason.to_owned() })
        }
        Phase::Queued { .. } | Phase::Held(_) | Phase::Waiting(_) | Phase::Ended(_) => decision,
    }
}

/// A request may have arrived, and nobody waits for an answer: an operation without a handle, over at once.
pub(super) fn unknown_outside(job: &Job, intent: &Intent) -> OperationCommand {
    let attempt_id = job.last_attempt().map_or_else(|| AttemptId::new(""), |attempt| attempt.id.clone());
    OperationCommand::AcceptOrphan {
        operation: Box::new(NewOperation {
            job_id: job.id.clone(),
            attempt_id,
            kind: intent.kind.clone(),
            specialist: intent.specialist.clone(),
            circle: job.spec.circle.clone(),
            handle: None,
            cancelability: Cancelability::NotCancelable("nobody knows its handle".to_owned()),
            retry_after: Hint::Absent,
            fail_after: Hint::Absent,
            action_ttl: Hint::Absent,
            deadline_at: None,
            progress_hint: None,
            policy: KindPolicy::default(),
            ttl_limit: None,
            external_job_id: None,
            jitter: Jitter::default(),
        }),
        reason: SUBMIT_OUTCOME_UNKNOWN.to_owned(),
    }
}

pub(super) fn cancelled(cause: CancelCause) -> JobFact {
    JobFact::Cancelled(Conclusion { cause, details: Details::default() })
}

pub(super) fn expired(cause: ExpiryCause) -> JobFact {
    JobFact::Expired(Conclusion { cause, details: Details::default() })
}
