//! Events as one kind of record.

use super::command::EventCommand;
use super::fact::EventFact;
use super::state::Event;
use crate::BodyRef;
use crate::kind::{Kind, Removal, Summary};

impl Kind for Event {
    fn is_over(&self) -> bool {
        self.settled.is_some()
    }

    fn named_bodies(&self) -> Vec<BodyRef> {
        vec![self.said.payload]
    }

    fn summary(&self) -> Summary<'_> {
        Summary {
            status: self.status().as_str(),
            name: &self.said.kind,
            circle: self.said.circle.as_deref(),
            key: self.said.dedupe_key.as_deref(),
            began_at: self.published_at,
            updated_at: self.updated_at,
        }
    }
}

impl Event {
    /// Whether its older facts go while it is open.
    pub(crate) const IS_CHECKPOINTED: bool = false;
}

impl EventCommand {
    /// Whether it asks for a new record: refused first when too much waits.
    pub(crate) const fn is_new_work(&self) -> bool {
        matches!(self, Self::Publish(_))
    }

    /// Whether only the holder of the claim may order it.
    pub(crate) const fn needs_claim(&self) -> bool {
        matches!(self, Self::Process(_))
    }
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
