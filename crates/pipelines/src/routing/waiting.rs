//! How what waited goes on, in commits of its own: an event that nobody has settled yet, and a run whose next steps nobody has begun.

use std::sync::Arc;

use domain::event::is_between_turns;
use domain::event::{Event, NewEvent, Origin, Settler};
use domain::job::Job;
use domain::planted::{Bug, planted};
use domain::run::{Run, RunCommand, VisitState};
use domain::{Command, Record, RecordId, Timestamp};
use engine::{EngineError, Order};
use store::Store;

use super::Router;
use super::follow::{files_at, moves};
use super::prepare::Preparing;
use super::settle::Moves;

/// The step that emitted an event, and the run that it belongs to.
struct Emitter {
    job: Job,
    run: Run,
    ordinal: u32,
}

impl Router {
    /// The order that goes on with an event or a run that waits.
    pub(super) async fn waiting_order(
        &self,
        store: &dyn Store,
        record: &Record,
        actor: Arc<str>,
        now: Timestamp,
    ) -> Result<Option<Order>, EngineError> {
        if let Some(event) = record.as_event().filter(|event| is_to_be_settled(event)) {
            return self.settling_order(store, event, actor, now).await.map(Some);
        }
        match record.as_run().filter(|run| run.waiting().next().is_some()) {
            Some(run) => self.advancing_order(store, run, actor, now).await.map(Some),
            None => Ok(None),
        }
    }

    /// The command that ends the waiting of an event or a run that cannot go on.
    pub(super) fn declined(&self, record: &Record, why: &EngineError) -> Option<Command> {
        if let Some(event) = record.as_event() {
            return Some(self.decline(&event.said, &why.to_string()).into());
        }
        record.as_run().map(|_| RunCommand::Condemn { reason: why.code().to_owned() }.into())
    }

    async fn settling_order(
        &self,
        store: &dyn Store,
        event: &Event,
        actor: Arc<str>,
        now: Timestamp,
    ) -> Result<Order, EngineError> {
        let id = RecordId::from(event.id.clone());
        let payload = store.body(&id, event.said.payload).await?.unwrap_or_default();
        let emitter = self.emitter(store, &event.said).await?;
        let mut settling = self.settling(store, now);
        let mut moved = Moves::Nothing;
        if let Some(Emitter { job, run, ordinal }) = &emitter {
            settling.files_at = files_at(Some(run), job);
            moved = moves(run, job, *ordinal);
        }
        let settle = settling.settle(&event.id, &event.said, &payload, moved).await?;
        let mut order = Order::new(id, settle, actor);
        settling.also.into_order(&mut order);
        Ok(order)
    }

    async fn advancing_order(
        &self,
        store: &dyn Store,
        run: &Run,
        actor: Arc<str>,
        now: Timestamp,
    ) -> Result<Order, EngineError> {
        let plan = self.plan_of(store, run).await?;
        let mut preparing = Preparing::new(store, &self.executors, run.clone(), plan, now);
        preparing.files_at = self.files_of_turn(store, run).await?;
        let (prepared, bodies) = preparing.all().await?;
        let mut order = Order::new(run.id.clone(), RunCommand::Advance(prepared), actor);
        order.bodies = bodies.into_vec();
        Ok(order)
    }

    /// The step that emitted an event; none if it came from elsewhere, or its job is no longer retained.
    async fn emitter(&self, store: &dyn Store, event: &NewEvent) -> Result<Option<Emitter>, EngineError> {
        let Origin::Emitted { job_id, ordinal } = &event.origin else { return Ok(None) };
        let loaded = store.load(&RecordId::from(job_id.clone())).await?;
        let Some(job) = loaded.and_then(|loaded| loaded.record.as_job().cloned()) else { return Ok(None) };
        let run = self.run_of(store, &job).await?;
        Ok(run.map(|run| Emitter { job, run, ordinal: *ordinal }))
    }

    /// The node that has the files of the turn that asked for a run, as long as nothing of the run has begun.
    async fn files_of_turn(&self, store: &dyn Store, run: &Run) -> Result<Option<String>, EngineError> {
        if run.visits.iter().any(|visit| visit.state != VisitState::Waiting) {
            return Ok(None);
        }
        let loaded = store.load(&RecordId::from(run.begun.event_id.clone())).await?;
        let event = loaded.as_ref().and_then(|loaded| loaded.record.as_event());
        let Some(event) = event.filter(|event| is_between_turns(&event.said.kind)) else { return Ok(None) };
        let emitter = self.emitter(store, &event.said).await?;
        Ok(emitter.and_then(|Emitter { job, run, .. }| files_at(Some(&run), &job)))
    }
}

/// One that is left to those who claim it is not: a claim that has ended, or was given back, puts it back in its lane.
fn is_to_be_settled(event: &Event) -> bool {
    let is_left_to_claimants =
        event.said.settled_by == Settler::Claimants && !planted(Bug::RouterSettlesForClaimants);
    event.settled.is_none() && !is_left_to_claimants
}
