//! What comes with the end of an attempt, in its commit: the events that it emitted, settled, and the next steps of its run.

use domain::event::{EventCommand, NewEvent, Origin};
use domain::job::Job;
use domain::run::{Cause, Left, Run, RunCommand, StepEnd};
use domain::{BodyName, Command, Consequence, Decision, Json, Record, RecordId, Timestamp};
use store::Store;

use super::given::correlation_in;
use super::prepare::{Ending, Preparing};
use super::settle::Moves;
use super::{Also, Router, derived};
use crate::pipelines::Plan;
use crate::{Emitted, EngineError, Order};

/// What came of a job that is completed, as far as anything follows from it.
pub(crate) struct Finished {
    pub(crate) emitted: Vec<Emitted>,
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) left_files: bool,
}

/// What the events of a job mean for the job itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// Nothing: it is completed.
    GoesOn,
    /// Too many events led to one of them. It is written down, starts nothing, and the job has failed: nobody may overlook it.
    TooDeep,
}

impl Router {
    /// Adds to the order that completes a job what follows from it. Done again after a crash, it is the same.
    pub(crate) async fn follow(
        &self,
        store: &dyn Store,
        job: &Job,
        finished: &Finished,
        now: Timestamp,
        order: &mut Order,
    ) -> Result<Followed, EngineError> {
        let emitted = &finished.emitted;
        if emitted.is_empty() && job.spec.step.is_none() {
            return Ok(Followed::GoesOn);
        }
        let run = self.run_of(store, job).await?;
        let after = run.clone().and_then(|run| after_step(run, job, finished, now));
        let mut settling = self.settling(store, now);
        let mut is_too_deep = false;
        let carried = self.carried_to(store, job).await?;
        for (emitted, ordinal) in emitted.iter().zip(0..) {
            let id = derived::event_id(&job.id, ordinal);
            let event = event_of(job, run.as_ref(), emitted, ordinal, carried.as_ref(), settling.also());
            let moves = after.as_ref().map_or(Moves::Nothing, |run| moves(run, job, ordinal));
            let settle = settling.settle(&id, &event, &emitted.payload, moves).await?;
            is_too_deep |= event.is_too_deep() && is_listened_to(&settle);
            // First the events themselves; what they start was kept before them.
            let publish = EventCommand::Publish(Box::new(event));
            order.also.push(Consequence { record: id.clone().into(), command: publish.into() });
            order.also.push(Consequence { record: id.into(), command: settle.into() });
        }
        if is_too_deep {
            order.also.iter_mut().for_each(moves_nothing);
        } else if let Some(run) = after {
            let also = self.next_steps(store, job, run, finished, now).await?;
            settling.also().consequences.extend(also.consequences);
            settling.also().bodies.extend(also.bodies);
        }
        settling.into_order(order);
        Ok(if is_too_deep { Followed::TooDeep } else { Followed::GoesOn })
    }

    /// What is carried with everything, as it came to a job.
    async fn carried_to(&self, store: &dyn Store, job: &Job) -> Result<Option<Json>, EngineError> {
        let context = job.bodies.iter().find(|body| body.name == BodyName::Context);
        let Some(context) = context.filter(|_| job.spec.step.is_some()) else { return Ok(None) };
        let bytes = store.body(&job.id.clone().into(), *context).await?;
        let context = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(context.as_ref().and_then(correlation_in))
    }

    async fn run_of(&self, store: &dyn Store, job: &Job) -> Result<Option<Run>, EngineError> {
        let Some(step) = &job.spec.step else { return Ok(None) };
        let loaded = store.load(&RecordId::from(step.run_id.clone())).await?;
        Ok(loaded.and_then(|loaded| match &*loaded.record {
            Record::Run(run) => Some((**run).clone()),
            Record::Job(_) | Record::Operation(_) | Record::Event(_) => None,
        }))
    }

