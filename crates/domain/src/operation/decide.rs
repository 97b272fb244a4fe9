//! What may happen to an operation: one function per command.
//!
//! The first end wins; what the service says later is a diagnostic. A poll that fails says nothing about the work.
//! Whatever a service hints, nothing leaves the bounds of the host's policy.

use super::command::PollHints;
use super::command::{
    CancelOrigin, Cancelability, NewOperation, OperationCommand, Poll, PollAnswer, PollError,
};
use super::fact::{Accepted, Ending, ExpiryCause, OperationFact, Polled, Settlement};
use super::state::{
    LATE_STATUS_IGNORED, Operation, OperationCancel, OperationLink, OperationStatus, ReportedStatus,
};
use crate::job::{CancelAnswer, JobCommand, OperationEnding, Retryable};
use crate::limits::{
    MAX_LABEL_BYTES, MAX_NOTE_BYTES, MAX_PROGRESS_BYTES, MAX_SUMMARY_BYTES, check_optional, check_text,
};
use crate::planted::{Bug, planted};
use crate::policy::{CancelPolicy, Clamped, Hint, TtlHints, UnknownPolicy};
use crate::{BodyName, Jitter, Json, OperationId, RecordId, Refusal, Timestamp};

/// How often a service that cannot be reached is asked to stop what the host has given up.
const MAX_LATE_CANCEL_TRIES: u32 = 10;

type Decision = crate::Decision<OperationFact>;

/// Decides a command on an operation that does not exist yet.
pub fn decide_new(id: &OperationId, command: &OperationCommand, now: Timestamp) -> Decision {
    match command {
        OperationCommand::Accept(new) => accept(id, new, now),
        OperationCommand::AcceptOrphan { operation, reason } => accept_orphan(id, operation, reason, now),
        // A job gives up what it knows of; there may be nothing left of it.
        OperationCommand::Abandon { .. } => Decision::Nothing,
        OperationCommand::RecordPoll(_)
        | OperationCommand::RecordPollError { .. }
        | OperationCommand::RequestCancel { .. }
        | OperationCommand::RecordCancelAnswer { .. }
        | OperationCommand::Settle { .. }
        | OperationCommand::Expire
        | OperationCommand::Retire => Decision::refuse(Refusal::UnknownRecord),
    }
}

/// Decides a command on an operation.
pub fn decide(operation: &Operation, command: &OperationCommand, now: Timestamp) -> Decision {
    match command {
        OperationCommand::Accept(_) => Decision::refuse(Refusal::AlreadyExists),
        OperationCommand::AcceptOrphan { operation: new, .. } => learn_handle(operation, new),
        OperationCommand::RecordPoll(poll) => record_poll(operation, poll, now),
        OperationCommand::RecordPollError { error, jitter } => {
            record_poll_error(operation, error, *jitter, now)
        }
        OperationCommand::RequestCancel { by, reason, origin } => {
            request_cancel(operation, by.as_deref(), reason, *origin)
        }
        OperationCommand::RecordCancelAnswer { answer, jitter } => {
            record_cancel_answer(operation, answer, *jitter, now)
        }
        OperationCommand::Settle { by, note } => settle(operation, by.as_deref(), note),
        OperationCommand::Expire => expire(operation, now),
        OperationCommand::Abandon { reason } => abandon(operation, reason),
        OperationCommand::Retire => retire(operation),
    }
}

fn accept(id: &OperationId, new: &NewOperation, now: Timestamp) -> Decision {
    match accepted(id, new, now) {
        Ok(_) if new.handle.is_none() => {
            Refusal::WrongBody { expected: BodyName::Handle.as_str(), given: "nothing" }.into()
        }
        Ok(fact) => Decision::fact(fact),
        Err(refusal) => refusal.into(),
    }
}

/// Nobody waits for it and nobody polls it: it is over for the host as soon as it is known.
fn accept_orphan(id: &OperationId, new: &NewOperation, reason: &str, now: Timestamp) -> Decision {
    match accepted(id, new, now) {
        Ok(fact) if new.handle.is_none() => {
            let cause = ExpiryCause::SubmitOutcomeUnknown;
            Decision::facts([fact, OperationFact::Expired { cause }])
        }
        Ok(fact) => Decision::facts([fact, abandoned(reason)]),
        Err(refusal) => refusal.into(),
    }
}

/// It is known already; only a handle that nobody knew is news.
fn learn_handle(operation: &Operation, new: &NewOperation) -> Decision {
    match (operation.handle, new.handle) {
        (None, Some(handle)) => match handle.check_named(BodyName::Handle) {
            Ok(()) => Decision::fact(OperationFact::HandleLearned {
                handle,
                cancelability: new.cancelability.clone(),
            }),
            Err(refusal) => refusal.into(),
        },
        (None, None) | (Some(_), _) => Decision::Nothing,
    }
}

