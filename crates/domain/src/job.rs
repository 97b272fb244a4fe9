//! Jobs: durable pieces of tracked work. `decide.rs` says what may happen, `apply.rs` what it leaves behind.

mod apply;
mod attempt;
mod attention;
mod cancel;
mod command;
mod decide;
mod details;
mod ends;
mod fact;
mod holder;
mod intent;
mod lane;
mod report;
mod spec;
mod state;
#[cfg(test)]
mod tests;
mod why;

pub use apply::apply;
pub use attempt::{Attempt, AttemptEnd, Trigger};
pub use cancel::{CancelAnswer, CancelRequest, KeptCancelAnswer};
pub use command::{Dispatch, JobCommand, LeftBy, OperationEnding, Report, Retryable, SubmitWord};
pub use decide::{decide, decide_new};
pub use details::{Details, Note, ResultRefs};
pub use fact::{
    AnswerKept, CancelCause, Conclusion, ExpiryCause, JobFact, RequeueCause, StaleReport, Unavailability,
};
pub use holder::{Caller, Holder, Reporter};
pub use intent::{Intent, Resubmit};
pub use lane::{AFTER_PULLED, PULLED, Pull, RESERVED_LANES, anywhere, is_pulled, pinned, pinned_to};
pub use spec::{JobSpec, MAX_PRIORITY, NewJob};
pub use state::{AfterExternal, Job, JobState, JobStateName};
pub(crate) use state::{is_false, is_zero};
#[cfg(test)]
pub(crate) use why::waiting_outside;
pub use why::{ExecutorHere, Explanation, LaneHere, PeerHere, Reason, Surroundings, cancel_told, why};

/// Seconds that a cancel of dispatched work may wait to be confirmed.
pub const CANCEL_LIMIT_SECONDS: u64 = 30;
