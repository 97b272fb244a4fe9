//! Events as one kind of record.

use super::command::EventCommand;
use super::state::Event;
use crate::BodyRef;
use crate::kind::{Kind, Summary};

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
