//! Goes on with records of every kind without a worker of its own when they are due, as they are prepared for it: events that wait are
//! settled, with all that they start in one commit, and runs begin the steps that nobody has begun yet.

use std::sync::Arc;

use domain::event::{EventCommand, MAX_ROUTES, Settler};
use domain::time::earliest;
use domain::{Lease, OwnerId, Record, Refusal, Timestamp};
use futures::future::{BoxFuture, join_all};
use store::{StoreError, Sweep, Take, Taken};

use super::due_times::DueTimes;
use super::{Next, Worker};
use crate::{Engine, EngineError, Order, Standing, Wakes};

/// Events and runs taken in one round, of each.
const BATCH: usize = 128;
/// Who this is, on the ledger.
const ACTOR: &str = "worker:route_events";

/// The worker.
pub struct RouteEvents {
    engine: Engine,
    owner: OwnerId,
    lease: Lease,
    wakes: Arc<Wakes>,
    standing: Arc<Standing>,
    due_times: DueTimes,
}

impl RouteEvents {
    /// On this engine, as this owner.
    pub fn new(
        engine: Engine,
        owner: OwnerId,
        lease: Lease,
        wakes: Arc<Wakes>,
        standing: Arc<Standing>,
    ) -> Self {
        Self { engine, owner, lease, wakes, standing, due_times: DueTimes::default() }
    }

    async fn route(&self, now: Timestamp) -> Result<Next, EngineError> {
        if let Some(next) = Next::if_nothing_is_taken(self.standing.may_take(self.lease), now) {
            return Ok(next);
        }
        if let Some(next) = self.due_times.nothing_before(now, self.wakes.records.take()) {
            return Ok(next);
        }
        let mut more = false;
        for kind in Sweep::Records.kinds() {
            let take = Take::by(self.owner.clone(), now, self.lease, BATCH).until_next_commit();
            let taken = self.engine.store().take_due(kind, take).await?;
            more |= taken.len() == BATCH;
            // Side by side, so that the store syncs them together.
            for looked_after in join_all(taken.iter().map(|one| self.look_after(one))).await {
                looked_after?;
            }
        }
        if more {
            return Ok(Next::Now);
        }
        let mut due_at = None;
        for kind in Sweep::Records.kinds() {
            due_at = earliest(due_at, self.engine.store().earliest_due(kind).await?);
        }
        Ok(self.due_times.learned(due_at))
    }

    /// One record must not keep the others waiting.
    async fn look_after(&self, taken: &Taken) -> Result<(), EngineError> {
        let mut done = self.step(taken).await;
        // Somebody has started the same work under its key a moment ago: looked at again, it is a duplicate. Meanwhile somebody else may
        // have started another pipeline of it, and so on through all that listen.
        for _ in 0..MAX_ROUTES {
            if !matches!(done, Err(EngineError::Refused(Refusal::AlreadyExists))) {
                break;
            }
            done = self.step(taken).await;
        }
        match done {
            Ok(()) => Ok(()),
            Err(error @ EngineError::Store(StoreError::Broken(_) | StoreError::BodyDamaged(_))) => {
                tracing::error!(record = %taken.id, code = error.code(), "not routed: {error}");
                self.condemn(taken, &error).await
            }
            Err(EngineError::Refused(refusal)) => {
                tracing::warn!(record = %taken.id, code = refusal.code(), "not routed: {refusal}");
                self.condemn(taken, &refusal.into()).await
            }
            Err(error) => Err(error),
        }
    }

    async fn step(&self, taken: &Taken) -> Result<(), EngineError> {
        let store = self.engine.store();
        let Some(loaded) = store.load(&taken.id).await? else { return Ok(()) };
        let (now, actor): (_, Arc<str>) = (self.engine.clock().now(), Arc::from(ACTOR));
        let order = match self.engine.preparation() {
            Some(preparation) => preparation.go_on(store, &loaded.record, actor.clone(), now).await?,
            None => unheard(&loaded.record, actor.clone()),
        };
        match order {
            Some(order) => self.engine.execute(order.under(taken.claim.fence())).await?,
            None => self.engine.attend(taken, actor).await?,
        };
        Ok(())
    }

    /// What cannot go on says so, instead of waiting for ever.
    async fn condemn(&self, taken: &Taken, why: &EngineError) -> Result<(), EngineError> {
        let store = self.engine.store();
        let Some(loaded) = store.load(&taken.id).await? else { return Ok(()) };
        let given_up = self.engine.preparation().and_then(|one| one.give_up(&loaded.record, why));
        let Some(command) = given_up else { return Ok(()) };
        let order = Order::new(taken.id.clone(), command, Arc::from(ACTOR));
        match self.engine.execute(order.under(taken.claim.fence())).await {
            Ok(_) | Err(EngineError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Where nothing is configured nobody listens to any event: it is settled as it is.
fn unheard(record: &Record, actor: Arc<str>) -> Option<Order> {
    let event = record.as_event()?;
    let waits = event.settled.is_none() && event.said.settled_by == Settler::Router;
    let settle = EventCommand::Settle { routes: Vec::new(), moves_its_run: false };
    waits.then(|| Order::new(event.id.clone(), settle, actor))
}

impl Worker for RouteEvents {
    fn name(&self) -> &'static str {
        "route_events"
    }

    fn round(&self, now: Timestamp) -> BoxFuture<'_, Result<Next, EngineError>> {
        Box::pin(self.route(now))
    }

    fn woken(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.wakes.records.woken())
    }
}
