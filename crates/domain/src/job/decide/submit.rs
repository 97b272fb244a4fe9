//! Giving work to a service: the intent before it, and what is done when nobody knows whether it arrived.

use crate::job::command::{Retryable, SubmitWord};
use crate::job::details::Details;
use crate::job::ends::{self, SUBMIT_OUTCOME_UNKNOWN};
use crate::job::fact::{JobFact, RequeueCause};
use crate::job::intent::{Intent, Resubmit};
use crate::job::phase::Phase;
use crate::job::state::{Job, JobStateName};
use crate::{AttemptId, Decision, Jitter, Refusal, Timestamp};

pub(super) fn intend(job: &Job, attempt_id: &AttemptId, intent: &Intent) -> Decision<JobFact> {
    if let Err(refusal) = intent.check().and_then(|()| ends::current(job, attempt_id)) {
        return refusal.into();
    }
    match job.state.phase() {
        // Whoever asked to stop it must not find it started afterwards.
        Phase::Held(_) if job.cancel.is_some() => Refusal::CancelPending.into(),
        Phase::Held(_) => match &job.intent {
            None => Decision::fact(JobFact::SubmitIntended(Box::new(intent.clone()))),
            Some(open) if open.operation_id == intent.operation_id => Decision::Nothing,
            Some(_) => Refusal::SubmitOpen.into(),
        },
        Phase::Queued { .. } | Phase::Waiting(_) | Phase::Ended(_) => {
            ends::no_move(job, JobStateName::AwaitingExternal).into()
        }
    }
}

/// Asked again under the same key if the service takes that for the same work and the policy allows it; else nobody starts it twice.
pub(super) fn lose(
    job: &Job,
    attempt_id: &AttemptId,
    details: &Details,
    again: Retryable,
    jitter: Jitter,
    now: Timestamp,
) -> Decision<JobFact> {
    if let Err(refusal) = details.check().and_then(|()| ends::current(job, attempt_id)) {
        return refusal.into();
    }
    let mut details = details.clone();
    match job.state.phase() {
        Phase::Held(_) => {
            // Without an intent nothing was given to anyone: an ordinary failure.
            if job.intent.is_some() {
                details.reason = Some(SUBMIT_OUTCOME_UNKNOWN.to_owned());
            }
            let failed = ends::failed_or_requeued(job, details, again, jitter, now);
            closing(job, failed, SubmitWord::Unsaid)
        }
        Phase::Queued { .. } | Phase::Waiting(_) | Phase::Ended(_) => {
            ends::no_move(job, JobStateName::Failed).into()
        }
    }
}

/// The end of an attempt, and what becomes of an open intent: whoever made the request may say that it is settled; else the next
/// attempt goes on from it, or the orphan ledger has it.
pub(in crate::job) fn closing(job: &Job, end: JobFact, word: SubmitWord) -> Decision<JobFact> {
    let Some(intent) = job.intent.as_ref().filter(|_| word == SubmitWord::Unsaid) else {
        return Decision::fact(end);
    };
    match (end, intent.resubmit) {
        (JobFact::Requeued { due_at, details, .. }, Resubmit::SameKey) => {
            Decision::fact(JobFact::Requeued { due_at, cause: RequeueCause::SubmitUnknown, details })
        }
        // Nobody starts it twice.
        (JobFact::Requeued { details, .. }, Resubmit::Never) => {
            ends::abandoning(job, JobFact::Failed(details), SUBMIT_OUTCOME_UNKNOWN)
        }
        (end, Resubmit::SameKey | Resubmit::Never) => ends::abandoning(job, end, SUBMIT_OUTCOME_UNKNOWN),
    }
}
