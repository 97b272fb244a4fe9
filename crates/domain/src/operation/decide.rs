//! What may happen to an operation: one function per command.
//!
//! `accept.rs` has how it begins, `poll.rs` what its service says, `late.rs` what it says after the
//! end, `cancel.rs` how it is stopped; the rest is here.
//!
//! The first end wins; what the service says later is a diagnostic. A poll that fails says nothing about the work.
//! Whatever a service hints, nothing leaves the bounds of the host's policy.

mod accept;
mod cancel;
mod late;
mod poll;

use super::command::OperationCommand;
use super::fact::{ExpiryCause, OperationFact};
use super::state::Operation;
use super::volatile;
use crate::job::{JobCommand, OperationEnding};
use crate::{Jitter, OperationId, Refusal, Timestamp};

pub(super) type Decision = crate::Decision<OperationFact>;

/// Decides a command on an operation that does not exist yet.
pub fn decide_new(id: &OperationId, command: &OperationCommand, now: Timestamp) -> Decision {
    match command {
        OperationCommand::Accept(new) => accept::accept(id, new, now),
        OperationCommand::AcceptOrphan { operation, reason } => {
            accept::accept_orphan(id, operation, reason, now)
        }
        // A job gives up what it knows of; there may be nothing left of it.
        OperationCommand::Abandon { .. } | OperationCommand::MoveTimers { .. } => Decision::Nothing,
        OperationCommand::RecordPoll(_)
        | OperationCommand::RequestCancel { .. }
        | OperationCommand::RecordCancelAnswer { .. }
        | OperationCommand::Settle { .. }
        | OperationCommand::Expire
        | OperationCommand::Lose
        | OperationCommand::Purge
        | OperationCommand::Retire => Decision::refuse(Refusal::UnknownRecord),
    }
}

/// Decides a command on an operation.
pub fn decide(operation: &Operation, command: &OperationCommand, now: Timestamp) -> Decision {
    match command {
        OperationCommand::Accept(_) => Decision::refuse(Refusal::AlreadyExists),
        OperationCommand::AcceptOrphan { operation: new, .. } => accept::learn_handle(operation, new),
        OperationCommand::RecordPoll(poll) => poll::record_poll(operation, poll, now),
        OperationCommand::RequestCancel { by, reason, origin } => {
            cancel::request_cancel(operation, by.as_deref(), reason, *origin)
        }
        OperationCommand::RecordCancelAnswer { answer, told, said, jitter } => {
            let heard = cancel::Heard { answer, told: told.as_deref(), said: *said };
            cancel::record_cancel_answer(operation, heard, *jitter, now)
        }
        OperationCommand::Settle { by, note } => cancel::settle(operation, by.as_deref(), note),
        OperationCommand::Expire => expire(operation, now),
        OperationCommand::Lose => volatile::lose(operation),
        OperationCommand::Abandon { reason } => abandon(operation, reason),
        OperationCommand::MoveTimers { by_micros } => {
            Decision::fact(OperationFact::TimersMoved { by_micros: *by_micros })
        }
        OperationCommand::Purge => purge(operation),
        OperationCommand::Retire => retire(operation),
    }
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
pub(super) fn reach_out(operation: &Operation, reason: &str) -> Option<OperationFact> {
    let asks = operation.cancel.is_none()
        && operation.handle.is_some()
        && operation.uncancelable_because().is_none();
    asks.then(|| OperationFact::CancelRequested { by: None, reason: reason.to_owned() })
}

fn abandoned(reason: &str) -> OperationFact {
    OperationFact::Expired { cause: ExpiryCause::Abandoned(reason.to_owned()) }
}

/// What runs outside, or may, keeps the handle by which it can be stopped.
fn purge(operation: &Operation) -> Decision {
    if operation.ended.is_none() {
        return Refusal::OperationOpen.into();
    }
    let handle_kept = operation.handle.is_some() && operation.orphan().is_some();
    if operation.purged && operation.handle.is_some() == handle_kept {
        return Decision::Nothing;
    }
    Decision::fact(OperationFact::Purged { handle_kept })
}

fn retire(operation: &Operation) -> Decision {
    if operation.ended.is_some() {
        Decision::fact(OperationFact::Retired)
    } else {
        Refusal::OperationOpen.into()
    }
}

fn give_up(operation: &Operation, cause: ExpiryCause) -> Decision {
    let mut decision = conclude(operation, OperationFact::Expired { cause }, expired_after(operation));
    if let Decision::Facts { facts, .. } = &mut decision {
        facts.extend(reach_out(operation, "operation_expired"));
    }
    decision
}

/// The end that the job is told of when the host gives up, with what the last poll failed with.
fn expired_after(operation: &Operation) -> OperationEnding {
    OperationEnding::Expired { last_error: operation.last_error.clone() }
}

/// An end after which the job is never tried again by itself.
pub(super) fn conclude(operation: &Operation, fact: OperationFact, ending: OperationEnding) -> Decision {
    let conclusion = conclusion(operation, ending, Jitter::default());
    Decision::fact(fact).then(operation.link.job_id.clone(), conclusion)
}

fn conclusion(operation: &Operation, ending: OperationEnding, jitter: Jitter) -> JobCommand {
    JobCommand::ConcludeOperation { operation_id: operation.id.clone(), ending, jitter }
}
