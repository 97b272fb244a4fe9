//! The time of the model.

use domain::planted::{Bug, planted};
use domain::timeline::{Anchor, Step};
use domain::{RecordId, RecordKind, Timestamp};

use super::{MemoryStore, Tables, ready};
use crate::commit::limits::MAX_PAGE;
use crate::{ClockStore, DuePlace, Reply, StoreClock};

impl ClockStore for MemoryStore {
    fn clock(&self) -> Reply<'_, StoreClock> {
        ready(Ok(self.tables().clock.clone()))
    }

    fn keep_clock(&self, anchor: Anchor, step: Option<Step>) -> Reply<'_, ()> {
        self.tables().keep_clock(anchor, step);
        ready(Ok(()))
    }

    fn due_between(
        &self,
        kind: RecordKind,
        after: DuePlace,
        until: Timestamp,
        limit: usize,
    ) -> Reply<'_, Vec<(Timestamp, RecordId)>> {
        let tables = self.tables();
        let comes_later = |at: Timestamp, id: &RecordId| {
            at > after.at || at == after.at && after.id.as_ref().is_none_or(|after| id > after)
        };
        let due = tables.due(kind).filter(|(at, id)| *at <= until && comes_later(*at, id));
        let mut due: Vec<_> = due.map(|(at, id)| (at, id.clone())).collect();
        due.sort();
        due.truncate(limit.min(MAX_PAGE));
        ready(Ok(due))
    }
}

impl Tables {
    fn keep_clock(&mut self, anchor: Anchor, step: Option<Step>) {
        self.clock.anchor = Some(anchor);
        let Some(step) = step else { return };
        self.clock.steps.push(step);
        if !planted(Bug::LeasesNotMoved) {
            self.agenda.values_mut().for_each(|row| row.move_lease(step));
        }
    }
}
