//! Stopping work outside: the request, what its service answers, and what the host had given up already.

use super::{Decision, conclude};
use crate::job::{CancelAnswer, OperationEnding};
use crate::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_optional, check_text};
use crate::operation::command::CancelOrigin;
use crate::operation::fact::{OperationFact, Settlement};
use crate::operation::state::{Operation, OperationCancel};
use crate::{Jitter, Refusal, Timestamp};

/// How often a service that cannot be reached is asked to stop what the host has given up.
const MAX_LATE_CANCEL_TRIES: u32 = 10;
/// How a refusal of our own is told: no service was asked.
const NOT_ASKED: &str = "not asked";

pub(super) fn request_cancel(
    operation: &Operation,
    by: Option<&str>,
    reason: &str,
    origin: CancelOrigin,
) -> Decision {
    let checked = check_text("cancel reason", reason, MAX_NOTE_BYTES)
        .and_then(|()| check_optional("cancel requester", by, MAX_LABEL_BYTES));
    if let Err(refusal) = checked {
        return refusal.into();
    }
    if operation.orphan().is_none() {
        match (origin, &operation.settled) {
            // What somebody has vouched for is not asked about again; what its service has said is answered as it was.
            (CancelOrigin::OrphanLedger, None | Some(Settlement::ByHand { .. })) => {
                return Refusal::NotOrphaned.into();
            }
            (CancelOrigin::OrphanLedger, Some(Settlement::Stopped | Settlement::EndedOutside { .. })) => {
                return Decision::Nothing;
            }
            (CancelOrigin::Caller | CancelOrigin::ParentJob, _) if operation.ended.is_some() => {
                return Decision::Nothing;
            }
            (CancelOrigin::Caller | CancelOrigin::ParentJob, _) => {}
        }
    }
    let requested = OperationFact::CancelRequested { by: by.map(str::to_owned), reason: reason.to_owned() };
    // A cancel that is still being tried, or that open work has taken in, is not asked for twice.
    let asked = operation
        .cancel
        .as_ref()
        .is_some_and(|cancel| cancel.next_try_at.is_some() || operation.ended.is_none());
    match (operation.uncancelable_because(), origin) {
        (Some(reason), CancelOrigin::Caller | CancelOrigin::OrphanLedger) => {
            Refusal::NotCancelable { reason }.into()
        }
        (None, _) | (Some(_), CancelOrigin::ParentJob) if asked => Decision::Nothing,
        (None, _) => Decision::fact(requested),
        // The job's cancel goes on; the record says that the work outside was not stopped.
        (Some(reason), CancelOrigin::ParentJob) => Decision::facts([
            requested,
            OperationFact::CancelAnswered {
                answer: CancelAnswer::Refused(reason),
                told: Some(NOT_ASKED.to_owned()),
                next_try_at: None,
            },
        ]),
    }
}

pub(super) fn record_cancel_answer(
    operation: &Operation,
    answer: &CancelAnswer,
    told: Option<&str>,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    let checked =
        answer.check().and_then(|()| check_optional("how the cancel was answered", told, MAX_LABEL_BYTES));
    if let Err(refusal) = checked {
        return refusal.into();
    }
    let Some(cancel) = &operation.cancel else {
        return Refusal::NoCancelPending.into();
    };
    if operation.ended.is_some() {
        return record_late_cancel_answer(operation, cancel, answer, told, jitter, now);
    }
    match answer {
        CancelAnswer::Cancelled => conclude(operation, OperationFact::Cancelled, OperationEnding::Cancelled),
        CancelAnswer::Accepted | CancelAnswer::Refused(_) => answered(answer, told, None),
        CancelAnswer::Unreachable => {
            let next_try_at =
                Some(operation.policy.next_poll_after_error(cancel.tries.saturating_add(1), jitter, now));
            answered(answer, told, next_try_at)
        }
    }
}

/// What the host had given up answers its cancel: it is settled, or tried a few times more.
fn record_late_cancel_answer(
    operation: &Operation,
    cancel: &OperationCancel,
    answer: &CancelAnswer,
    told: Option<&str>,
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
    answered(answer, told, next_try_at)
}

fn answered(answer: &CancelAnswer, told: Option<&str>, next_try_at: Option<Timestamp>) -> Decision {
    let told = told.map(str::to_owned);
    Decision::fact(OperationFact::CancelAnswered { answer: answer.clone(), told, next_try_at })
}

pub(super) fn settle(operation: &Operation, by: Option<&str>, note: &str) -> Decision {
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
