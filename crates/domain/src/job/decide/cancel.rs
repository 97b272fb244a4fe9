//! Cancel: a request first; terminal only when confirmed, or when its time is over.

use crate::job::CANCEL_LIMIT_SECONDS;
use crate::job::attempt::Release;
use crate::job::cancel::{CancelAnswer, CancelRecipient, CancelSent, CancelTry};
use crate::job::details::Details;
use crate::job::ends::{self, cancelled};
use crate::job::fact::{CancelCause, Conclusion, JobFact};
use crate::job::phase::{Held, Phase, Waiting};
use crate::job::state::{Job, JobStateName};
use crate::limits::{KEPT_CANCEL_REPEATS, MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_optional, check_text};
use crate::operation::{CancelOrigin, OperationCommand};
use crate::planted::{Bug, planted};
use crate::{AttemptId, Decision, Refusal, Timestamp};

/// Every request leaves a fact, whatever comes of it.
pub(super) fn request_cancel(job: &Job, by: Option<&str>, reason: &str, now: Timestamp) -> Decision<JobFact> {
    request(job, by, reason, CancelOrigin::ParentJob, now)
}

/// The same, but work that goes on whatever is asked of it is left alone, and its caller is told why.
pub(super) fn cancel_or_refuse(
    job: &Job,
    by: Option<&str>,
    reason: &str,
    now: Timestamp,
) -> Decision<JobFact> {
    let because = || job.cancel.as_ref()?.unavailable_because();
    match job.intent_not_cancelable().or_else(because) {
        Some(because) if !job.state.name().is_terminal() => {
            Refusal::NotCancelable { reason: because.to_owned() }.into()
        }
        Some(_) | None => request(job, by, reason, CancelOrigin::Caller, now),
    }
}

fn request(
    job: &Job,
    by: Option<&str>,
    reason: &str,
    origin: CancelOrigin,
    now: Timestamp,
) -> Decision<JobFact> {
    if let Err(refusal) = check_text("cancel reason", reason, MAX_NOTE_BYTES)
        .and_then(|()| check_optional("cancel requester", by, MAX_LABEL_BYTES))
    {
        return refusal.into();
    }
    let requested = JobFact::CancelRequested {
        by: by.map(str::to_owned),
        reason: reason.to_owned(),
        limit_at: is_bounded(job).then(|| now.plus_seconds(CANCEL_LIMIT_SECONDS)),
    };
    match job.state.phase() {
        Phase::Queued { .. } if job.intent.is_none() => {
            Decision::facts([requested, cancelled(CancelCause::NeverStarted)])
        }
        // What it waited for has come, and nobody has it yet.
        Phase::Held(Held::Running) if job.goes_on_with_another() => {
            Decision::facts([requested, cancelled(CancelCause::Confirmed)])
        }
        // A service may have it since the last attempt: only the orphan ledger can say so.
        Phase::Queued { .. } => {
            let mut decision =
                ends::abandoning(job, cancelled(CancelCause::SubmitUnknown), "cancel_unconfirmed");
            if let Decision::Facts { facts, .. } = &mut decision {
                facts.insert(0, requested);
            }
            decision
        }
        Phase::Ended(_) if planted(Bug::CancelOverwritesTerminal) => {
            Decision::fact(cancelled(CancelCause::Confirmed))
        }
        Phase::Held(_) | Phase::Waiting(_) if job.cancel.is_some() => repeated(job, by, reason),
        Phase::Held(_) | Phase::Waiting(Waiting::Input | Waiting::Blocked) => {
            match job.intent_not_cancelable() {
                _ if planted(Bug::CancelSaidToBeSent) => {
                    let sent = CancelTry::sent_to(CancelRecipient::Executor);
                    Decision::facts([requested, JobFact::CancelTried(sent)])
                }
                // It is being given to a service that cannot stop it: it goes on to its end, and says so.
                Some(because) => {
                    let tried = CancelTry::NotCancelable(because.to_owned());
                    Decision::facts([requested, JobFact::CancelTried(tried)])
                }
                None => Decision::fact(requested),
            }
        }
        Phase::Waiting(Waiting::External { .. }) if planted(Bug::CancelNotPassedOn) => {
            Decision::fact(requested)
        }
        Phase::Waiting(Waiting::External { operation, .. }) => Decision::fact(requested).then(
            operation.clone(),
            OperationCommand::RequestCancel { by: by.map(str::to_owned), reason: reason.to_owned(), origin },
        ),
        // A late cancel leaves the end as it is, and is kept: the work is not begun again.
        Phase::Ended(_) => match job.cancel {
            Some(_) => repeated(job, by, reason),
            None => Decision::fact(requested),
        },
    }
}

/// Whether a cancel of it is over after a while without a word of its executor. Work that was never dispatched goes on until its
/// worker reports, and what is over waits for nobody.
fn is_bounded(job: &Job) -> bool {
    match job.state.phase() {
        Phase::Queued { .. } => true,
        Phase::Held(_) | Phase::Waiting(_) => {
            !job.attempts.is_empty() || planted(Bug::UnmanagedCancelTimedOut)
        }
        Phase::Ended(_) => false,
    }
}

