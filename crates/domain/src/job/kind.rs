//! Jobs as one kind of record.

use super::command::JobCommand;
use super::details::ResultRefs;
use super::state::Job;
use crate::BodyRef;
use crate::kind::{Kind, Summary};

impl Kind for Job {
    fn has_timers(&self) -> bool {
        Job::has_timers(self)
    }

    fn is_over(&self) -> bool {
        self.state.name().is_terminal()
    }

    fn named_bodies(&self) -> Vec<BodyRef> {
        self.bodies.clone()
    }

    fn stores_body(&self, body: BodyRef) -> bool {
        let results = std::iter::once(&self.result)
            .chain(self.attempts.iter().filter_map(|attempt| Some(&attempt.end.as_ref()?.result)))
            .filter(|_| self.purged_at.is_none());
        let named = self.bodies.iter().chain(&self.answers);
        named.chain(results.flat_map(ResultRefs::bodies)).any(|named| *named == body)
    }

    fn summary(&self) -> Summary<'_> {
        Summary {
            status: self.state.name().as_str(),
            name: self.spec.executor.as_deref().unwrap_or_default(),
            circle: self.spec.circle.as_deref(),
            key: None,
            began_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

impl Job {
    /// Whether its older facts go while it is open.
    pub(crate) const IS_CHECKPOINTED: bool = false;
}

impl JobCommand {
    /// Whether it asks for a new record: refused first when too much waits.
    pub(crate) const fn is_new_work(&self) -> bool {
        matches!(self, Self::Create(_))
    }
}
