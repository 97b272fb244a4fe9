//! Operations: the durable handle on work going on outside that we poll. One belongs to one attempt of one job.
//!
//! The job is the truth of the lifecycle; an operation only knows what the service said and what the host granted.

mod apply;
mod attention;
mod command;
mod decide;
mod fact;
mod kind;
mod orphan;
mod state;
#[cfg(test)]
mod tests;
mod volatile;

pub use apply::apply;
pub use command::{
    CancelOrigin, Cancelability, NewOperation, OperationCommand, Poll, PollAnswer, PollError, PollFailure,
    PollHints,
};
pub use decide::{decide, decide_new};
pub use fact::{Accepted, Ending, ExpiryCause, LatePolled, OperationFact, Polled, Settlement};
pub use orphan::{Aftermath, LATE_POLLS_SECONDS, MAX_LATE_POLLS, OrphanReason};
pub use state::{
    Diagnostic, Ended, How, Operation, OperationCancel, OperationLink, OperationStatus, POLL_TIMED_OUT,
    PollHistory, ReportedStatus, SPECIALIST_UNREGISTERED,
};
pub use volatile::VOLATILE_LOST;

use crate::id::text_id;

text_id! {
    /// One operation going on outside: `op-` and hex.
    OperationId
}
