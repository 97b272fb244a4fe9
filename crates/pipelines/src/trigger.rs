//! What starts a pipeline: an event of a type, or that a job or an operation came to an end.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What starts a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// An event of exactly this type.
    On(String),
    /// An end.
    OnHook(Signal),
}

/// How a job or an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the words of the contract")]
pub enum Signal {
    #[serde(rename = "job.completed")]
    JobCompleted,
    #[serde(rename = "job.failed")]
    JobFailed,
    #[serde(rename = "job.timed_out")]
    JobTimedOut,
    #[serde(rename = "job.cancelled")]
    JobCancelled,
    #[serde(rename = "job.expired")]
    JobExpired,
    #[serde(rename = "job.unavailable")]
    JobUnavailable,
    #[serde(rename = "operation.completed")]
    OperationCompleted,
    #[serde(rename = "operation.failed")]
    OperationFailed,
}

impl Signal {
    /// Every signal.
    pub const ALL: [Self; 8] = [
        Self::JobCompleted,
        Self::JobFailed,
        Self::JobTimedOut,
        Self::JobCancelled,
        Self::JobExpired,
        Self::JobUnavailable,
        Self::OperationCompleted,
        Self::OperationFailed,
    ];

    /// The word of it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobCompleted => "job.completed",
            Self::JobFailed => "job.failed",
            Self::JobTimedOut => "job.timed_out",
            Self::JobCancelled => "job.cancelled",
            Self::JobExpired => "job.expired",
            Self::JobUnavailable => "job.unavailable",
            Self::OperationCompleted => "operation.completed",
            Self::OperationFailed => "operation.failed",
        }
    }
}

impl Trigger {
    /// The type of the event that starts it.
    pub fn kind(&self) -> &str {
        match self {
            Self::On(kind) => kind,
            Self::OnHook(signal) => signal.as_str(),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On(event) => write!(f, "on {event}"),
            Self::OnHook(signal) => write!(f, "on-hook {}", signal.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_is_kept_by_its_word() {
        for signal in Signal::ALL {
            assert_eq!(serde_json::to_value(signal).unwrap(), signal.as_str());
        }
    }
}
