//! Operations that do not outlive their daemon: those of a kind whose policy says `persistence: volatile`.
//!
//! Their record is as durable as any other. Once the daemon that left the work outside is gone the host gives it up instead of asking
//! about it: its job has failed with `volatile_lost`, and what may still run outside is asked to stop and listed. Who is gone is for the
//! caller to know.

use super::decide::{Decision, conclude, reach_out};
use super::fact::{ExpiryCause, OperationFact};
use super::state::Operation;
use crate::job::{Job, OperationEnding, ResultRefs};
use crate::policy::Persistence;
use crate::{OwnerId, Refusal};

/// The reason of a job whose work outside was lost with its daemon.
pub const VOLATILE_LOST: &str = "volatile_lost";

impl Operation {
    /// Whether it ends with the daemon that left it outside.
    pub fn is_volatile(&self) -> bool {
        self.policy.persistence == Persistence::Volatile
    }

    /// The daemon that left it outside, if it does not outlive that one; its job knows who that is.
    pub fn ends_with<'a>(&self, job: &'a Job) -> Option<&'a OwnerId> {
        let attempt = job.attempts.iter().find(|attempt| attempt.id == self.link.attempt_id)?;
        (self.ended.is_none() && self.is_volatile()).then_some(&attempt.owner)
    }
}

/// The daemon that left it outside is gone.
pub(super) fn lose(operation: &Operation) -> Decision {
    if operation.ended.is_some() {
        return Decision::Nothing;
    }
    if !operation.is_volatile() {
        return Refusal::OperationOpen.into();
    }
    let ending = OperationEnding::GivenUp { reason: VOLATILE_LOST.to_owned(), result: ResultRefs::default() };
    let mut decision =
        conclude(operation, OperationFact::Expired { cause: ExpiryCause::VolatileLost }, ending);
    if let Decision::Facts { facts, .. } = &mut decision {
        facts.extend(reach_out(operation, VOLATILE_LOST));
    }
    decision
}