/// The first request decides when it ends; those that follow are kept, up to a number.
fn repeated(job: &Job, by: Option<&str>, reason: &str) -> Decision<JobFact> {
    if job.cancel.as_ref().is_some_and(|cancel| cancel.repeated.len() >= KEPT_CANCEL_REPEATS) {
        return Decision::Nothing;
    }
    Decision::fact(JobFact::CancelRepeated { by: by.map(str::to_owned), reason: reason.to_owned() })
}

/// Repeats beyond those that are kept one by one are counted, whatever the job's state.
pub(super) fn count_repeats(job: &Job, count: u32) -> Decision<JobFact> {
    match &job.cancel {
        Some(cancel) if count > 0 && cancel.repeats < u32::MAX => {
            Decision::fact(JobFact::CancelRepeatsCounted { count })
        }
        Some(_) | None => Decision::Nothing,
    }
}

/// Who was sent the cancel, or why nobody was. What is said of work that is not current any more changes nothing.
pub(super) fn record_cancel_try(job: &Job, attempt_id: &AttemptId, tried: &CancelTry) -> Decision<JobFact> {
    if let Err(refusal) = tried.check() {
        return refusal.into();
    }
    let Some(cancel) = job.cancel.as_ref().filter(|cancel| !cancel.is_late()) else {
        return Decision::Nothing;
    };
    let is_news = match tried {
        // Whoever hears of it besides cannot stop it either.
        CancelTry::Sent(CancelSent { answer: None, .. }) | CancelTry::NotSent(_)
            if cancel.unavailable_because().is_some() =>
        {
            false
        }
        // However it was told first: it knows.
        CancelTry::Sent(CancelSent { answer: None, .. }) | CancelTry::NotSent(_) if cancel.was_sent() => {
            false
        }
        CancelTry::Sent(_) | CancelTry::NotSent(_) | CancelTry::NotCancelable(_) => {
            cancel.tried.as_ref().is_none_or(|kept| kept.tried != *tried)
        }
    };
    if is_news && ends::current(job, attempt_id).is_ok() {
        Decision::fact(JobFact::CancelTried(tried.clone()))
    } else {
        Decision::Nothing
    }
}

pub(super) fn record_cancel_answer(
    job: &Job,
    attempt_id: &AttemptId,
    answer: &CancelAnswer,
    release: Option<Release>,
) -> Decision<JobFact> {
    if let Err(refusal) = answer.check().and_then(|()| ends::current(job, attempt_id)) {
        return refusal.into();
    }
    match job.state.phase() {
        Phase::Held(_) | Phase::Waiting(_) => match (answer, job.cancel.is_some()) {
            (_, false) => Refusal::NoCancelPending.into(),
            (CancelAnswer::Cancelled, true) => {
                ends::abandoning(job, released(CancelCause::Confirmed, release), "cancelled")
            }
            (CancelAnswer::NeverStarted, true) => never_started(job, release),
            (CancelAnswer::Accepted | CancelAnswer::Refused(_) | CancelAnswer::Unreachable, true) => {
                Decision::fact(JobFact::CancelAnswered(answer.clone()))
            }
        },
        Phase::Queued { .. } => Refusal::NoCancelPending.into(),
        Phase::Ended(_) => Decision::Nothing,
    }
}

/// The end by a cancel of an attempt whose executor was seen to end, or to go on for others.
fn released(cause: CancelCause, release: Option<Release>) -> JobFact {
    let details = Details { release, ..Details::default() };
    JobFact::Cancelled(Conclusion { cause, details })
}

/// The attempt has begun nothing. What an earlier one asked of a service may still have arrived there.
fn never_started(job: &Job, release: Option<Release>) -> Decision<JobFact> {
    match job.state.phase() {
        Phase::Held(_) if job.intent.is_some() => {
            ends::abandoning(job, released(CancelCause::SubmitUnknown, None), "cancel_unconfirmed")
        }
        Phase::Held(_) => Decision::fact(released(CancelCause::NeverStarted, release)),
        Phase::Queued { .. } | Phase::Waiting(_) | Phase::Ended(_) => {
            ends::no_move(job, JobStateName::Cancelled).into()
        }
    }
}

pub(super) fn time_out_cancel(job: &Job, now: Timestamp) -> Decision<JobFact> {
    match job.state.phase() {
        Phase::Held(_) | Phase::Waiting(_) => match job.cancel_limit_at() {
            None if job.cancel.is_none() => Refusal::NoCancelPending.into(),
            None => Refusal::NotDue { due_at: Timestamp::from_micros(i64::MAX) }.into(),
            Some(limit_at) if now < limit_at && !planted(Bug::CancelTimedOutEarly) => {
                Refusal::NotDue { due_at: limit_at }.into()
            }
            Some(_) => ends::abandoning(job, cancelled(CancelCause::TimedOut), "cancel_unconfirmed"),
        },
        Phase::Queued { .. } => Refusal::NoCancelPending.into(),
        Phase::Ended(_) => Decision::Nothing,
    }
}
