//! Attempts: how one begins, goes on and is lost.

use crate::job::attempt::Trigger;
use crate::job::command::{Dispatch, Retryable};
use crate::job::details::Details;
use crate::job::ends::{self, SUBMIT_OUTCOME_UNKNOWN, cancelled};
use crate::job::fact::{CancelCause, Conclusion, JobFact, RequeueCause, Unavailability};
use crate::job::holder::Reporter;
use crate::job::intent::Resubmit;
use crate::job::state::{Job, JobState, JobStateName};
use crate::limits::{MAX_ID_BYTES, check_text};
use crate::planted::{Bug, planted};
use crate::{AttemptId, Decision, Jitter, Refusal, Timestamp};

/// Exactly one runner gets a queued job: the commit's expected version lets one of these facts in.
pub(super) fn dispatch(job: &Job, order: &Dispatch, now: Timestamp) -> Decision<JobFact> {
    let checked = check_text("attempt_id", order.attempt_id.as_str(), MAX_ID_BYTES)
        .and_then(|()| check_text("owner", order.owner.as_str(), MAX_ID_BYTES))
        .and_then(|()| order.holder.check())
        .and_then(|()| may_begin(job, order.trigger, now));
    if let Err(refusal) = checked {
        return refusal.into();
    }
    let number =
        if planted(Bug::AttemptNumberReused) { job.attempt_count.max(1) } else { job.attempt_count + 1 };
    Decision::fact(JobFact::Dispatched {
        attempt_id: order.attempt_id.clone(),
        number,
        owner: order.owner.clone(),
        trigger: if job.resume_pending { Trigger::Continued } else { order.trigger },
        holder: order.holder.clone(),
    })
}

/// Work that is pulled has nobody who could be told to do it now: it is ready for whoever pulls next.
pub(super) fn queue_again(job: &Job, trigger: Trigger, now: Timestamp) -> Decision<JobFact> {
    if !job.goes_back_to_pullers(trigger) {
        return Refusal::NotRunnable { state: job.state.name() }.into();
    }
    match (&job.state, may_begin(job, trigger, now)) {
        (_, Err(refusal)) => refusal.into(),
        (JobState::Queued { due_at }, Ok(())) if *due_at <= now => Decision::Nothing,
        (_, Ok(())) => {
            let details = Details::default();
            Decision::fact(JobFact::Requeued { due_at: now, cause: RequeueCause::Asked, details })
        }
    }
}

/// Whether another attempt may begin, for this reason.
fn may_begin(job: &Job, trigger: Trigger, now: Timestamp) -> Result<(), Refusal> {
    let state = job.state.name();
    match (&job.state, trigger) {
        (
            JobState::Queued { .. } | JobState::Failed | JobState::Unavailable { .. } | JobState::Delivered,
            _,
        ) if job.cancel.is_some() && !state.is_terminal() => Err(Refusal::CancelPending),
        (JobState::Queued { due_at }, Trigger::Automatic)
            if now < *due_at && !planted(Bug::DispatchedEarly) =>
        {
            Err(Refusal::NotDue { due_at: *due_at })
        }
        (JobState::Queued { .. }, Trigger::Automatic | Trigger::Run)
        | (JobState::Failed | JobState::Unavailable { .. }, Trigger::Run | Trigger::Retry)
        | (JobState::Delivered, Trigger::Retry) => may_be_done(job, now),
        // Whoever asked for input may have gone: the attempt id that it knows must not be the fence of the next.
        (JobState::Running, Trigger::Automatic) if job.goes_on_with_another() => match job.cancel {
            Some(_) => Err(Refusal::CancelPending),
            None => may_be_done(job, now),
        },
        (_, Trigger::Automatic) if planted(Bug::DispatchFromAnyState) => may_be_done(job, now),
        (JobState::Queued { .. }, Trigger::Retry | Trigger::Continued) => {
            Err(Refusal::NotRetryable { state })
        }
        (
            JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Expired
            | JobState::Unavailable { .. },
            Trigger::Automatic | Trigger::Continued,
        ) => Err(Refusal::Terminal { state }),
        (
            JobState::Dispatching
            | JobState::Delivered
            | JobState::Running
            | JobState::AwaitingInput
            | JobState::AwaitingExternal { .. }
            | JobState::Blocked,
            Trigger::Automatic | Trigger::Continued,
        ) => Err(Refusal::LeaseHeld { state }),
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
        ) => Err(Refusal::NotRunnable { state }),
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
        ) => Err(Refusal::NotRetryable { state }),
    }
}

