//! What a service says after the end. The end stays what it is; only whether something still runs outside can be learned.

use super::Decision;
use crate::operation::command::PollError;
use crate::operation::fact::{LatePolled, OperationFact, Settlement};
use crate::operation::state::{LATE_STATUS_IGNORED, Operation, OperationStatus};
use crate::{Jitter, Timestamp};

/// The word of a service: what may still run outside is off the list when it says that it ended.
pub(super) fn record_word(
    operation: &Operation,
    status: OperationStatus,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    let settled = Settlement::by_word_of(status).filter(|_| operation.orphan().is_some());
    if let Some(settled) = settled {
        let mut facts: Vec<_> = contradiction(operation, status).into_iter().collect();
        facts.push(OperationFact::Settled(settled));
        return Decision::facts(facts);
    }
    if is_due(operation, now) {
        let error = (status == OperationStatus::Unknown).then(unknown);
        return polled(operation, error, jitter, now);
    }
    contradiction(operation, status).map_or(Decision::Nothing, Decision::fact)
}

/// A question that failed says nothing of the work; it is asked again as long as that is granted.
pub(super) fn record_error(
    operation: &Operation,
    error: &PollError,
    jitter: Jitter,
    now: Timestamp,
) -> Decision {
    if is_due(operation, now) {
        return polled(operation, Some(error.clone()), jitter, now);
    }
    Decision::Nothing
}

/// What it means for a poll that the service does not know the work.
pub(super) fn unknown() -> PollError {
    PollError { code: "operation_unknown".to_owned(), ..PollError::default() }
}

/// Only the questions that the host asks count: a service that calls back uses up none of them.
fn is_due(operation: &Operation, now: Timestamp) -> bool {
    operation.late_poll_at().is_some_and(|due_at| due_at <= now)
}

fn polled(operation: &Operation, error: Option<PollError>, jitter: Jitter, now: Timestamp) -> Decision {
    let next_poll_at = operation.late_poll_after(jitter, now);
    Decision::fact(OperationFact::LatePolled(LatePolled { error, next_poll_at }))
}

/// Another end than the one here: kept up to a limit, and of no effect on it.
fn contradiction(operation: &Operation, status: OperationStatus) -> Option<OperationFact> {
    // Failed polls before the end do not use up the room: the oldest of them make way.
    let kept = operation.diagnostics.iter().filter(|kept| kept.code == LATE_STATUS_IGNORED).count();
    let room = kept < usize::from(operation.policy.diagnostics_max_items);
    let differs = status.is_terminal() && status != operation.status();
    (differs && room).then_some(OperationFact::Contradicted { status })
}
