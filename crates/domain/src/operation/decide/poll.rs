//! What a service says of the work, and what it means when it says nothing.

use super::{Decision, conclude, conclusion, expired_after, give_up, late};
use crate::job::{OperationEnding, ResultRefs, Retryable};
use crate::limits::{
    MAX_LABEL_BYTES, MAX_NOTE_BYTES, MAX_PROGRESS_BYTES, MAX_SUMMARY_BYTES, check_optional,
    check_optional_bytes, check_text,
};
use crate::operation::command::{Poll, PollAnswer, PollError, PollFailure, PollHints};
use crate::operation::fact::{Ending, ExpiryCause, OperationFact, Polled, Settlement};
use crate::operation::state::{Operation, OperationStatus, ReportedStatus, SPECIALIST_UNREGISTERED};
use crate::planted::{Bug, planted};
use crate::policy::{Clamped, Hint, TimedOutPolicy, TtlHints, UnknownPolicy};
use crate::{Jitter, Json, Refusal, Timestamp};

pub(super) fn record_poll(operation: &Operation, poll: &Poll, now: Timestamp) -> Decision {
    if let Err(refusal) = check_answer(&poll.answer) {
        return refusal.into();
    }
    if let Some(status) = poll.answer.status() {
        if operation.ended.is_some() && !planted(Bug::LastAnswerWins) {
            return late::record_word(operation, status, poll.jitter, now);
        }
        if operation.expires_at <= now && !planted(Bug::ExpiryRearmed) {
            return too_late(operation, status);
        }
    }
    match &poll.answer {
        PollAnswer::Open(reported, hints) => still_open(operation, *reported, hints, poll.jitter, now),
        PollAnswer::Completed(result) => resolve(
            operation,
            Ending::Completed { result: result.clone() },
            OperationEnding::Completed(result.clone()),
            poll.jitter,
        ),
        PollAnswer::Failed(PollFailure { failure_detail, error_code, result, retryable }) => resolve(
            operation,
            Ending::Failed {
                failure_detail: failure_detail.clone(),
                error_code: error_code.clone(),
                result: without_data(result),
            },
            OperationEnding::Failed {
                reason: error_code.clone().unwrap_or_else(|| "operation_failed".to_owned()),
                result: without_data(result),
                retryable: *retryable,
            },
            poll.jitter,
        ),
        PollAnswer::TimedOut => {
            // Whoever runs out of time once will do so again, unless the operator says otherwise.
            let again = match operation.policy.timed_out_policy {
                TimedOutPolicy::Terminal => Retryable::No,
                TimedOutPolicy::Resubmit => Retryable::Yes,
            };
            resolve(operation, Ending::TimedOut, OperationEnding::TimedOut(again), poll.jitter)
        }
        PollAnswer::Expired => resolve(operation, Ending::Expired, expired_after(operation), poll.jitter),
        PollAnswer::NobodyToAsk(PollFailure { result, .. }) => resolve(
            operation,
            Ending::NobodyToAsk,
            OperationEnding::GivenUp {
                reason: SPECIALIST_UNREGISTERED.to_owned(),
                result: without_data(result),
            },
            poll.jitter,
        ),
        PollAnswer::Cancelled => conclude(operation, OperationFact::Cancelled, OperationEnding::Cancelled),
        PollAnswer::Unknown => match operation.policy.unknown_policy {
            UnknownPolicy::Terminal => {
                resolve(operation, Ending::Unknown, OperationEnding::Unknown, poll.jitter)
            }
            UnknownPolicy::RetryUntilExpiry => {
                record_poll_error(operation, &late::unknown(), Hint::Absent, poll.jitter, now)
            }
        },
        PollAnswer::NotNow { error, retry_after } => {
            record_poll_error(operation, error, *retry_after, poll.jitter, now)
        }
    }
}

/// The life is over, whatever the service says now; an end that came too late is kept as a diagnostic, and nothing runs there any more.
fn too_late(operation: &Operation, status: OperationStatus) -> Decision {
    let cause = ExpiryCause::LifetimeOver;
    let settled = Settlement::by_word_of(status);
    let mut decision = match settled {
        Some(_) => conclude(operation, OperationFact::Expired { cause }, expired_after(operation)),
        None => give_up(operation, cause),
    };
    if let Decision::Facts { facts, .. } = &mut decision
        && status.is_terminal()
    {
        facts.push(OperationFact::Contradicted { status });
        facts.extend(settled.map(OperationFact::Settled));
    }
    decision
}

fn still_open(
    operation: &Operation,
    reported: ReportedStatus,
    hints: &PollHints,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    let policy = &operation.policy;
    // A service that says nothing about time keeps the rhythm that it has.
    let interval = match hints.retry_after {
        Hint::Absent => Clamped { seconds: operation.interval_seconds, hint_was_invalid: false },
        Hint::Seconds(_) | Hint::Invalid => policy.retry_after(hints.retry_after),
    };
    let polled = Polled {
        status: progressed(operation.reported, reported),
        interval_seconds: changed(operation.interval_seconds, interval.seconds),
        asked_retry_after_seconds: hints.retry_after.seconds().filter(|asked| {
            *asked != operation.asked_retry_after_seconds.unwrap_or_else(|| i64::from(interval.seconds))
        }),
        progress_hint: hints
            .progress_hint
            .clone()
            .filter(|hint| Some(hint) != operation.progress_hint.as_ref()),
        progress: hints.progress.clone().filter(|progress| Some(progress) != operation.progress.as_ref()),
        expires_at: shortened(operation, hints.fail_after, now),
        error: None,
        invalid_hint: interval.hint_was_invalid,
        next_poll_at: policy.next_poll_at(interval.seconds, jitter, now),
    };
    polled_or_given_up(operation, polled)
}

