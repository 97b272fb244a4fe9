//! Routing: what an event starts, and how a pipeline goes on. The rules are in `domain::event` and `domain::run`; here what they do not look
//! into is looked into: payloads, conditions, templates.
//!
//! `settle.rs` says what an event starts, `prepare.rs` what each step is given, `follow.rs` what comes with the end of an attempt, in its
//! commit. Ids are made from what caused them (`derived.rs`): whatever is done again is the same, and never a second one.

mod derived;
mod follow;
mod given;
mod prepare;
mod settle;
mod signal;

use std::sync::{Arc, PoisonError, RwLock};

use domain::event::{EventCommand, NewEvent};
use domain::{BodyName, Consequence, EventId, RecordId};
use store::Store;

use crate::kept::Bodies;
use crate::pipelines::Routes;
use crate::{EngineError, Executors, Order};

pub use derived::{event_id_of_key, run_id_of};
pub(crate) use follow::{Finished, Followed};
pub(crate) use settle::Moves;
pub(crate) use signal::Signals;

/// What knows the pipelines, and asks them.
pub struct Router {
    executors: Executors,
    routes: RwLock<Arc<Routes>>,
}

/// What happens besides, in the same commit.
#[derive(Debug, Default)]
pub(crate) struct Also {
    pub(crate) consequences: Vec<Consequence>,
    pub(crate) bodies: Bodies,
}

impl Router {
    /// With these executors and these pipelines.
    pub fn new(executors: Executors, routes: Routes) -> Self {
        Self { executors, routes: RwLock::new(Arc::new(routes)) }
    }

    /// The pipelines as they are now.
    pub fn routes(&self) -> Arc<Routes> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on these. What runs keeps the definition that it began with.
    pub fn replace(&self, routes: Routes) {
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(routes);
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
        now: domain::Timestamp,
    ) -> Result<Order, EngineError> {
        let mut order = Self::publishing(id, new.clone(), payload.clone(), actor);
        let mut settling = self.settling(store, now);
        let settled = settling.settle(id, &new, &payload, settle::Moves::Nothing).await?;
        order.then.push(settled.into());
        settling.into_order(&mut order);
        Ok(order)
    }
}

impl Also {
    pub(crate) fn into_order(self, order: &mut Order) {
        order.also.extend(self.consequences);
        order.bodies.extend(self.bodies.into_vec());
    }

    fn then(&mut self, record: impl Into<RecordId>, command: impl Into<domain::Command>) {
        self.consequences.push(Consequence { record: record.into(), command: command.into() });
    }
}
