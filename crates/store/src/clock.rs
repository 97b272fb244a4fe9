//! What a store knows of its own time: where it stands to the machine's clock, and where it has jumped. Coordination, not part of the ledger.
//!
//! A step is kept together with what it does to leases: everything that is held is held for as long as before. Whoever read the time before
//! the step and comes after it is carried over it (`Steps::carried`), so that no lease is over because of the order in which the two come.

use domain::timeline::{Anchor, FOLLOWED_MICROS, Step, Steps};
use domain::{RecordId, RecordKind, Timestamp};

use crate::Reply;

/// What a store knows of its own time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreClock {
    /// Where its time was in relation to the clock of a machine.
    pub anchor: Option<Anchor>,
    /// Where it has jumped.
    pub steps: Steps,
    /// Where nodes share it: store time minus what the server's clock says, in microseconds.
    pub correction_micros: i64,
    /// Since when that is so, in store time; none while it is zero.
    pub corrected_since: Option<Timestamp>,
    /// Whether it was ahead of the server's clock when the first node was started, and waits for an operator.
    pub ahead_at_start: bool,
    /// Rises with every change of the correction, and with every step.
    pub revision: i64,
}

/// A change of the correction that all nodes have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The revision that it was decided on: made only if nobody has changed anything since.
    pub revision: i64,
    /// Store time minus what the server's clock says, from now on.
    pub micros: i64,
    /// Since when, in store time.
    pub since: Timestamp,
    /// Whether it stays until an operator says otherwise.
    pub ahead_at_start: bool,
    /// The step that is adopted with it.
    pub step: Option<Step>,
}

/// What the nodes that live see of the server's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenSteps {
    /// Nodes that were heard of lately.
    pub live_nodes: usize,
    /// The steps that such nodes see, in microseconds: one each at most.
    pub seen_micros: Vec<i64>,
}

impl SeenSteps {
    /// Whether most of the nodes that live see this step, give or take what is followed anyway.
    pub fn agree_on(&self, by_micros: i64) -> bool {
        let same = |seen: &&i64| seen.saturating_sub(by_micros).saturating_abs() <= FOLLOWED_MICROS;
        self.seen_micros.iter().filter(same).count() * 2 > self.live_nodes
    }
}

/// A place among what is due: after this time, and there after this record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuePlace {
    /// The time.
    pub at: Timestamp,
    /// The record; none is before all that are due then.
    pub id: Option<RecordId>,
}

/// The part of a store that is about its time.
pub trait ClockStore {
    /// What it knows.
    fn clock(&self) -> Reply<'_, StoreClock>;
    /// Keeps where its time stands, and a step that was adopted, with which every lease that is held is moved.
    fn keep_clock(&self, anchor: Anchor, step: Option<Step>) -> Reply<'_, ()>;
    /// Records of a kind that are due after a place and no later than a time, the first of them first.
    fn due_between(
        &self,
        kind: RecordKind,
        after: DuePlace,
        until: Timestamp,
        limit: usize,
    ) -> Reply<'_, Vec<(Timestamp, RecordId)>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_is_agreed_on_by_most_of_the_nodes_that_live() {
        let hour = 3_600_000_000;
        for (live_nodes, seen_micros, agreed) in [
            (1, vec![hour], true),
            (2, vec![hour], false),
            (2, vec![hour, hour + 1_000_000], true),
            (3, vec![hour, hour], true),
            (3, vec![hour, -hour], false),
            (4, vec![hour, hour], false),
        ] {
            let seen = SeenSteps { live_nodes, seen_micros };
            assert_eq!(seen.agree_on(hour), agreed, "{seen:?}");
        }
    }
}
