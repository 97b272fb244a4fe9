//! What has happened to an operation. Dispatched, polled and resolved are Loomworks' three; cancel and expiry are
//! Orbiplex'.

use serde::{Deserialize, Serialize};

use super::command::{Cancelability, PollError};
use super::state::{OperationLink, OperationStatus, ReportedStatus};
use crate::body::BodyRef;
use crate::job::{CancelAnswer, ResultRefs};
use crate::kind::Removal;
use crate::policy::{KindPolicy, LifeLimit};
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
        /// What it said with it: private.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<BodyRef>,
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
        /// The service's own id of the work, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_job_id: Option<String>,
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
    /// What its service said was deleted; and its handle, unless the work may still run outside.
    Purged {
        /// Without it nobody could stop what may still run outside.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        handle_kept: bool,
    },
    /// It was kept long enough; the stream ends here and goes.
    Retired,
}

impl OperationFact {
    /// How the names begin under which they are stored.
    pub(crate) const KIND_PREFIXES: &'static [&'static str] = &[
        "operation.",
        "external_production_dispatched/1",
        "external_production_polled/1",
        "external_production_resolved/1",
    ];

    /// The name and version under which it is stored: never changed once it was released.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            // Loomworks' three names, word for word.
            Self::Dispatched(_) => "external_production_dispatched/1",
            Self::Polled(_) => "external_production_polled/1",
            Self::Resolved(_) => "external_production_resolved/1",
            Self::CancelRequested { .. } => "operation.cancel_requested/1",
            Self::CancelAnswered { .. } => "operation.cancel_answered/1",
            Self::Cancelled => "operation.cancelled/1",
            Self::Expired { .. } => "operation.expired/1",
            Self::HandleLearned { .. } => "operation.handle_learned/1",
            Self::Settled(_) => "operation.settled/1",
            Self::LatePolled(_) => "operation.late_polled/1",
            Self::Contradicted { .. } => "operation.contradicted/1",
            Self::TimersMoved { .. } => "operation.timers_moved/1",
            Self::Purged { .. } => "operation.purged/1",
            Self::Retired => "operation.retired/1",
        }
    }

    /// What it takes away.
    pub(crate) const fn removal(&self) -> Removal {
        if matches!(self, Self::Retired) {
            Removal::Record
        } else if let Self::Purged { handle_kept } = self {
            if *handle_kept { Removal::Errors } else { Removal::Bodies }
        } else {
            Removal::Nothing
        }
    }
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
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub invalid_hint: bool,
    /// The first poll.
    pub next_poll_at: Timestamp,
    /// The end of its life, clamped.
    pub expires_at: Timestamp,
    /// What the host granted when it was accepted.
    #[serde(with = "crate::policy::stored")]
    pub policy: KindPolicy,
    /// What bounds its life. Facts of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounded_by: Option<LifeLimit>,
    /// Seconds between polls as the service asked for, if it was granted something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_retry_after_seconds: Option<i64>,
    /// The life that was asked for, if less was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ttl_seconds: Option<u64>,
    /// The service's own id of the work, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_job_id: Option<String>,
}

/// One poll: only what changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Polled {
    /// The status that the service reports, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ReportedStatus>,
    /// Seconds between polls, if they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u32>,
    /// Seconds between polls as the service asks for, if that changes and is or was not what is granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_retry_after_seconds: Option<i64>,
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
    #[serde(default, skip_serializing_if = "crate::is_default")]
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
        #[serde(default, skip_serializing_if = "crate::is_default")]
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
        #[serde(default, skip_serializing_if = "crate::is_default")]
        result: ResultRefs,
    },
    /// Its own time budget ran out.
    TimedOut,
    /// Its service has given it up: its life there is over.
    Expired,
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
    /// The daemon that left it outside is gone, and its policy lets it go with that one.
    VolatileLost,
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
