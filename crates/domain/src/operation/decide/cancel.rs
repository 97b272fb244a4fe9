//! Stopping work outside: the request, what its service answers, and what the host had given up already.

use super::{Decision, conclusion};
use crate::body::{BodyName, BodyRef};
use crate::job::{
    CancelAnswer, CancelRecipient, CancelSent, CancelTry, JobCommand, KeptCancelAnswer, OperationEnding,
};
use crate::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_optional, check_text};
use crate::operation::command::CancelOrigin;
use crate::operation::fact::{OperationFact, Settlement};
use crate::operation::state::{Operation, OperationCancel, SPECIALIST_UNREGISTERED};
use crate::{Jitter, Refusal, Timestamp};

/// How often a service that cannot be reached is asked to stop what the host has given up.
const MAX_LATE_CANCEL_TRIES: u32 = 10;
/// How a refusal of our own is told.
const NOT_ASKED: &str = KeptCancelAnswer::NOT_ASKED;

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
        (Some(reason), CancelOrigin::ParentJob) => {
            let answered = OperationFact::CancelAnswered {
                answer: CancelAnswer::Refused(reason.clone()),
                told: Some(NOT_ASKED.to_owned()),
                said: None,
                next_try_at: None,
            };
            let tried = CancelTry::NotCancelable(reason);
            telling(operation, Decision::facts([requested, answered]), tried)
        }
    }
}

/// The job knows what came of passing its cancel on.
fn telling(operation: &Operation, decision: Decision, tried: CancelTry) -> Decision {
    let attempt_id = operation.link.attempt_id.clone();
    decision.then(operation.link.job_id.clone(), JobCommand::RecordCancelTry { attempt_id, tried })
}

/// What an answer says of whether its service was asked at all.
fn tried(answer: &CancelAnswer, told: Option<&str>) -> CancelTry {
    match (answer, told) {
        (CancelAnswer::Refused(why), Some(NOT_ASKED)) => CancelTry::NotCancelable(why.clone()),
        // The code says it in public; the words are private.
        (CancelAnswer::Refused(why), Some(told)) if told.starts_with(NOT_ASKED) => {
            let code = told[NOT_ASKED.len()..].strip_prefix(": ");
            CancelTry::NotSent(code.unwrap_or(why).to_owned())
        }
        (CancelAnswer::Unreachable, Some(SPECIALIST_UNREGISTERED)) => {
            CancelTry::NotSent(SPECIALIST_UNREGISTERED.to_owned())
        }
        (
            CancelAnswer::Cancelled
            | CancelAnswer::NeverStarted
            | CancelAnswer::Accepted
            | CancelAnswer::Refused(_)
            | CancelAnswer::Unreachable,
            told,
        ) => CancelTry::Sent(CancelSent {
            to: CancelRecipient::Service,
            answer: Some(answer.clone()),
            told: told.map(str::to_owned),
        }),
    }
}

/// What a service answered to a cancel.
#[derive(Clone, Copy)]
pub(super) struct Heard<'a> {
    pub(super) answer: &'a CancelAnswer,
    /// How it was told.
    pub(super) told: Option<&'a str>,
    /// What the service said with it: private.
    pub(super) said: Option<BodyRef>,
}

pub(super) fn record_cancel_answer(
    operation: &Operation,
    heard: Heard<'_>,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    let Heard { answer, told, said } = heard;
    let checked = answer
        .check()
        .and_then(|()| check_optional("how the cancel was answered", told, MAX_LABEL_BYTES))
        .and_then(|()| said.map_or(Ok(()), |said| said.check_named(BodyName::Error)));
    if let Err(refusal) = checked {
        return refusal.into();
    }
    let Some(cancel) = &operation.cancel else {
        return Refusal::NoCancelPending.into();
    };
    let tried = tried(answer, told);
    if operation.ended.is_some() {
        return match record_late_cancel_answer(operation, cancel, heard, jitter, now) {
            decision @ Decision::Facts { .. } => telling(operation, decision, tried),
            decision @ (Decision::Nothing | Decision::Refused { .. }) => decision,
        };
    }
    let decision = match answer {
        CancelAnswer::Cancelled | CancelAnswer::NeverStarted => {
            let end = conclusion(operation, OperationEnding::Cancelled, Jitter::default());
            return telling(operation, Decision::fact(OperationFact::Cancelled), tried)
                .then(operation.link.job_id.clone(), end);
        }
        CancelAnswer::Accepted | CancelAnswer::Refused(_) => answered(heard, None),
        CancelAnswer::Unreachable => {
            let next_try_at =
                Some(operation.policy.next_poll_after_error(cancel.tries.saturating_add(1), jitter, now));
            answered(heard, next_try_at)
        }
    };
    telling(operation, decision, tried)
}

/// What the host had given up answers its cancel: it is settled, or tried a few times more.
fn record_late_cancel_answer(
    operation: &Operation,
    cancel: &OperationCancel,
    heard: Heard<'_>,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    if operation.orphan().is_none() {
        return Decision::Nothing;
    }
    let next_try_at = match heard.answer {
        CancelAnswer::Cancelled | CancelAnswer::NeverStarted => {
            return Decision::fact(OperationFact::Settled(Settlement::Stopped));
        }
        CancelAnswer::Accepted | CancelAnswer::Refused(_) => None,
        CancelAnswer::Unreachable if cancel.tries.saturating_add(1) >= MAX_LATE_CANCEL_TRIES => None,
        CancelAnswer::Unreachable => {
            Some(operation.policy.next_poll_after_error(cancel.tries.saturating_add(1), jitter, now))
        }
    };
    answered(heard, next_try_at)
}

fn answered(heard: Heard<'_>, next_try_at: Option<Timestamp>) -> Decision {
    let (answer, told) = (heard.answer.clone(), heard.told.map(str::to_owned));
    Decision::fact(OperationFact::CancelAnswered { answer, told, said: heard.said, next_try_at })
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
