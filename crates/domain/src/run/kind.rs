//! Runs as one kind of record.

use super::command::RunCommand;
use super::state::Run;
use crate::BodyRef;
use crate::kind::{Kind, Summary};

impl Kind for Run {
    fn is_over(&self) -> bool {
        self.end.is_some()
    }

    fn named_bodies(&self) -> Vec<BodyRef> {
        vec![self.begun.plan, self.begun.input]
    }

    fn summary(&self) -> Summary<'_> {
        Summary {
            status: self.state().as_str(),
            name: &self.begun.pipeline,
            circle: self.begun.circle.as_deref(),
            key: self.begun.dedupe_key.as_deref(),
            began_at: self.started_at,
            updated_at: self.updated_at,
        }
    }
}

impl Run {
    /// Whether its older facts go while it is open.
    pub(crate) const IS_CHECKPOINTED: bool = false;
}

impl RunCommand {
    /// Whether it asks for a new record: refused first when too much waits.
    pub(crate) const fn is_new_work(&self) -> bool {
        matches!(self, Self::Start(_))
    }

    /// Whether only the holder of the claim may order it.
    #[allow(clippy::unused_self, reason = "asked of every kind alike")]
    pub(crate) const fn needs_claim(&self) -> bool {
        false
    }
}
