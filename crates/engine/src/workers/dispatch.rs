//! Dispatches jobs that are ready: asks the lanes that have something and the slots that are free, and starts an attempt for each.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use domain::job::is_pulled;
use domain::{OwnerId, Timestamp};
use futures::future::BoxFuture;
use store::Take;

use super::{Next, Worker};
use crate::locked::Locked;
use crate::{Attempts, Engine, EngineError, Wakes};

/// Jobs taken from one lane at once.
const BATCH: usize = 256;

/// The worker.
pub struct DispatchJobs {
    engine: Engine,
    owner: OwnerId,
    attempts: Arc<Attempts>,
    wakes: Arc<Wakes>,
    /// Before this time a lane that no executor of ours is named after is left alone: its executor may still come.
    strangers_from: Timestamp,
    lanes: Mutex<Lanes>,
}

/// What is known of the lanes without a question to the store.
#[derive(Default)]
struct Lanes {
    /// Whether the store was asked once which lanes have something.
    asked: bool,
    /// Lanes in which something may be ready.
    maybe_ready: BTreeSet<Arc<str>>,
}

impl DispatchJobs {
    /// On this engine, as this owner, for these attempts.
    pub fn new(
        engine: Engine,
        owner: OwnerId,
        attempts: Arc<Attempts>,
        wakes: Arc<Wakes>,
        strangers_from: Timestamp,
    ) -> Self {
        Self { engine, owner, attempts, wakes, strangers_from, lanes: Mutex::default() }
    }

    async fn dispatch_ready(&self, now: Timestamp) -> Result<Next, EngineError> {
        if let Some(next) = Next::if_nothing_is_taken(self.attempts.may_take(), now) {
            return Ok(next);
        }
        self.learn_lanes().await?;
        let asked = std::mem::take(&mut self.lanes.locked().maybe_ready);
        let mut next = Next::WhenWoken;
        for lane in &asked {
            if is_pulled(lane) || self.attempts.is_pinned_elsewhere(lane) {
                continue;
            }
            if now < self.strangers_from && !self.attempts.serves(lane) {
                self.lanes.locked().maybe_ready.insert(lane.clone());
                next = sooner(next, Next::At(self.strangers_from));
                continue;
            }
            if !self.attempts.serves(lane) {
                match self.attempts.is_served_elsewhere(lane).await {
                    // Heartbeats name it again as long as something is ready there.
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(error) => {
                        self.lanes.locked().maybe_ready.extend(asked.iter().cloned());
                        return Err(error);
                    }
                }
            }
            if let Some(until) = self.attempts.left_alone_until(lane, now) {
                // The end of an attempt and a reset wake us too.
                self.lanes.locked().maybe_ready.insert(lane.clone());
                next = sooner(next, Next::At(until));
                continue;
            }
            let limit = self.attempts.free_slots(lane).min(BATCH);
            if limit == 0 {
                // A slot that becomes free wakes us.
                self.lanes.locked().maybe_ready.insert(lane.clone());
                continue;
            }
            let take = Take::by(self.owner.clone(), now, self.attempts.lease(), limit).until_next_commit();
            let taken = match self.engine.store().take_ready(self.attempts.lane(lane), take).await {
                Ok(taken) => taken,
                Err(error) => {
                    // Some may have been taken all the same: the ends of their leases bring them back.
                    self.wakes.due(self.attempts.lease().expires_at(now));
                    self.lanes.locked().maybe_ready.extend(asked.iter().cloned());
                    return Err(error.into());
                }
            };
            if taken.len() == limit {
                self.lanes.locked().maybe_ready.insert(lane.clone());
                next = Next::Now;
            }
            for one in taken {
                self.attempts.begin_found(lane, one);
            }
        }
        Ok(next)
    }

    async fn learn_lanes(&self) -> Result<(), EngineError> {
        let woken = self.wakes.take_lanes();
        let asked = {
            let mut lanes = self.lanes.locked();
            lanes.maybe_ready.extend(woken);
            lanes.asked &= !self.wakes.take_look_at_lanes();
            lanes.asked
        };
        if !asked {
            let ready = self.engine.store().ready_lanes().await?;
            let mut lanes = self.lanes.locked();
            lanes.maybe_ready.extend(ready);
            lanes.asked = true;
        }
        Ok(())
    }
}

impl Worker for DispatchJobs {
    fn name(&self) -> &'static str {
        "dispatch_jobs"
    }

    fn round(&self, now: Timestamp) -> BoxFuture<'_, Result<Next, EngineError>> {
        Box::pin(self.dispatch_ready(now))
    }

    fn woken(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.wakes.job_ready())
    }
}

fn sooner(a: Next, b: Next) -> Next {
    match (a, b) {
        (Next::Now, _) | (_, Next::Now) => Next::Now,
        (Next::At(a), Next::At(b)) => Next::At(a.min(b)),
        (Next::At(at), Next::WhenWoken) | (Next::WhenWoken, Next::At(at)) => Next::At(at),
        (Next::WhenWoken, Next::WhenWoken) => Next::WhenWoken,
    }
}
