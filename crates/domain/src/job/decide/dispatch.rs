//! Attempts: how one begins, goes on and is lost.

use crate::job::attempt::{Release, Trigger};
use crate::job::command::{Dispatch, Retryable};
use crate::job::details::{AttemptLimit, Details, ResultRefs};
use crate::job::ends::{self, SUBMIT_OUTCOME_UNKNOWN};
use crate::job::fact::{CancelCause, Conclusion, JobFact, RequeueCause, Unavailability};
use crate::job::holder::{Holder, Reporter};
use crate::job::intent::Resubmit;
use crate::job::phase::{Ended, Held, Phase};
use crate::job::state::{Job, JobStateName};
use crate::limits::{MAX_ID_BYTES, check_text};
use crate::planted::{Bug, planted};
use crate::{AttemptId, BodyRef, Decision, Jitter, Refusal, Timestamp};

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
    match (job.state.phase(), may_begin(job, trigger, now)) {
        (_, Err(refusal)) => refusal.into(),
        (Phase::Queued { due_at }, Ok(())) if due_at <= now => Refusal::WaitsForPuller.into(),
        (_, Ok(())) => {
            let details = Details::default();
            Decision::fact(JobFact::Requeued { due_at: now, cause: RequeueCause::Asked, details })
        }
    }
}

/// Whether another attempt may begin, for this reason.
fn may_begin(job: &Job, trigger: Trigger, now: Timestamp) -> Result<(), Refusal> {
    let state = job.state.name();
    match (job.state.phase(), trigger) {
        (Phase::Queued { .. } | Phase::Held(Held::Delivered), _) if job.cancel.is_some() => {
            Err(Refusal::CancelPending)
        }
        // Whoever asked to stop it must not find it done again.
        (Phase::Ended(Ended::Failed | Ended::Unavailable { .. }), Trigger::Run | Trigger::Retry)
            if job.cancel.is_some() && !planted(Bug::RetriedAfterLateCancel) =>
        {
            Err(Refusal::CancelRequested)
        }
        (Phase::Queued { due_at }, Trigger::Automatic) if now < due_at && !planted(Bug::DispatchedEarly) => {
            Err(Refusal::NotDue { due_at })
        }
        (Phase::Queued { .. }, Trigger::Automatic | Trigger::Run)
        | (Phase::Ended(Ended::Failed | Ended::Unavailable { .. }), Trigger::Run | Trigger::Retry)
        | (Phase::Held(Held::Delivered), Trigger::Retry) => may_be_done(job, now),
        // Whoever asked for input may have gone: the attempt id that it knows must not be the fence of the next.
        (Phase::Held(Held::Running), Trigger::Automatic) if job.goes_on_with_another() => match job.cancel {
            Some(_) => Err(Refusal::CancelPending),
            None => may_be_done(job, now),
        },
        (_, Trigger::Automatic) if planted(Bug::DispatchFromAnyState) => may_be_done(job, now),
        (Phase::Ended(_), Trigger::Automatic | Trigger::Continued) => Err(Refusal::Terminal { state }),
        (Phase::Held(_) | Phase::Waiting(_), Trigger::Automatic | Trigger::Continued) => {
            Err(Refusal::LeaseHeld { state })
        }
        (Phase::Held(_) | Phase::Waiting(_) | Phase::Ended(_), Trigger::Run) => {
            Err(Refusal::NotRunnable { state })
        }
        (Phase::Queued { .. }, Trigger::Retry | Trigger::Continued)
        | (Phase::Held(_) | Phase::Waiting(_) | Phase::Ended(_), Trigger::Retry) => {
            Err(Refusal::NotRetryable { state })
        }
    }
}

