//! The state of an event: what it says, and what came of it.

use serde::{Deserialize, Serialize};

use super::command::NewEvent;
use super::fact::{Disposition, Settlement};
use crate::words::words;
use crate::{EventId, Refusal, Timestamp};

/// An event, folded from its facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its id.
    #[serde(skip)]
    pub id: EventId,
    /// What was published.
    pub said: NewEvent,
    /// When.
    pub published_at: Timestamp,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
}

/// What came of an event, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub settlement: Settlement,
}

words! {
    /// Where an event is, in a word.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum EventStatus {
        /// Nobody has looked at it yet.
        Waiting = "waiting",
        /// It started or moved something.
        Routed = "routed",
        /// Every pipeline that listens had a reason not to begin.
        Declined = "declined",
        /// No pipeline listens to it.
        NoRoute = "no_route",
        /// Whoever had claimed it has settled it.
        Processed = "processed",
    }
}

impl Event {
    /// The event right after it was written down.
    pub fn new(id: EventId, said: &NewEvent, at: Timestamp) -> Self {
        Self { id, said: said.clone(), published_at: at, settled: None, updated_at: at }
    }

    /// Whether somebody may claim it: only what waits.
    pub fn may_be_claimed(&self) -> Result<(), Refusal> {
        if self.settled.is_some() { Err(Refusal::EventSettled) } else { Ok(()) }
    }

    /// Where it is.
    pub fn status(&self) -> EventStatus {
        let Some(Settled { settlement, .. }) = &self.settled else { return EventStatus::Waiting };
        if settlement.processed.is_some() {
            return EventStatus::Processed;
        }
        let started = settlement.routes.iter().any(|one| matches!(one.disposition, Disposition::Started(_)));
        match (settlement.moved_its_run || started, settlement.routes.is_empty()) {
            (true, _) => EventStatus::Routed,
            (false, true) => EventStatus::NoRoute,
            (false, false) => EventStatus::Declined,
        }
    }
}
