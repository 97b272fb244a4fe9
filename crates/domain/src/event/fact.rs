//! What has happened to an event.

use serde::{Deserialize, Serialize};

use super::command::{NewEvent, Processed};
use crate::RunId;
use crate::kind::Removal;

/// One thing that happened to an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventFact {
    /// It was written down.
    Published(Box<NewEvent>),
    /// Everything that follows from it has begun.
    Settled(Settlement),
    /// Store time jumped by a step of the clock; what measures passed time was moved with it.
    TimersMoved {
        /// By so many microseconds; negative if time went back.
        by_micros: i64,
    },
    /// It was kept long enough; the stream ends here and goes.
    Retired,
}

impl EventFact {
    /// How the names begin under which they are stored.
    pub(crate) const KIND_PREFIXES: &'static [&'static str] = &["event."];

    /// The name and version under which it is stored: never changed once it was released.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            Self::Published(_) => "event.published/1",
            Self::Settled(_) => "event.settled/1",
            Self::TimersMoved { .. } => "event.timers_moved/1",
            Self::Retired => "event.retired/1",
        }
    }

    /// What it takes away.
    pub(crate) const fn removal(&self) -> Removal {
        if matches!(self, Self::Retired) { Removal::Record } else { Removal::Nothing }
    }
}

/// What came of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    /// Per pipeline that listens to its type; none if nobody does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Routed>,
    /// The run of the job that emitted it went on with it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub moved_its_run: bool,
    /// What its claimant made of it, if one settled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processed: Option<Processed>,
}

/// What came of an event for one pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routed {
    /// The pipeline.
    pub pipeline: String,
    /// What came of it.
    pub disposition: Disposition,
}

/// What came of an event for a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It started this run.
    Started(RunId),
    /// The same work is there already.
    DuplicateOf(RunId),
    /// The pipeline listens to another source.
    OtherSource,
    /// The pipeline's condition does not hold.
    PredicateFalse,
    /// The pipeline's condition makes no sense for this event; why.
    PredicateInvalid(String),
    /// Too many events led to this one.
    DepthExceeded(u32),
    /// The event cannot be given to the pipeline; why.
    Invalid(String),
}

impl Disposition {
    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Started(_) => "started",
            Self::DuplicateOf(_) => "duplicate",
            Self::OtherSource => "other_source",
            Self::PredicateFalse => "predicate_false",
            Self::PredicateInvalid(_) => "predicate_invalid",
            Self::DepthExceeded(_) => "depth_exceeded",
            Self::Invalid(_) => "invalid",
        }
    }
}
