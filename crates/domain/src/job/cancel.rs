//! Requests to stop a job. A cancel is a request first; it is terminal only when confirmed or when its time is over.

use serde::{Deserialize, Serialize};

use crate::limits::{MAX_NOTE_BYTES, check_text};
use crate::{Refusal, Timestamp};

/// The request to stop a job, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub reason: String,
    /// When waiting for a confirmation ends.
    pub limit_at: Timestamp,
    /// What executors answered, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<KeptCancelAnswer>,
}

/// What an executor answered to a cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelAnswer {
    /// The work has stopped.
    Cancelled,
    /// It will stop; the work itself will say so.
    Accepted,
    /// It will not stop.
    Refused(String),
    /// Nobody answered.
    Unreachable,
}

impl CancelAnswer {
    /// Refuses what is over a limit.
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Refused(reason) => check_text("refusal of the cancel", reason, MAX_NOTE_BYTES),
            Self::Cancelled | Self::Accepted | Self::Unreachable => Ok(()),
        }
    }
}

/// An answer and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptCancelAnswer {
    /// When.
    pub at: Timestamp,
    /// What.
    pub answer: CancelAnswer,
    /// How it was told: the status of the answer, or why there was none. Short, and nothing that a service wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}