/// Whether what it was asked to do is still there, and there is time for it.
fn may_be_done(job: &Job, now: Timestamp) -> Result<(), Refusal> {
    if let Some(hold) = job.hold().filter(|_| !planted(Bug::PurgedDoneAgain)) {
        return Err(hold.refusal());
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
    match job.state.phase() {
        Phase::Held(Held::Running) if job.resume_pending && job.cancel.is_some() => {
            Refusal::CancelPending.into()
        }
        Phase::Held(Held::Running) if job.resume_pending => Decision::fact(JobFact::Resumed),
        Phase::Held(Held::Running) => Decision::Nothing,
        Phase::Held(Held::Dispatching | Held::Delivered)
        | Phase::Queued { .. }
        | Phase::Waiting(_)
        | Phase::Ended(_) => Refusal::NotRunnable { state: job.state.name() }.into(),
    }
}

pub(super) fn deliver(job: &Job, attempt_id: &AttemptId) -> Decision<JobFact> {
    if let Err(refusal) = ends::current(job, attempt_id) {
        return refusal.into();
    }
    match job.state.phase() {
        Phase::Held(Held::Dispatching) => Decision::fact(JobFact::Delivered),
        // The executor may have started before its acceptance was recorded.
        Phase::Held(Held::Delivered | Held::Running) => Decision::Nothing,
        Phase::Queued { .. } | Phase::Waiting(_) | Phase::Ended(_) => {
            ends::no_move(job, JobStateName::Delivered).into()
        }
    }
}

/// Renewing the lease is the claim's business; on the record only the first heartbeat leaves a fact.
pub(super) fn heartbeat(job: &Job, attempt_id: &AttemptId, by: &Reporter) -> Decision<JobFact> {
    if let Err(refusal) = ends::handed_to(job, attempt_id, by).and_then(|()| ends::current(job, attempt_id)) {
        return refusal.into();
    }
    match job.state.phase() {
        Phase::Held(Held::Dispatching | Held::Delivered) => {
            Decision::fact(JobFact::Started(Details::default()))
        }
        // Answered, it is handed out anew: to whoever pulls next.
        Phase::Held(Held::Running) if job.resume_pending && job.spec.executor.is_none() => {
            Refusal::StaleAttempt.into()
        }
        Phase::Held(Held::Running) | Phase::Waiting(_) => Decision::Nothing,
        Phase::Queued { .. } => Refusal::StaleAttempt.into(),
        Phase::Ended(_) => Refusal::Terminal { state: job.state.name() }.into(),
    }
}

pub(super) fn lose_lease(
    job: &Job,
    attempt_id: &AttemptId,
    error: Option<BodyRef>,
    jitter: Jitter,
    now: Timestamp,
) -> Decision<JobFact> {
    match job.state.phase() {
        Phase::Held(_) if ends::current(job, attempt_id).is_ok() && !job.resume_pending => {
            let result = ResultRefs { error, ..ResultRefs::default() };
            let never_again = job.intent.as_ref().is_some_and(|intent| intent.resubmit == Resubmit::Never);
            if job.cancel.is_some() {
                let details = Details { result, ..Details::default() };
                let end = JobFact::Cancelled(Conclusion { cause: CancelCause::LeaseLost, details });
                ends::abandoning(job, end, SUBMIT_OUTCOME_UNKNOWN)
            } else if job.may_follow_a_lost_worker() && !never_again {
                let wait = job.retry_after_loss().wait_micros(job.attempt_count, jitter);
                let due_at = now.plus_micros(wait);
                let details = Details { result, ..Details::default() };
                Decision::fact(JobFact::Requeued { due_at, cause: RequeueCause::LeaseLost, details })
            } else {
                // A second start that nobody asked for would be worse than none.
                let end = match &job.intent {
                    // The same end as when whoever made the request says that nobody knows what came of it.
                    Some(_) => {
                        JobFact::Failed(Details { result, ..Details::because(SUBMIT_OUTCOME_UNKNOWN) })
                    }
                    None => JobFact::BecameUnavailable(Conclusion {
                        cause: Unavailability::LeaseLost,
                        details: Details {
                            attempts_used_up: job.used_its_last_worker(),
                            result,
                            ..Details::default()
                        },
                    }),
                };
                ends::abandoning(job, end, SUBMIT_OUTCOME_UNKNOWN)
            }
        }
        // Another attempt is current, or nobody needs a lease here any more.
        Phase::Held(_) | Phase::Queued { .. } | Phase::Waiting(_) | Phase::Ended(_) => Decision::Nothing,
    }
}

/// Only of work that someone outside does: an executor's own attempt is ended by whoever runs it.
pub(super) fn time_out_attempt(
    job: &Job,
    attempt_id: &AttemptId,
    jitter: Jitter,
    now: Timestamp,
) -> Decision<JobFact> {
    match job.state.phase() {
        Phase::Held(_) if ends::current(job, attempt_id).is_ok() => match job.attempt_ends_at() {
            Some(limit) if limit <= now => {
                let details =
                    Details { limit: Some(Box::new(AttemptLimit::Job)), ..Details::because("timed_out") };
                Decision::fact(ends::failed_or_requeued(job, details, Retryable::Yes, jitter, now))
            }
            Some(due_at) => Refusal::NotDue { due_at }.into(),
            None => Decision::Nothing,
        },
        // Another attempt is current, or its time does not run any more.
        Phase::Held(_) | Phase::Queued { .. } | Phase::Waiting(_) | Phase::Ended(_) => Decision::Nothing,
    }
}

/// What became of the executor of an attempt is written down once, also when the job is over or goes on with another attempt.
pub(in crate::job) fn record_release(
    job: &Job,
    attempt_id: &AttemptId,
    release: Release,
) -> Decision<JobFact> {
    let ours = job.attempts.iter().find(|attempt| attempt.id == *attempt_id);
    match ours.filter(|attempt| attempt.holder == Holder::Daemon && attempt.release.is_none()) {
        Some(attempt) => Decision::fact(JobFact::ExecutorReleased { attempt: attempt.number, release }),
        None => Decision::Nothing,
    }
}