fn settle(operation: &Operation, by: Option<&str>, note: &str) -> Decision {
    let checked =
        check_text("note", note, MAX_NOTE_BYTES).and_then(|()| check_optional("by", by, MAX_LABEL_BYTES));
    if let Err(refusal) = checked {
        return refusal.into();
    }
    match (operation.orphan(), &operation.settled) {
        (Some(_), _) => Decision::fact(OperationFact::Settled(Settlement::ByHand {
            by: by.map(str::to_owned),
            note: note.to_owned(),
        })),
        (None, Some(_)) => Decision::Nothing,
        (None, None) => Refusal::NotOrphaned.into(),
    }
}

fn accepted(id: &OperationId, new: &NewOperation, now: Timestamp) -> Result<OperationFact, Refusal> {
    RecordId::Operation(id.clone())
        .check()
        .and_then(|()| new.policy.check())
        .and_then(|()| check_text("operation kind", &new.kind, MAX_LABEL_BYTES))
        .and_then(|()| check_text("specialist", &new.specialist, MAX_LABEL_BYTES))
        .and_then(|()| check_optional("progress_hint", new.progress_hint.as_deref(), MAX_NOTE_BYTES))
        .and_then(|()| new.cancelability.check())
        .and_then(|()| new.handle.map_or(Ok(()), |handle| handle.check_named(BodyName::Handle)))?;
    let hints =
        TtlHints { fail_after: new.fail_after, action_ttl: new.action_ttl, deadline_at: new.deadline_at };
    let expires_at = new.policy.expires_at(hints, now)?;
    let interval = new.policy.retry_after(new.retry_after);
    Ok(OperationFact::Dispatched(Box::new(Accepted {
        link: OperationLink {
            job_id: new.job_id.clone(),
            attempt_id: new.attempt_id.clone(),
            kind: new.kind.clone(),
            specialist: new.specialist.clone(),
        },
        handle: new.handle,
        cancelability: new.cancelability.clone(),
        interval_seconds: interval.seconds,
        progress_hint: new.progress_hint.clone(),
        invalid_hint: interval.hint_was_invalid,
        next_poll_at: new.policy.next_poll_at(interval.seconds, new.jitter, now),
        expires_at,
        policy: new.policy.clone(),
    })))
}

