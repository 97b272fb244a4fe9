//! The time of the model.

use domain::planted::{Bug, planted};
use domain::timeline::{Anchor, Step};
use domain::{RecordId, RecordKind, Timestamp};

use super::{MemoryStore, Tables};
use crate::commit::limits::MAX_PAGE;
use crate::{Adopted, DuePlace};

impl MemoryStore {
    /// What the boot-time clock of its machine says: the model has none of its own. Untold, it cannot know of a time that it was read
    /// before a step back.
    pub fn tell_boot_clock(&self, micros: i64) {
        self.tables().told.boot = Some(micros);
    }
}

/// The boot-time clock as it was last told, and as it was when a step was adopted.
#[derive(Clone, Copy, Default)]
pub(super) struct Told {
    boot: Option<i64>,
    stepped_at: Option<i64>,
}

impl Tables {
    pub(super) fn timers_moved(&mut self, step: Step, passes_left: u8) {
        if self.clock.steps.as_slice().last() == Some(&step) {
            self.clock.passes_left = passes_left;
        }
    }

    pub(super) fn due_between(
        &self,
        kind: RecordKind,
        after: &DuePlace,
        until: Timestamp,
        limit: usize,
    ) -> Vec<(Timestamp, RecordId)> {
        let comes_later = |at: Timestamp, id: &RecordId| {
            at > after.at || at == after.at && after.id.as_ref().is_none_or(|after| id > after)
        };
        let due = self.due(kind).filter(|(at, id)| *at <= until && comes_later(*at, id));
        let mut due: Vec<_> = due.map(|(at, id)| (at, id.clone())).collect();
        due.sort();
        due.truncate(limit.min(MAX_PAGE));
        due
    }

    pub(super) fn keep_clock(&mut self, anchor: Anchor, adopted: Option<Adopted>) {
        self.clock.anchor = Some(anchor);
        let Some(adopted) = adopted else { return };
        self.clock.adopt(&adopted);
        self.told.stepped_at = self.told.boot;
        if !planted(Bug::LeasesNotMoved) {
            self.agenda.values_mut().for_each(|row| row.move_lease(adopted.step));
        }
    }

    /// A time as it is now, if it was read before a step.
    pub(super) fn carried(&self, read_at: Timestamp) -> Timestamp {
        let newest = self.clock.steps.as_slice().last();
        let Told { boot, stepped_at } = self.told;
        let passed = boot.zip(stepped_at).map(|(boot, stepped_at)| boot.saturating_sub(stepped_at));
        let now = newest.zip(passed).map(|(step, passed)| step.to.plus_micros(passed));
        self.clock.steps.carried(read_at, now)
    }

    /// The same, with a time that was reckoned from it.
    pub(super) fn carried_together(&self, now: Timestamp, later: Timestamp) -> (Timestamp, Timestamp) {
        let carried = self.carried(now);
        (carried, later.plus_micros(carried.micros().saturating_sub(now.micros())))
    }
}
