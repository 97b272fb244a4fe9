//! Runs: one pipeline at its work, from the event that started it to the end of its last step.
//!
//! A run is a walk over its [`Shape`]. Every time the walk comes to a node it makes a [`Visit`]: of a step, which is a job, or of a group, which is over
//! when all that began in it is over. Which visits follow an end is derived (`walk.rs`); what a visit is given to work with is prepared outside
//! of the rules, by whoever reads bodies, and comes in with [`RunCommand::Advance`].

mod apply;
mod attention;
mod command;
mod decide;
mod fact;
mod files;
mod kind;
mod retry;
mod shape;
mod state;
#[cfg(test)]
mod tests;
mod walk;

pub use apply::apply;
pub use command::{NewRun, Prepared, Readiness, RunCommand, StepEnd};
pub use decide::{decide, decide_new};
pub use fact::{RunEnd, RunFact};
pub use files::{Layer, Left};
pub use retry::{NoRetry, retryable_jobs};
pub use shape::{MAX_NODES, Node, NodeIndex, NodeKind, OnError, Shape};
pub use state::{Cause, Run, RunCancel, RunState, StepLink, Visit, VisitIndex, VisitState};
pub use walk::TOO_MANY_STEPS;

use crate::id::text_id;

text_id! {
    /// One run of a pipeline: `run-` and hex.
    RunId
}

/// Visits of one run: a step that emits many events is followed as many times.
pub const MAX_VISITS: usize = 256;
/// Visits that one order prepares; what is left waits for the next.
pub const MAX_PREPARED: usize = 24;
/// Jobs that one commit asks to stop. Each may end the work that it waits for, of which an event may tell: three records for one job.
pub const MAX_CANCELLED: usize = 16;