/// Whether what it was asked to do is still there, and there is time for it.
fn may_be_done(job: &Job, now: Timestamp) -> Result<(), Refusal> {
    if job.purged_at.is_some() && !planted(Bug::PurgedDoneAgain) {
        return Err(Refusal::Purged);
    }
    if job.expires_at().is_some_and(|limit| limit <= now) {
        return Err(Refusal::DeadlineElapsed);
    }
    Ok(())
}

pub(super) fn resume(job: &Job, attempt_id: &AttemptId) -> Decision<JobFact> {
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

pub(super) fn deliver(job: &Job, attempt_id: &AttemptId) -> Decision<JobFact> {
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
        | JobState::Unavailable { .. } => ends::no_move(job, JobStateName::Delivered).into(),
    }
}

/// Renewing the lease is the claim's business; on the record only the first heartbeat leaves a fact.
pub(super) fn heartbeat(job: &Job, attempt_id: &AttemptId, by: &Reporter) -> Decision<JobFact> {
    if let Err(refusal) = ends::handed_to(job, attempt_id, by).and_then(|()| ends::current(job, attempt_id)) {
        return refusal.into();
    }
    match job.state {
        JobState::Dispatching | JobState::Delivered => Decision::fact(JobFact::Started(Details::default())),
        // Answered, it is handed out anew: to whoever pulls next.
        JobState::Running if job.resume_pending && job.spec.executor.is_none() => {
            Refusal::StaleAttempt.into()
        }
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

pub(super) fn lose_lease(
    job: &Job,
    attempt_id: &AttemptId,
    jitter: Jitter,
    now: Timestamp,
) -> Decision<JobFact> {
    match job.state {
        JobState::Dispatching | JobState::Delivered | JobState::Running
            if ends::current(job, attempt_id).is_ok() && !job.resume_pending =>
        {
            let never_again = job.intent.as_ref().is_some_and(|intent| intent.resubmit == Resubmit::Never);
            if job.cancel.is_some() {
                ends::abandoning(job, cancelled(CancelCause::LeaseLost), SUBMIT_OUTCOME_UNKNOWN)
            } else if job.may_retry_by_itself() && !never_again {
                let wait = job.spec.retry.wait_micros(job.attempt_count, jitter);
                let due_at = now.plus_micros(wait);
                let details = Details::default();
                Decision::fact(JobFact::Requeued { due_at, cause: RequeueCause::LeaseLost, details })
            } else {
                // A second start that nobody asked for would be worse than none.
                let end = match &job.intent {
                    // The same end as when whoever made the request says that nobody knows what came of it.
                    Some(_) => JobFact::Failed(Details::because(SUBMIT_OUTCOME_UNKNOWN)),
                    None => JobFact::BecameUnavailable(Conclusion {
                        cause: Unavailability::LeaseLost,
                        details: Details::default(),
                    }),
                };
                ends::abandoning(job, end, SUBMIT_OUTCOME_UNKNOWN)
            }
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

/// Only of work that someone outside does: an executor's own attempt is ended by whoever runs it.
pub(super) fn time_out_attempt(
    job: &Job,
    attempt_id: &AttemptId,
    jitter: Jitter,
    now: Timestamp,
) -> Decision<JobFact> {
    match job.state {
        JobState::Dispatching | JobState::Delivered | JobState::Running
            if ends::current(job, attempt_id).is_ok() =>
        {
            match job.attempt_ends_at() {
                Some(limit) if limit <= now => {
                    let details = Details::because("timed_out");
                    Decision::fact(ends::failed_or_requeued(job, details, Retryable::Yes, jitter, now))
                }
                Some(due_at) => Refusal::NotDue { due_at }.into(),
                None => Decision::Nothing,
            }
        }
        // Another attempt is current, or its time does not run any more.
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