/// After an error: when the host would ask anyway, or later if the service asks for that and the host goes along.
fn next_poll_at(
    operation: &Operation,
    errors_in_row: u32,
    retry_after: Hint,
    jitter: Jitter,
    now: Timestamp,
) -> Timestamp {
    if planted(Bug::ErrorPolledAgainAtOnce) {
        return now;
    }
    let policy = &operation.policy;
    let by_host = policy.next_poll_after_error(errors_in_row, jitter, now);
    match retry_after {
        Hint::Absent | Hint::Invalid => by_host,
        hint @ Hint::Seconds(_) => {
            by_host.max(policy.next_poll_at(policy.retry_after(hint).seconds, jitter, now))
        }
    }
}

fn record_poll_error(
    operation: &Operation,
    error: &PollError,
    retry_after: Hint,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    let error = &error.without_words();
    if operation.ended.is_some() {
        return late::record_error(operation, error, jitter, now);
    }
    if operation.expires_at <= now {
        return give_up(operation, ExpiryCause::LifetimeOver);
    }
    let errors_in_row = operation.errors_in_row.saturating_add(1);
    let next_poll_at = next_poll_at(operation, errors_in_row, retry_after, jitter, now);
    let polled = Polled { error: Some(error.clone()), next_poll_at, ..Polled::default() };
    polled_or_given_up(operation, polled)
}

fn resolve(operation: &Operation, ending: Ending, for_job: OperationEnding, jitter: Jitter) -> Decision {
    let resolved = Decision::fact(OperationFact::Resolved(ending));
    if planted(Bug::EndNotTold) {
        return resolved;
    }
    resolved.then(operation.link.job_id.clone(), conclusion(operation, for_job, jitter))
}

/// A poll that leaves it open uses up one of the granted polls; the last one ends it.
fn polled_or_given_up(operation: &Operation, polled: Polled) -> Decision {
    let error = polled.error.clone();
    let polled = OperationFact::Polled(polled);
    if operation.polls.saturating_add(1) < operation.policy.max_attempts || planted(Bug::PollsUnbounded) {
        return Decision::fact(polled);
    }
    let last = Operation { last_error: error, ..operation.clone() };
    let mut decision = give_up(&last, ExpiryCause::MaxAttemptsExhausted);
    if let Decision::Facts { facts, .. } = &mut decision {
        facts.insert(0, polled);
    }
    decision
}

/// Work that has begun does not un-begin, whatever the service says.
fn progressed(from: ReportedStatus, to: ReportedStatus) -> Option<ReportedStatus> {
    match (from, to) {
        (ReportedStatus::Pending, ReportedStatus::Running) => Some(to),
        (ReportedStatus::Pending | ReportedStatus::Running, _) => None,
    }
}

fn shortened(operation: &Operation, fail_after: Hint, now: Timestamp) -> Option<Timestamp> {
    let hints = TtlHints { fail_after, ..TtlHints::default() };
    let asked = operation.policy.expires_at(hints, now).ok()?;
    match fail_after {
        Hint::Seconds(_) if asked < operation.expires_at => Some(asked),
        _ if planted(Bug::ExpiryRearmed) => Some(asked),
        Hint::Seconds(_) | Hint::Absent | Hint::Invalid => None,
    }
}

fn changed(old: u32, new: u32) -> Option<u32> {
    (old != new).then_some(new)
}

fn check_answer(answer: &PollAnswer) -> Result<(), Refusal> {
    match answer {
        PollAnswer::Open(_, hints) => {
            check_optional("progress_hint", hints.progress_hint.as_deref(), MAX_NOTE_BYTES)?;
            check_optional_bytes("progress", hints.progress.as_ref().map(Json::as_str), MAX_PROGRESS_BYTES)
        }
        PollAnswer::Completed(result) => check_result(result),
        PollAnswer::Failed(failure) => {
            check_text("failure_detail", &failure.failure_detail, MAX_NOTE_BYTES)?;
            check_optional("error_code", failure.error_code.as_deref(), MAX_LABEL_BYTES)?;
            check_result(&failure.result)
        }
        PollAnswer::NobodyToAsk(failure) => check_result(&failure.result),
        PollAnswer::NotNow { error, .. } => error.check(),
        PollAnswer::TimedOut | PollAnswer::Cancelled | PollAnswer::Expired | PollAnswer::Unknown => Ok(()),
    }
}

/// Only a success has a result; a failure has an error, and what there is to see of it.
fn without_data(result: &ResultRefs) -> ResultRefs {
    ResultRefs { data: None, ..result.clone() }
}

fn check_result(result: &ResultRefs) -> Result<(), Refusal> {
    check_optional("result_summary", result.summary.as_deref(), MAX_SUMMARY_BYTES)?;
    result.check()
}
