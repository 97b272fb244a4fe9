//! What a store knows of its own time: where it stands to the machine's clock, and where it has jumped. Coordination, not part of the ledger.
//!
//! A step is kept together with what it does to leases: everything that is held is held for as long as before. Whoever read the time before
//! the step and comes after it is carried over it (`Steps::carried`), so that no lease is over because of the order in which the two come.

use std::sync::Arc;

use domain::timeline::{Anchor, MAX_STEPS, Step, Steps};
use domain::{RecordId, Timestamp};

/// What a store knows of its own time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreClock {
    /// Where its time was in relation to the clock of a machine.
    pub anchor: Option<Anchor>,
    /// Where nodes share it: the same for each of their machines, since its time was last corrected or has last jumped.
    pub anchors: Vec<Anchor>,
    /// Where it has jumped.
    pub steps: Steps,
    /// Who adopted each of the steps, in their order: [`CLOCK`], or the operator who set it right.
    pub adopted_by: Vec<Arc<str>>,
    /// How often timers must still be moved over the newest step: whoever finds that nobody does it, does it.
    pub passes_left: u8,
    /// Where nodes share it: store time minus what the server's clock says, in microseconds.
    pub correction_micros: i64,
    /// Since when that is so, in store time; none while it is zero.
    pub corrected_since: Option<Timestamp>,
    /// Whether it was ahead of the server's clock when the first node was started, and waits for an operator.
    pub ahead_at_start: bool,
    /// Rises with every change of the correction, and with every step.
    pub revision: i64,
}

/// Who adopts a step that has lasted.
pub const CLOCK: &str = "clock";

/// A step that is adopted, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// The step.
    pub step: Step,
    /// [`CLOCK`], or an operator.
    pub by: Arc<str>,
}

impl From<Step> for Adopted {
    fn from(step: Step) -> Self {
        Self { step, by: Arc::from(CLOCK) }
    }
}

impl StoreClock {
    /// Adds a step that is adopted: its timers are still to be moved.
    pub fn adopt(&mut self, adopted: &Adopted) {
        self.steps.push(adopted.step);
        self.adopted_by.push(adopted.by.clone());
        let forgotten = self.adopted_by.len().saturating_sub(MAX_STEPS);
        self.adopted_by.drain(..forgotten);
        self.passes_left = passes(adopted.step);
    }

    /// Where its time was in relation to the clock of the machine that was started at this boot; none if the boot is not known.
    pub fn anchor_of(&self, boot: i64) -> Option<Anchor> {
        self.anchors.iter().find(|anchor| anchor.boot == boot && boot != 0).copied()
    }

    /// The newest step with whoever adopted it, if timers must still be moved over it.
    pub fn unmoved(&self) -> Option<Adopted> {
        let step = *self.steps.as_slice().last().filter(|_| self.passes_left > 0)?;
        let by = self.adopted_by.last().cloned().unwrap_or_else(|| Arc::from(CLOCK));
        Some(Adopted { step, by })
    }
}

/// How often timers are moved over a step: after one back once more, for what was on its way then.
pub const fn passes(step: Step) -> u8 {
    if step.by_micros() < 0 { 2 } else { 1 }
}

/// A change of the correction that all nodes have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub adopted: Option<Adopted>,
}

/// What a node has written down of the server's clock, as others find it. Whether it lives they find out by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The node.
    pub node_id: String,
    /// Its last heartbeat, by its own clock.
    pub heartbeat_at: Timestamp,
    /// The step that it sees, in microseconds; none if it agrees with the corrected clock.
    pub by_micros: Option<i64>,
}

impl Sight {
    /// How far the server's clock is ahead of the time that the node goes by, without the correction that all have in common.
    pub fn step_micros(&self, correction_micros: i64) -> i64 {
        self.by_micros.unwrap_or_default().saturating_sub(correction_micros)
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
