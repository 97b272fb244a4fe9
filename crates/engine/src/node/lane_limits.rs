//! How many jobs of a lane may be worked on at the same time, by all nodes together.

use std::collections::BTreeMap;

/// A lane whose name begins so is serial: one job at a time, in the order of their creation, whatever the config says of others.
pub const SERIAL: &str = "serial:";

/// The limits of the lanes that have one of their own.
#[derive(Clone, Debug, Default)]
pub struct LaneLimits(BTreeMap<String, usize>);

impl LaneLimits {
    /// The limit of this lane, if it has one.
    pub fn of(&self, lane: &str) -> Option<usize> {
        let named = self.0.get(lane).copied();
        named.or_else(|| lane.starts_with(SERIAL).then_some(1))
    }
}

impl From<BTreeMap<String, usize>> for LaneLimits {
    fn from(named: BTreeMap<String, usize>) -> Self {
        Self(named)
    }
}
