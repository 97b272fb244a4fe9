//! The engine's clock and ids, as a node of the simulation has them.

use std::future::Future;
use std::pin::Pin;

use domain::Timestamp;
use engine::{Clock, Ids, Timer};

use crate::heap::SECOND;
use crate::world::Sim;

/// The longest sleep without a look at the clock, which may jump.
const LOOK_AT_THE_CLOCK_EVERY: i64 = 30 * SECOND;

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

impl Timer for SimClock {
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                let left = at.micros() - self.now().micros();
                if left <= 0 {
                    return;
                }
                self.sim.sleep(left.min(LOOK_AT_THE_CLOCK_EVERY)).await;
            }
        })
    }
}

impl Ids for SimIds {
    fn next(&self) -> u128 {
        self.0.with(crate::world::World::next_id)
    }
}
