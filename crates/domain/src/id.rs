//! Names of things: one newtype per kind of id, all plain text with a readable prefix.
//!
//! Ids are made outside (randomness lives in one file of the engine); here they are only carried and compared.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::limits::MAX_ID_BYTES;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id with this text.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// One job: `work-` and a UUIDv7 in hex.
    JobId
}
text_id! {
    /// One dispatch of a job: `attempt-` and a UUIDv7 in hex. It is the fence of every report.
    AttemptId
}
text_id! {
    /// One operation going on outside: `op-` and hex.
    OperationId
}
text_id! {
    /// One event: `event-` and hex.
    EventId
}
text_id! {
    /// One run of a pipeline: `run-` and hex.
    RunId
}
text_id! {
    /// Who holds a claim: unique per process and boot.
    OwnerId
}

/// The kinds of record that have a stream of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// A durable piece of tracked work.
    Job,
    /// Work going on outside that we poll.
    Operation,
    /// A message that may start work.
    Event,
    /// A pipeline at its work.
    Run,
}

impl RecordKind {
    /// Every kind, for walks over all of them.
    pub const ALL: [Self; 4] = [Self::Job, Self::Operation, Self::Event, Self::Run];

    /// The word of this kind in tables and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Operation => "operation",
            Self::Event => "event",
            Self::Run => "run",
        }
    }
}

/// The id of any record; its text is the name of the record's stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordId {
    /// A job's id.
    Job(JobId),
    /// An operation's id.
    Operation(OperationId),
    /// An event's id.
    Event(EventId),
    /// A run's id.
    Run(RunId),
}

impl RecordId {
    /// Reads a record id by its prefix.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX_ID_BYTES {
            return Err(Refusal::TooLarge { what: "id", limit: MAX_ID_BYTES });
        }
        if text.starts_with("work-") {
            return Ok(Self::Job(JobId::new(text)));
        }
        if text.starts_with("op-") {
            return Ok(Self::Operation(OperationId::new(text)));
        }
        if text.starts_with("event-") {
            return Ok(Self::Event(EventId::new(text)));
        }
        if text.starts_with("run-") {
            return Ok(Self::Run(RunId::new(text)));
        }
        Err(Refusal::UnknownIdForm)
    }

    /// Refuses an id that could be stored, but not read back as what it is.
    pub fn check(&self) -> Result<(), Refusal> {
        if Self::parse(self.as_str())? == *self { Ok(()) } else { Err(Refusal::UnknownIdForm) }
    }

    /// The kind of record that this id names.
    pub const fn kind(&self) -> RecordKind {
        match self {
            Self::Job(_) => RecordKind::Job,
            Self::Operation(_) => RecordKind::Operation,
            Self::Event(_) => RecordKind::Event,
            Self::Run(_) => RecordKind::Run,
        }
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Job(id) => id.as_str(),
            Self::Operation(id) => id.as_str(),
            Self::Event(id) => id.as_str(),
            Self::Run(id) => id.as_str(),
        }
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<JobId> for RecordId {
    fn from(id: JobId) -> Self {
        Self::Job(id)
    }
}

impl From<EventId> for RecordId {
    fn from(id: EventId) -> Self {
        Self::Event(id)
    }
}

impl From<RunId> for RecordId {
    fn from(id: RunId) -> Self {
        Self::Run(id)
    }
}

impl From<OperationId> for RecordId {
    fn from(id: OperationId) -> Self {
        Self::Operation(id)
    }
}
