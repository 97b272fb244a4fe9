//! Hands jobs out to those who pull: takes for all who wait in a lane at once, under their own names. A lane that had nothing is
//! not asked again before something has happened in it.

use std::sync::Arc;

use domain::Timestamp;
use futures::future::BoxFuture;
use store::Take;

use super::{Next, Worker};
use crate::{Engine, EngineError, Pulls};

/// Jobs taken from one lane at once.
const BATCH: usize = 256;

/// The worker.
pub struct HandOutJobs {
    engine: Engine,
    pulls: Arc<Pulls>,
}

impl HandOutJobs {
    /// On this engine, to those who wait here.
    pub fn new(engine: Engine, pulls: Arc<Pulls>) -> Self {
        Self { engine, pulls }
    }

    async fn hand_out(&self, now: Timestamp) -> Result<Next, EngineError> {
        if let Some(next) = Next::if_nothing_is_taken(self.pulls.may_take(), now) {
            return Ok(next);
        }
        if self.pulls.waiting().take_look() {
            self.pulls.count_question();
            let ready = match self.engine.store().ready_lanes().await {
                Ok(ready) => ready,
                Err(error) => {
                    self.pulls.look_again();
                    return Err(error.into());
                }
            };
            let mut waiting = self.pulls.waiting();
            for lane in ready {
                waiting.ask(lane);
            }
        }
        let mut next = Next::WhenWoken;
        let mut lanes = self.pulls.waiting().take_to_ask().into_iter();
        while let Some(name) = lanes.next() {
            let (lane, owners) = self.pulls.waiting().in_lane(&name, BATCH);
            // Read anew: what another node has given back meanwhile must not look held.
            let now = self.engine.clock().now();
            let Some(take) = Take::one_each(owners, now, self.pulls.lease()) else { continue };
            let limit = take.limit;
            self.pulls.count_question();
            let taken = match self.engine.store().take_ready(lane.lane(), take).await {
                Ok(taken) => taken,
                Err(error) => {
                    // What was taken all the same comes back when its lease ends.
                    let mut waiting = self.pulls.waiting();
                    for lane in std::iter::once(name).chain(lanes) {
                        waiting.ask(lane);
                    }
                    return Err(error.into());
                }
            };
            if taken.len() == limit {
                self.pulls.waiting().ask(name.clone());
                next = Next::Now;
            } else {
                self.pulls.waiting().was_empty(&lane);
            }
            for one in taken {
                self.pulls.hand(&name, one);
            }
        }
        Ok(next)
    }
}

impl Worker for HandOutJobs {
    fn name(&self) -> &'static str {
        "hand_out_jobs"
    }

    fn round(&self, now: Timestamp) -> BoxFuture<'_, Result<Next, EngineError>> {
        Box::pin(self.hand_out(now))
    }

    fn woken(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.pulls.asked())
    }
}
