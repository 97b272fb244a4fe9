//! The four phases of a job's life. A rule that holds for a whole phase names the phase.

use super::state::{AfterExternal, JobState};
use crate::{OperationId, Timestamp};

/// A state, by its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase<'a> {
    /// Not taken yet.
    Queued {
        /// When it may be taken.
        due_at: Timestamp,
    },
    /// An attempt has it in hand.
    Held(Held),
    /// Its attempt waits for someone else.
    Waiting(Waiting<'a>),
    /// Over, until another attempt is asked for.
    Ended(Ended),
}

/// How far the attempt is that has the job in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of `JobState`")]
pub enum Held {
    Dispatching,
    Delivered,
    Running,
}

/// What an attempt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting<'a> {
    /// A person, a peer, an approval or other input.
    Input,
    /// External work, under an operation that is polled.
    External {
        /// The open operation.
        operation: &'a OperationId,
        /// What its result means for the job.
        then: AfterExternal,
    },
    /// A new decision or dependency.
    Blocked,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of `JobState`")]
pub enum Ended {
    Completed,
    Failed,
    Cancelled,
    Expired,
    Unavailable { lease_lost: bool },
}

impl JobState {
    /// Where in its life a job in this state is.
    pub const fn phase(&self) -> Phase<'_> {
        match self {
            Self::Queued { due_at } => Phase::Queued { due_at: *due_at },
            Self::Dispatching => Phase::Held(Held::Dispatching),
            Self::Delivered => Phase::Held(Held::Delivered),
            Self::Running => Phase::Held(Held::Running),
            Self::AwaitingInput => Phase::Waiting(Waiting::Input),
            Self::AwaitingExternal { operation, then } => {
                Phase::Waiting(Waiting::External { operation, then: *then })
            }
            Self::Blocked => Phase::Waiting(Waiting::Blocked),
            Self::Completed => Phase::Ended(Ended::Completed),
            Self::Failed => Phase::Ended(Ended::Failed),
            Self::Cancelled => Phase::Ended(Ended::Cancelled),
            Self::Expired => Phase::Ended(Ended::Expired),
            Self::Unavailable { lease_lost } => Phase::Ended(Ended::Unavailable { lease_lost: *lease_lost }),
        }
    }
}
