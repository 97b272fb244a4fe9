//! The engine's clock and ids, as a node of the simulation has them.

use domain::Timestamp;
use engine::{Clock, Ids};

use crate::world::Sim;

/// A node's clock: the store's time by a corrected offset, with a small skew, never back.
pub struct SimClock {
    /// The world that tells the time.
    pub sim: Sim,
    /// The node that asks.
    pub node: usize,
}

/// Ids drawn from the run's seed; time is in their high bits.
pub struct SimIds(pub Sim);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        self.sim.with(|world| world.node_time(self.node))
    }
}

impl Ids for SimIds {
    fn next(&self) -> u128 {
        self.0.with(crate::world::World::next_id)
    }
}