    /// What a run does after a step of it, which it knows of already.
    async fn next_steps(
        &self,
        store: &dyn Store,
        job: &Job,
        run: Run,
        finished: &Finished,
        now: Timestamp,
    ) -> Result<Also, EngineError> {
        let mut also = Also::default();
        let plan = self.plan_of(store, &run).await?;
        let run_id = run.id.clone();
        let (result, emitted) = (finished.data.clone(), finished.emitted.clone());
        let ending = Ending { job_id: job.id.clone(), result, emitted };
        let preparing = Preparing::new(store, &self.executors, run, plan, now).ending(ending);
        let (prepared, bodies) = preparing.all().await?;
        if !prepared.is_empty() {
            also.then(run_id, RunCommand::Advance(prepared));
        }
        also.bodies = bodies;
        Ok(also)
    }

    /// What the steps of a run do.
    async fn plan_of(&self, store: &dyn Store, run: &Run) -> Result<Plan, EngineError> {
        let broken =
            |what: String| EngineError::Store(store::StoreError::Broken(format!("{}: {what}", run.id)));
        let bytes = store.body(&run.id.clone().into(), run.begun.plan).await?;
        let bytes = bytes.ok_or_else(|| broken("its plan is gone".to_owned()))?;
        Plan::parse(&bytes).map_err(|error| broken(error.to_string()))
    }

    /// The order that goes on with a run in which something waits.
    pub(crate) async fn advancing(
        &self,
        store: &dyn Store,
        run: &Run,
        actor: std::sync::Arc<str>,
        now: Timestamp,
    ) -> Result<Order, EngineError> {
        let plan = self.plan_of(store, run).await?;
        let (prepared, bodies) = Preparing::new(store, &self.executors, run.clone(), plan, now).all().await?;
        let mut order = Order::new(run.id.clone(), RunCommand::Advance(prepared), actor);
        order.bodies = bodies.into_vec();
        Ok(order)
    }
}

/// The run of a job once it knows that the job is completed; none if that changes nothing.
fn after_step(mut run: Run, job: &Job, finished: &Finished, now: Timestamp) -> Option<Run> {
    let step = job.spec.step.as_ref()?;
    let emitted = u32::try_from(finished.emitted.len()).unwrap_or(u32::MAX);
    let left = job.last_attempt().filter(|_| finished.left_files).map(Left::of);
    let end = StepEnd::Completed { emitted, left };
    let command = RunCommand::EndStep { visit: step.visit, job_id: job.id.clone(), end };
    let Decision::Facts { facts, .. } = domain::run::decide(&run, &command, now) else { return None };
    for fact in &facts {
        domain::run::apply(&mut run, fact, now).ok()?;
    }
    Some(run)
}

/// Whether a run goes on with an event of a step.
fn moves(run: &Run, job: &Job, ordinal: u32) -> Moves {
    let goes_on = job.spec.step.as_ref().is_some_and(|step| {
        run.visits.iter().any(|visit| visit.cause == Cause::After(step.visit, ordinal))
            || run.joins_later(step.visit)
    });
    if goes_on { Moves::ItsRun } else { Moves::Nothing }
}

/// The job has failed after all: its run does not go on with its events.
fn moves_nothing(consequence: &mut Consequence) {
    if let Command::Event(EventCommand::Settle { moves_its_run, .. }) = &mut consequence.command {
        *moves_its_run = false;
    }
}

/// An event that a job emitted. It carries on what was carried to the job, unless it says otherwise.
fn event_of(
    job: &Job,
    run: Option<&Run>,
    emitted: &Emitted,
    ordinal: u32,
    carried: Option<&Json>,
    also: &mut Also,
) -> NewEvent {
    let id = derived::event_id(&job.id, ordinal);
    let payload = also.bodies.keep(id, BodyName::Payload, emitted.payload.clone());
    NewEvent {
        source: job.spec.executor.clone(),
        dedupe_key: emitted.dedupe_key.clone(),
        circle: job.spec.circle.clone(),
        depth: run.map_or(0, |run| run.begun.depth.saturating_add(1)),
        max_depth: run.and_then(|run| run.begun.max_depth),
        correlation: emitted.correlation.as_ref().or(carried).cloned(),
        ..NewEvent::new(&emitted.kind, payload, Origin::Emitted { job_id: job.id.clone(), ordinal })
    }
}

fn is_listened_to(settle: &EventCommand) -> bool {
    matches!(settle, EventCommand::Settle { routes, .. } if !routes.is_empty())
}
