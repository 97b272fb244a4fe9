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
mod hold;
mod holder;
mod intent;
mod kind;
mod lane;
mod phase;
mod report;
mod spec;
mod state;
#[cfg(test)]
mod tests;
mod why;

pub use apply::apply;
pub use attempt::{Attempt, AttemptEnd, ObservedRelease, Release, Trigger};
pub use cancel::{
    ACTION_TIMEOUT, CANCEL_UNCONFIRMED, CANCELLED_BEFORE_START, CancelAnswer, CancelRecipient, CancelRepeat,
    CancelRequest, CancelSent, CancelTry, KeptCancelAnswer, KeptCancelTry,
};
pub use command::{Dispatch, JobCommand, LeftBy, OperationEnding, Report, Retryable, SubmitWord};
pub use decide::{decide, decide_new};
pub use details::{AttemptLimit, Details, Note, ResultRefs};
pub use fact::{
    AnswerKept, CancelCause, Conclusion, ExpiryCause, JobFact, RequeueCause, StaleReport, Unavailability,
};
pub use hold::Hold;
pub use holder::{Caller, Holder, Reporter};
pub use intent::{Intent, Resubmit};
pub use lane::{
    AFTER_PULLED, PULLED, Pull, RESERVED_LANES, anywhere, differ_in_circle, is_pulled, lane_of_events,
    pinned, pinned_to,
};
pub use phase::{Ended, Held, Phase, Waiting};
pub use spec::{CallerWait, JobSpec, MAX_PRIORITY, NewJob, VISIBLE_TO_CIRCLE, VISIBLE_TO_OWN};
pub use state::{AfterExternal, Job, JobState, JobStateName};
#[cfg(test)]
pub(crate) use why::waiting_outside;
pub use why::{ExecutorHere, Explanation, LaneHere, PeerHere, Reason, Surroundings, cancel_told, why};

use crate::id::text_id;

text_id! {
    /// One job: `work-` and a UUIDv7 in hex.
    JobId
}

/// Seconds that a cancel of dispatched work may wait to be confirmed.
pub const CANCEL_LIMIT_SECONDS: u64 = 30;
