//! Operations as one kind of record.

use super::command::OperationCommand;
use super::state::Operation;
use crate::BodyRef;
use crate::kind::{Kind, Summary};

impl Kind for Operation {
    fn has_timers(&self) -> bool {
        Operation::has_timers(self)
    }

    /// After its end as well: what may still run outside is asked to stop, and asked about.
    fn waits_for_time(&self) -> bool {
        Operation::has_timers(self)
    }

    fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    fn named_bodies(&self) -> Vec<BodyRef> {
        self.bodies().copied().collect()
    }

    fn stores_body(&self, body: BodyRef) -> bool {
        self.handle == Some(body)
    }

    fn summary(&self) -> Summary<'_> {
        Summary {
            status: self.status().as_str(),
            name: &self.link.kind,
            circle: self.link.circle.as_deref(),
            key: None,
            began_at: self.dispatched_at,
            updated_at: self.updated_at,
        }
    }
}

impl Operation {
    /// Whether its older facts go while it is open: it may be polled for weeks.
    pub(crate) const IS_CHECKPOINTED: bool = true;
}

impl OperationCommand {
    /// It never asks for a new record: that comes with work that was accepted.
    #[allow(clippy::unused_self, reason = "asked of every kind alike")]
    pub(crate) const fn is_new_work(&self) -> bool {
        false
    }

    /// Whether only the holder of the claim may order it.
    #[allow(clippy::unused_self, reason = "asked of every kind alike")]
    pub(crate) const fn needs_claim(&self) -> bool {
        false
    }
}
