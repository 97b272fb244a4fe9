//! All kinds of record behind one face, so that the write path is one path.
//!
//! The list below is the only one of them. The rules of a kind are in its own module; what is asked of every record is `Kind`.

pub mod attention;
pub mod checkpoint;
pub mod decision;
mod dispatch;
pub mod kind;
pub mod refusal;

use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use dispatch::records;

use crate::attention::{Attention, Retention};
use crate::checkpoint::{Checkpoint, Written};
use crate::event::{Event, EventCommand, EventFact, EventId};
use crate::job::{Job, JobCommand, JobFact, JobId};
use crate::kind::{Kind, Removal};
use crate::limits::MAX_ID_BYTES;
use crate::operation::{Operation, OperationCommand, OperationFact, OperationId};
use crate::run::{Run, RunCommand, RunFact, RunId};
use crate::words::words;
use crate::{Decision, Jitter, Refusal, Timestamp};

records! {
    /// A durable piece of tracked work.
    Job ("job", "work-", job, as_job): JobId, JobCommand, JobFact::Created,
    /// Work going on outside that we poll.
    Operation ("operation", "op-", operation, as_operation): OperationId, OperationCommand, OperationFact::Dispatched,
    /// A message that may start work.
    Event ("event", "event-", event, as_event): EventId, EventCommand, EventFact::Published,
    /// A pipeline at its work.
    Run ("run", "run-", run, as_run): RunId, RunCommand, RunFact::Started,
}

/// A fact that does not fit the state before it: the stream is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the fact does not fit the record before it: {0}")]
pub struct Misfold(pub &'static str);

const NO_BEGINNING: Misfold = Misfold("the stream does not begin with the record's beginning");
const OTHER_KIND: Misfold = Misfold("the fact is of another kind of record");

impl RecordId {
    /// Refuses an id that could be stored, but not read back as what it is.
    pub fn check(&self) -> Result<(), Refusal> {
        if Self::parse(self.as_str())? == *self { Ok(()) } else { Err(Refusal::UnknownIdForm) }
    }
}

impl std::fmt::Display for RecordId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the ids of every kind begin, for people.
pub(crate) fn id_forms() -> String {
    let form = |kind: RecordKind| format!("{} ids with {}", kind.as_str(), kind.id_prefix());
    RecordKind::ALL.map(form).join(", ").replacen("ids with", "ids start with", 1)
}

impl Fact {
    /// Whether it says that time went back: the only one that may be older than the fact before it.
    pub fn moves_back(&self) -> bool {
        self.moved_by().is_some_and(|by_micros| by_micros < 0)
    }
}

impl<F> Decision<F> {
    /// The same decision with its facts wrapped.
    fn map<G>(self, wrap: impl Fn(F) -> G) -> Decision<G> {
        match self {
            Self::Facts { facts, consequences } => {
                Decision::Facts { facts: facts.into_iter().map(wrap).collect(), consequences }
            }
            Self::Nothing => Decision::Nothing,
            Self::Refused { refusal, evidence, consequences } => {
                Decision::Refused { refusal, evidence: evidence.map(wrap), consequences }
            }
        }
    }
}
