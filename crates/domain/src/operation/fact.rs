//! What has happened to an operation. Dispatched, polled and resolved are Loomworks' three; cancel and expiry are
//! Orbiplex'.

use serde::{Deserialize, Serialize};

use super::command::{Cancelability, PollError};
use super::state::{OperationLink, OperationStatus, ReportedStatus};
use crate::body::BodyRef;
use crate::job::{CancelAnswer, ResultRefs, is_false};
use crate::policy::KindPolicy;
use crate::{Json, Timestamp};

/// One thing that happened to an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationFact {
    /// The service took the work.
    Dispatched(Box<Accepted>),
    /// It was asked; it goes on. Holds only what changed.
    Polled(Polled),
    /// The service said how it ended.
    Resolved(Ending),
    /// Someone asked to stop it.
    CancelRequested {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Why.
        reason: String,
    },
    /// The service answered the cancel, and the work goes on.
    CancelAnswered {
        /// What it answered.
        answer: CancelAnswer,
        /// How it was told: the status of the answer, or why there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<String>,
        /// When to try again, if that is of use.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_try_at: Option<Timestamp>,
    },
    /// It was stopped.
    Cancelled,
    /// The host gave it up: it may still run outside.
    Expired {
        /// Why.
        cause: ExpiryCause,
    },
    /// It was given up before its handle was known; this is the handle.
    HandleLearned {
        /// The service's own id of the work.
        handle: BodyRef,
        /// Whether it can be stopped.
        cancelability: Cancelability,
    },
    /// Nothing of it runs outside any more, although the host had given it up.
    Settled(Settlement),
    /// After its end its service was asked whether it still runs, and nothing that it said settles that.
    LatePolled(LatePolled),
    /// After its end the service said something else; nothing changed.
    Contradicted {
        /// What it said.
        status: OperationStatus,
    },
    /// Store time jumped by a step of the clock; what measures passed time was moved with it.
    TimersMoved {
        /// By so many microseconds; negative if time went back.
        by_micros: i64,
    },
    /// It was kept long enough; the stream ends here and goes.
    Retired,
}

/// The beginning of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// What it belongs to; never changes.
    pub link: OperationLink,
    /// The service's own id of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<BodyRef>,
    /// Whether it can be stopped.
    pub cancelability: Cancelability,
    /// Seconds between polls, clamped.
    pub interval_seconds: u32,
    /// A text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_hint: Option<String>,
    /// The service's hint on when to ask made no sense.
    #[serde(default, skip_serializing_if = "is_false")]
    pub invalid_hint: bool,
    /// The first poll.
    pub next_poll_at: Timestamp,
    /// The end of its life, clamped.
    pub expires_at: Timestamp,
    /// What the host granted when it was accepted.
    #[serde(with = "crate::policy::stored")]
    pub policy: KindPolicy,
}

/// One poll: only what changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Polled {
    /// The status that the service reports, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ReportedStatus>,
    /// Seconds between polls, if they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u32>,
    /// A new text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_hint: Option<String>,
    /// A new progress object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
    /// The end of its life, if it came nearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Why the poll itself failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PollError>,
    /// The service's hint on when to ask again made no sense.
    #[serde(default, skip_serializing_if = "is_false")]
    pub invalid_hint: bool,
    /// The next poll.
    pub next_poll_at: Timestamp,
}

/// One question after the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatePolled {
    /// Why it was of no use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PollError>,
    /// When it is asked next; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_poll_at: Option<Timestamp>,
}

/// How it ended: as its service said, or because nobody can ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With a result.
    Completed {
        /// The result.
        #[serde(default, skip_serializing_if = "ResultRefs::is_empty")]
        result: ResultRefs,
    },
    /// Without.
    Failed {
        /// For people.
        failure_detail: String,
        /// For programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
        /// The error object and the rest.
        #[serde(default, skip_serializing_if = "ResultRefs::is_empty")]
        result: ResultRefs,
    },
    /// Its own time budget ran out.
    TimedOut,
    /// The service does not know it.
    Unknown,
    /// No node has the executor that could ask.
    NobodyToAsk,
}

/// Why the host gave an operation up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryCause {
    /// The granted life is over.
    LifetimeOver,
    /// The granted polls are used up.
    MaxAttemptsExhausted,
    /// The job has ended without it.
    Abandoned(String),
    /// Nobody knows whether its service ever took it.
    SubmitOutcomeUnknown,
}

/// How it is known that nothing runs outside any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// Its service has stopped it.
    Stopped,
    /// Its service says that it has ended.
    EndedOutside {
        /// How: an end there, which is none here.
        status: OperationStatus,
    },
    /// Somebody has looked.
    ByHand {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// What they found.
        note: String,
    },
}
