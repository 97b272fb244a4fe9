//! Routing: what an event starts, and how a pipeline goes on. The rules are in `domain::event` and `domain::run`; here what they do not look
//! into is looked into: payloads, conditions, templates.
//!
//! `settle.rs` says what an event starts, `prepare.rs` what each step is given, `follow.rs` what comes with the end of an attempt, in its
//! commit, `waiting.rs` how what waited goes on. Ids are made from what caused them (`derived.rs`): whatever is done again is the same, and never a second one.

mod derived;
mod failed_tool;
mod follow;
mod given;
mod prepare;
mod settle;
mod signal;
mod waiting;

use std::sync::{Arc, PoisonError, RwLock};

use domain::event::{EventCommand, NewEvent, Settler};
use domain::job::Job;
use domain::{BodyName, Command, EventId, MAX_CONSEQUENCES, Record, Timestamp};
use engine::{
    Bodies, EngineError, Executors, Failure, FollowUps, Order, Preparation, PreparationFuture, WorkResult,
};
use store::Store;

use crate::Routes;

pub use derived::{event_id_of_key, run_id_of};

/// What knows the pipelines, and asks them.
pub struct Router {
    executors: Executors,
    routes: RwLock<Arc<Routes>>,
    /// Consequences that routing adds to one commit. What is over it goes on in commits of its own: events that were published wait to be
    /// settled, and runs wait for their first or next steps. An event that is settled alone starts one run for each pipeline that listens
    /// (`MAX_ROUTES`), whatever the bound.
    max_following: usize,
}

impl Router {
    /// With these executors and these pipelines.
    pub fn new(executors: Executors, routes: Routes) -> Self {
        Self { executors, routes: RwLock::new(Arc::new(routes)), max_following: MAX_CONSEQUENCES }
    }

    /// The same, with fewer consequences in one commit: more commits for the same work.
    pub fn following_at_most(mut self, consequences: usize) -> Self {
        self.max_following = consequences.min(MAX_CONSEQUENCES);
        self
    }

    /// The pipelines as they are now.
    pub fn routes(&self) -> Arc<Routes> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on these. What runs keeps the definition that it began with, and who settles which event stays as it was.
    pub fn replace(&self, routes: Routes) {
        let kept = self.routes().left_to_claimants().to_vec();
        self.set(routes.leaving_to_claimants(kept));
    }

    /// From now on events of these types, and of no others, are left to those who claim them.
    pub fn leave_to_claimants(&self, types: impl IntoIterator<Item = String>) {
        self.set((*self.routes()).clone().leaving_to_claimants(types));
    }

    fn set(&self, routes: Routes) {
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(routes);
    }

    /// Who settles events of this type, of those that nobody has asked for by the name of a pipeline.
    pub fn settler_of(&self, kind: &str) -> Settler {
        let is_claimed = self.routes().left_to_claimants().iter().any(|one| one == kind);
        if is_claimed { Settler::Claimants } else { Settler::Router }
    }

    /// The order that writes an event down. It is settled by whoever takes it: see `workers/route.rs`.
    pub fn publishing(id: &EventId, mut new: NewEvent, payload: Vec<u8>, actor: Arc<str>) -> Order {
        let mut bodies = Bodies::default();
        new.payload = bodies.keep(id.clone(), BodyName::Payload, payload);
        let mut order = Order::new(id.clone(), EventCommand::Publish(Box::new(new)), actor);
        order.bodies = bodies.into_vec();
        order
    }

    /// The order that writes an event down and settles it at once, with all that it starts.
    pub async fn starting(
        &self,
        store: &dyn Store,
        id: &EventId,
        new: NewEvent,
        payload: Vec<u8>,
        actor: Arc<str>,
        now: Timestamp,
    ) -> Result<Order, EngineError> {
        let mut order = Self::publishing(id, new.clone(), payload.clone(), actor);
        let mut settling = self.settling(store, now);
        let settled = settling.settle(id, &new, &payload, settle::Moves::Nothing).await?;
        order.then.push(settled.into());
        settling.also.into_order(&mut order);
        Ok(order)
    }
}

impl Preparation for Router {
    fn follow_result<'a>(
        &'a self,
        store: &'a dyn Store,
        job: &'a Job,
        result: &'a WorkResult,
        now: Timestamp,
        order: &'a mut Order,
    ) -> PreparationFuture<'a, Option<Failure>> {
        Box::pin(self.result_followed(store, job, result, now, order))
    }

    fn follow_end(&self, record: &Record, job: &Job, version: u64) -> Option<FollowUps> {
        self.end_published(record, job, version)
    }

    fn go_on<'a>(
        &'a self,
        store: &'a dyn Store,
        record: &'a Record,
        actor: Arc<str>,
        now: Timestamp,
    ) -> PreparationFuture<'a, Option<Order>> {
        Box::pin(self.waiting_order(store, record, actor, now))
    }

    fn give_up(&self, record: &Record, why: &EngineError) -> Option<Command> {
        self.declined(record, why)
    }
}
