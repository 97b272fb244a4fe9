//! Routes events and goes on with runs: settles every event that waits, with all that it starts in one commit, and begins the steps that
//! nobody has begun yet. Both are also forgotten here when their time has come.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use domain::event::MAX_ROUTES;
use domain::run::RunCommand;
use domain::time::earliest;
use domain::{Command, Lease, OwnerId, Record, RecordKind, Refusal, Timestamp};
use futures::future::join_all;
use store::{StoreError, Take, Taken};

use super::due_times::DueTimes;
use super::{Next, Worker};
use crate::routing::Moves;
use crate::{Engine, EngineError, Order, Router, Standing, Wakes};

/// Events and runs taken in one round, of each.
const BATCH: usize = 128;

/// The worker.
pub struct RouteEvents {
    engine: Engine,
    router: Arc<Router>,
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
        router: Arc<Router>,
        owner: OwnerId,
        lease: Lease,
        wakes: Arc<Wakes>,
        standing: Arc<Standing>,
    ) -> Self {
        Self { engine, router, owner, lease, wakes, standing, due_times: DueTimes::default() }
    }

    async fn route(&self, now: Timestamp) -> Result<Next, EngineError> {
        if let Some(next) = Next::if_nothing_is_taken(self.standing.may_take(self.lease), now) {
            return Ok(next);
        }
        if let Some(next) = self.due_times.nothing_before(now, self.wakes.take_routing_due_at()) {
            return Ok(next);
        }
        let mut more = false;
        for kind in [RecordKind::Event, RecordKind::Run] {
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
        let store = self.engine.store();
        let (event, run) =
            (store.earliest_due(RecordKind::Event).await?, store.earliest_due(RecordKind::Run).await?);
        Ok(self.due_times.learned(earliest(event, run)))
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
        let now = self.engine.clock().now();
        let actor: Arc<str> = Arc::from("worker:route_events");
        let order = match &*loaded.record {
            Record::Event(event) if event.settled.is_none() => {
                let id: domain::RecordId = event.id.clone().into();
                let payload = store.body(&id, event.said.payload).await?.unwrap_or_default();
                let mut settling = self.router.settling(store, now);
                let settle = settling.settle(&event.id, &event.said, &payload, Moves::Nothing).await?;
                let mut order = Order::new(event.id.clone(), settle, actor);
                settling.into_order(&mut order);
                order
            }
            Record::Run(run) if run.waiting().next().is_some() => {
                self.router.advancing(store, run, actor, now).await?
            }
            Record::Event(_) | Record::Run(_) | Record::Job(_) | Record::Operation(_) => {
                self.engine.attend(taken, actor).await?;
                return Ok(());
            }
        };
        self.engine.execute(order.under(taken.claim.fence())).await?;
        Ok(())
    }

    /// What cannot go on says so, instead of waiting for ever.
    async fn condemn(&self, taken: &Taken, why: &EngineError) -> Result<(), EngineError> {
        let store = self.engine.store();
        let Some(loaded) = store.load(&taken.id).await? else { return Ok(()) };
        let command: Command = match &*loaded.record {
            Record::Run(_) => RunCommand::Condemn { reason: why.code().to_owned() }.into(),
            Record::Event(event) => {
                let settling = self.router.settling(store, self.engine.clock().now());
                settling.decline(&event.said, &why.to_string()).into()
            }
            Record::Job(_) | Record::Operation(_) => return Ok(()),
        };
        let order = Order::new(taken.id.clone(), command, Arc::from("worker:route_events"));
        match self.engine.execute(order.under(taken.claim.fence())).await {
            Ok(_) | Err(EngineError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Worker for RouteEvents {
    fn name(&self) -> &'static str {
        "route_events"
    }

    fn round(&self, now: Timestamp) -> Pin<Box<dyn Future<Output = Result<Next, EngineError>> + Send + '_>> {
        Box::pin(self.route(now))
    }

    fn woken(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.wakes.routing())
    }
}
