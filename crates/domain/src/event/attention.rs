//! When an event next needs someone: to be settled, and to be forgotten.

use std::sync::Arc;

use super::command::{EventCommand, Settler};
use super::state::Event;
use crate::attention::{Attention, Holding, Place, Retention};
use crate::job::lane_of_events;
use crate::{Jitter, Timestamp};

impl Event {
    /// What the agenda must know of this event. Whoever has claimed one that waits keeps it from the router.
    pub fn attention(&self, retention: Retention) -> Attention {
        match self.forgotten_at(retention) {
            Some(at) => Attention::waiting(Some(at)),
            None if self.said.settled_by == Settler::Claimants => Attention {
                holding: Holding::Claimable,
                place: Some(self.place()),
                due_at: None,
                limit_at: None,
            },
            None => Attention {
                holding: Holding::Claimable,
                place: None,
                // Published at a time from which the clock was set back, it waits for nothing all the same.
                due_at: Some(self.published_at.min(self.updated_at)),
                limit_at: None,
            },
        }
    }

    /// What time alone brings about; an event that waits is the router's to settle.
    pub fn due_command(
        &self,
        retention: Retention,
        _: impl FnOnce() -> Jitter,
        now: Timestamp,
    ) -> Option<EventCommand> {
        self.forgotten_at(retention).is_some_and(|at| at <= now).then_some(EventCommand::Retire)
    }

    /// Where it waits for a claimant: the oldest goes first.
    fn place(&self) -> Place {
        Place {
            lane: Arc::from(lane_of_events(&self.said.kind, self.said.circle.as_deref())),
            priority: 0,
            sequence: self.published_at.micros(),
            ready_at: self.published_at.min(self.updated_at),
        }
    }

    fn forgotten_at(&self, retention: Retention) -> Option<Timestamp> {
        self.settled.as_ref().map(|settled| settled.at.plus_seconds(retention.completed_seconds))
    }
}