fn record_poll(operation: &Operation, poll: &Poll, now: Timestamp) -> Decision {
    let status = answered_status(&poll.answer);
    if let Err(refusal) = check_answer(&poll.answer) {
        return refusal.into();
    }
    if operation.ended.is_some() && !planted(Bug::LastAnswerWins) {
        return contradict(operation, status);
    }
    if operation.expires_at <= now && !planted(Bug::ExpiryRearmed) {
        return too_late(operation, status);
    }
    match &poll.answer {
        PollAnswer::Open(reported, hints) => still_open(operation, *reported, hints, poll.jitter, now),
        PollAnswer::Completed(result) => resolve(
            operation,
            Ending::Completed { result: result.clone() },
            OperationEnding::Completed(result.clone()),
            poll.jitter,
        ),
        PollAnswer::Failed { failure_detail, error_code, result, retryable } => resolve(
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
        PollAnswer::TimedOut => resolve(operation, Ending::TimedOut, OperationEnding::TimedOut, poll.jitter),
        PollAnswer::Cancelled => conclude(operation, OperationFact::Cancelled, OperationEnding::Cancelled),
        PollAnswer::Unknown => match operation.policy.unknown_policy {
            UnknownPolicy::Terminal => {
                resolve(operation, Ending::Unknown, OperationEnding::Unknown, poll.jitter)
            }
            UnknownPolicy::RetryUntilExpiry => {
                let error = PollError { code: "operation_unknown".to_owned(), message: String::new() };
                record_poll_error(operation, &error, poll.jitter, now)
            }
        },
    }
}

/// The life is over, whatever the service says now; an end that came too late is kept as a diagnostic.
fn too_late(operation: &Operation, status: OperationStatus) -> Decision {
    let mut decision = give_up(operation, ExpiryCause::LifetimeOver);
    if let Decision::Facts { facts, .. } = &mut decision
        && status.is_terminal()
    {
        facts.push(OperationFact::Contradicted { status });
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

fn record_poll_error(operation: &Operation, error: &PollError, jitter: Jitter, now: Timestamp) -> Decision {
    if operation.ended.is_some() {
        return Decision::Nothing;
    }
    let checked = check_text("poll error code", &error.code, MAX_LABEL_BYTES)
        .and_then(|()| check_text("poll error message", &error.message, MAX_NOTE_BYTES));
    if let Err(refusal) = checked {
        return refusal.into();
    }
    if operation.expires_at <= now {
        return give_up(operation, ExpiryCause::LifetimeOver);
    }
    let errors_in_row = operation.errors_in_row.saturating_add(1);
    let polled = Polled {
        status: None,
        interval_seconds: None,
        progress_hint: None,
        progress: None,
        expires_at: None,
        error: Some(error.clone()),
        invalid_hint: false,
        next_poll_at: operation.policy.next_poll_after_error(errors_in_row, jitter, now),
    };
    polled_or_given_up(operation, polled)
}

fn request_cancel(operation: &Operation, by: Option<&str>, reason: &str, origin: CancelOrigin) -> Decision {
    let checked = check_text("cancel reason", reason, MAX_NOTE_BYTES)
        .and_then(|()| check_optional("cancel requester", by, MAX_LABEL_BYTES));
    if let Err(refusal) = checked {
        return refusal.into();
    }
    if operation.ended.is_some() && operation.orphan().is_none() {
        return Decision::Nothing;
    }
    let requested = OperationFact::CancelRequested { by: by.map(str::to_owned), reason: reason.to_owned() };
    // A cancel that is still being tried, or that open work has taken in, is not asked for twice.
    let asked = operation
        .cancel
        .as_ref()
        .is_some_and(|cancel| cancel.next_try_at.is_some() || operation.ended.is_none());
    match (uncancelable_because(operation), origin) {
        (Some(reason), CancelOrigin::Caller) => Refusal::NotCancelable { reason }.into(),
        (None, _) | (Some(_), CancelOrigin::ParentJob) if asked => Decision::Nothing,
        (None, _) => Decision::fact(requested),
        // The job's cancel goes on; the record says that the work outside was not stopped.
        (Some(reason), CancelOrigin::ParentJob) => Decision::facts([
            requested,
            OperationFact::CancelAnswered { answer: CancelAnswer::Refused(reason), next_try_at: None },
        ]),
    }
}

fn record_cancel_answer(
    operation: &Operation,
    answer: &CancelAnswer,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    if let Err(refusal) = answer.check() {
        return refusal.into();
    }
    let Some(cancel) = &operation.cancel else {
        return Refusal::NoCancelPending.into();
    };
    if operation.ended.is_some() {
        return record_late_cancel_answer(operation, cancel, answer, jitter, now);
    }
    match answer {
        CancelAnswer::Cancelled => conclude(operation, OperationFact::Cancelled, OperationEnding::Cancelled),
        CancelAnswer::Accepted | CancelAnswer::Refused(_) => {
            Decision::fact(OperationFact::CancelAnswered { answer: answer.clone(), next_try_at: None })
        }
        CancelAnswer::Unreachable => {
            let next_try_at =
                Some(operation.policy.next_poll_after_error(cancel.tries.saturating_add(1), jitter, now));
            Decision::fact(OperationFact::CancelAnswered { answer: answer.clone(), next_try_at })
        }
    }
}

/// What the host had given up answers its cancel: it is settled, or tried a few times more.
fn record_late_cancel_answer(
    operation: &Operation,
    cancel: &OperationCancel,
    answer: &CancelAnswer,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    if operation.orphan().is_none() {
        return Decision::Nothing;
    }
    let next_try_at = match answer {
        CancelAnswer::Cancelled => {
            return Decision::fact(OperationFact::Settled(Settlement::Stopped));
        }
        CancelAnswer::Accepted | CancelAnswer::Refused(_) => None,
        CancelAnswer::Unreachable if cancel.tries.saturating_add(1) >= MAX_LATE_CANCEL_TRIES => None,
        CancelAnswer::Unreachable => {
            Some(operation.policy.next_poll_after_error(cancel.tries.saturating_add(1), jitter, now))
        }
    };
    Decision::fact(OperationFact::CancelAnswered { answer: answer.clone(), next_try_at })
}

fn expire(operation: &Operation, now: Timestamp) -> Decision {
    if operation.ended.is_some() {
        return Decision::Nothing;
    }
    if now < operation.expires_at {
        return Refusal::NotDue { due_at: operation.expires_at }.into();
    }
    give_up(operation, ExpiryCause::LifetimeOver)
}

fn abandon(operation: &Operation, reason: &str) -> Decision {
    if operation.ended.is_some() {
        return Decision::Nothing;
    }
    // The job ordered this: it has ended already and needs no word of it.
    let mut facts = vec![abandoned(reason)];
    facts.extend(reach_out(operation, reason));
    Decision::facts(facts)
}

/// What the host gives up is asked to stop, if nobody has asked for that yet.
fn reach_out(operation: &Operation, reason: &str) -> Option<OperationFact> {
    let asks =
        operation.cancel.is_none() && operation.handle.is_some() && uncancelable_because(operation).is_none();
    asks.then(|| OperationFact::CancelRequested { by: None, reason: reason.to_owned() })
}

fn abandoned(reason: &str) -> OperationFact {
    OperationFact::Expired { cause: ExpiryCause::Abandoned(reason.to_owned()) }
}

fn retire(operation: &Operation) -> Decision {
    if operation.ended.is_some() {
        Decision::fact(OperationFact::Retired)
    } else {
        Refusal::OperationOpen.into()
    }
}

/// The word of a service after the end: kept if it differs, up to a limit, and of no effect.
fn contradict(operation: &Operation, status: OperationStatus) -> Decision {
    // Failed polls before the end do not use up the room: the oldest of them make way.
    let kept = operation.diagnostics.iter().filter(|kept| kept.code == LATE_STATUS_IGNORED).count();
    let room = kept < usize::from(operation.policy.diagnostics_max_items);
    if status.is_terminal() && status != operation.status() && room {
        return Decision::fact(OperationFact::Contradicted { status });
    }
    Decision::Nothing
}

fn resolve(operation: &Operation, ending: Ending, for_job: OperationEnding, jitter: Jitter) -> Decision {
    Decision::fact(OperationFact::Resolved(ending))
        .then(operation.link.job_id.clone(), conclusion(operation, for_job, jitter))
}

fn give_up(operation: &Operation, cause: ExpiryCause) -> Decision {
    let mut decision = conclude(operation, OperationFact::Expired { cause }, OperationEnding::Expired);
    if let Decision::Facts { facts, .. } = &mut decision {
        facts.extend(reach_out(operation, "operation_expired"));
    }
    decision
}

/// An end after which the job is never tried again by itself.
fn conclude(operation: &Operation, fact: OperationFact, ending: OperationEnding) -> Decision {
    let conclusion = conclusion(operation, ending, Jitter::default());
    Decision::fact(fact).then(operation.link.job_id.clone(), conclusion)
}

fn conclusion(operation: &Operation, ending: OperationEnding, jitter: Jitter) -> JobCommand {
    JobCommand::ConcludeOperation { operation_id: operation.id.clone(), ending, jitter }
}

/// A poll that leaves it open uses up one of the granted polls; the last one ends it.
fn polled_or_given_up(operation: &Operation, polled: Polled) -> Decision {
    let polled = OperationFact::Polled(polled);
    if operation.polls.saturating_add(1) < operation.policy.max_attempts {
        return Decision::fact(polled);
    }
    let mut decision = give_up(operation, ExpiryCause::MaxAttemptsExhausted);
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

fn uncancelable_because(operation: &Operation) -> Option<String> {
    match (&operation.cancelability, operation.policy.cancel_policy) {
        (Cancelability::NotCancelable(reason), _) => Some(reason.clone()),
        (Cancelability::Cancelable, CancelPolicy::Deny) => Some("denied by the host's policy".to_owned()),
        (Cancelability::Cancelable, CancelPolicy::Provider) => None,
    }
}

const fn answered_status(answer: &PollAnswer) -> OperationStatus {
    match answer {
        PollAnswer::Open(ReportedStatus::Pending, _) => OperationStatus::Pending,
        PollAnswer::Open(ReportedStatus::Running, _) => OperationStatus::Running,
        PollAnswer::Completed(_) => OperationStatus::Completed,
        PollAnswer::Failed { .. } => OperationStatus::Failed,
        PollAnswer::TimedOut => OperationStatus::TimedOut,
        PollAnswer::Cancelled => OperationStatus::Cancelled,
        PollAnswer::Unknown => OperationStatus::Unknown,
    }
}

fn check_answer(answer: &PollAnswer) -> Result<(), Refusal> {
    match answer {
        PollAnswer::Open(_, hints) => {
            check_optional("progress_hint", hints.progress_hint.as_deref(), MAX_NOTE_BYTES)?;
            check_optional("progress", hints.progress.as_ref().map(Json::as_str), MAX_PROGRESS_BYTES)
        }
        PollAnswer::Completed(result) => check_result(result),
        PollAnswer::Failed {
            failure_detail,
            error_code,
            result,
            retryable: Retryable::Yes | Retryable::No,
        } => {
            check_text("failure_detail", failure_detail, MAX_NOTE_BYTES)?;
            check_optional("error_code", error_code.as_deref(), MAX_LABEL_BYTES)?;
            check_result(result)
        }
        PollAnswer::TimedOut | PollAnswer::Cancelled | PollAnswer::Unknown => Ok(()),
    }
}

/// Only a success has a result; a failure has an error, and what there is to see of it.
fn without_data(result: &crate::job::ResultRefs) -> crate::job::ResultRefs {
    crate::job::ResultRefs { data: None, ..result.clone() }
}

fn check_result(result: &crate::job::ResultRefs) -> Result<(), Refusal> {
    check_optional("result_summary", result.summary.as_deref(), MAX_SUMMARY_BYTES)?;
    result.check()
}
