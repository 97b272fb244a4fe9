//! Giving work to a service: the intent before it, and what is done when nobody knows whether it arrived.

use crate::job::command::Retryable;
use crate::job::details::Details;
use crate::job::ends::{self, SUBMIT_OUTCOME_UNKNOWN};
use crate::job::fact::{JobFact, RequeueCause};
use crate::job::intent::{Intent, Resubmit};
use crate::job::state::{Job, JobState, JobStateName};
use crate::{AttemptId, Decision, Jitter, Refusal, Timestamp};

pub(super) fn intend(job: &Job, attempt_id: &AttemptId, intent: &Intent) -> Decision<JobFact> {
    if let Err(refusal) = intent.check().and_then(|()| ends::current(job, attempt_id)) {
        return refusal.into();
    }
    match &job.state {
        // Whoever asked to stop it must not find it started afterwards.
        JobState::Dispatching | JobState::Delivered | JobState::Running if job.cancel.is_some() => {
            Refusal::CancelPending.into()
        }
        JobState::Dispatching | JobState::Delivered | JobState::Running => match &job.intent {
            None => Decision::fact(JobFact::SubmitIntended(Box::new(intent.clone()))),
            Some(open) if open.operation_id == intent.operation_id => Decision::Nothing,
            Some(_) => Refusal::SubmitOpen.into(),
        },
        JobState::Queued { .. }
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => ends::no_move(job, JobStateName::AwaitingExternal).into(),
    }
}

/// Asked again under the same key if the service takes that for the same work and the policy allows it; else nobody starts it twice.
pub(super) fn lose(
    job: &Job,
    attempt_id: &AttemptId,
    details: &Details,
    jitter: Jitter,
    now: Timestamp,
) -> Decision<JobFact> {
    if let Err(refusal) = details.check().and_then(|()| ends::current(job, attempt_id)) {
        return refusal.into();
    }
    let details = Details { reason: Some(SUBMIT_OUTCOME_UNKNOWN.to_owned()), ..details.clone() };
    match &job.state {
        JobState::Dispatching | JobState::Delivered | JobState::Running => match &job.intent {
            // Without an intent nothing was given to anyone: an ordinary failure.
            None => Decision::fact(ends::failed_or_requeued(job, details, Retryable::Yes, jitter, now)),
            Some(intent) if intent.resubmit == Resubmit::SameKey && job.may_retry_by_itself() => {
                let due_at = now.plus_micros(job.spec.retry.wait_micros(job.attempt_count, jitter));
                Decision::fact(JobFact::Requeued { due_at, cause: RequeueCause::SubmitUnknown, details })
            }
            Some(_) => ends::abandoning(job, JobFact::Failed(details), SUBMIT_OUTCOME_UNKNOWN),
        },
        JobState::Queued { .. }
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => ends::no_move(job, JobStateName::Failed).into(),
    }
}
