//! What comes with a result, in its commit: the events that it emitted, settled, and the next steps of its run. The result is of an attempt,
//! or of work outside that was asked about.

use domain::event::{EventCommand, NewEvent, Origin, Settler};
use domain::job::{Job, JobCommand};
use domain::limit::{LimitOwner, LimitValue, NamedLimit};
use domain::planted::{Bug, planted};
use domain::run::{Cause, Left, Run, RunCommand, StepEnd};
use domain::{BodyName, BodyRef, Command, Consequence, Decision, Json, RecordId, Timestamp};
use engine::{Emitted, EngineError, Failure, Order, Stage};
use store::Store;

use super::given::correlation_in;
use super::prepare::{Ending, Preparing, broken, context_of};
use super::settle::Moves;
use super::{FollowUps, Router, WorkResult, derived};
use crate::Plan;

/// A chain of events that is longer than it may be.
struct TooDeep {
    most: u32,
    pipeline: String,
}

impl Router {
    /// Adds to the order that brings a job its result what follows from it. Done again after a crash, it is the same.
    ///
    /// Too many events may have led to one of those that it emitted: that one is written down and starts nothing, and the job has failed.
    pub(super) async fn result_followed(
        &self,
        store: &dyn Store,
        job: &Job,
        finished: &WorkResult,
        now: Timestamp,
        order: &mut Order,
    ) -> Result<Option<Failure>, EngineError> {
        let is_last = finished.stage == Stage::Last;
        let emitted = if job.spec.is_private() {
            note_unpublished(order, finished.emitted.len());
            &[][..]
        } else {
            &finished.emitted[..]
        };
        if emitted.is_empty() && (job.spec.step.is_none() || !is_last) {
            return Ok(None);
        }
        let run = self.run_of(store, job).await?;
        let after = run.clone().filter(|_| is_last).and_then(|run| after_step(run, job, finished, now));
        let mut settling = self.settling(store, now);
        settling.files_at = files_at(after.as_ref(), job);
        settling.reserve(emitted.len());
        let mut too_deep = None;
        let mut waits = false;
        let carried = self.carried_to(store, job).await?;
        for (emitted, ordinal) in emitted.iter().zip(0..) {
            let id = match &finished.stage {
                Stage::Last => derived::event_id(&job.id, ordinal),
                Stage::Arrived(operation) => derived::arrived_event_id(&job.id, operation, ordinal),
            };
            let payload = settling.also.keep(id.clone(), BodyName::Payload, emitted.payload.clone());
            let mut event = event_of(job, run.as_ref(), emitted, ordinal, carried.as_ref(), payload);
            event.settled_by = self.settler_of(&event.kind);
            let is_claimed = event.settled_by == Settler::Claimants;
            if !is_claimed && event.is_too_deep() && settling.is_listened_to(&event) {
                too_deep = Some(TooDeep::of(&event, run.as_ref()));
            }
            // Those that one started first come first: once one waits, all after it wait.
            waits |= !is_claimed && !settling.has_room_for(&event);
            if is_claimed || waits {
                // It is settled in a commit of its own, by whoever claims it or by the router.
                if waits && planted(Bug::WaitingEventForgotten) {
                    continue;
                }
                let publish = EventCommand::Publish(Box::new(event));
                order.also.push(Consequence { record: id.into(), command: publish.into() });
                continue;
            }
            let moves = after.as_ref().map_or(Moves::Nothing, |run| moves(run, job, ordinal));
            let settle = settling.settle(&id, &event, &emitted.payload, moves).await?;
            // First the events themselves; what they start was kept before them.
            let publish = EventCommand::Publish(Box::new(event));
            order.also.push(Consequence { record: id.clone().into(), command: publish.into() });
            order.also.push(Consequence { record: id.into(), command: settle.into() });
        }
        if too_deep.is_some() {
            order.also.iter_mut().for_each(moves_nothing);
        } else if let Some(run) = after {
            let also = self.next_steps(store, job, run, finished, settling.room, now).await?;
            settling.also.extend(also);
        }
        settling.also.into_order(order);
        Ok(too_deep.map(|chain| chain.failure()))
    }

    /// What is carried with everything, as it came to a job.
    async fn carried_to(&self, store: &dyn Store, job: &Job) -> Result<Option<Json>, EngineError> {
        if job.spec.step.is_none() {
            return Ok(None);
        }
        Ok(correlation_in(&context_of(store, job).await?))
    }

    pub(super) async fn run_of(&self, store: &dyn Store, job: &Job) -> Result<Option<Run>, EngineError> {
        let Some(step) = &job.spec.step else { return Ok(None) };
        let loaded = store.load(&RecordId::from(step.run_id.clone())).await?;
        Ok(loaded.and_then(|loaded| loaded.record.as_run().cloned()))
    }

    /// What a run does after a step of it, which it knows of already.
    async fn next_steps(
        &self,
        store: &dyn Store,
        job: &Job,
        run: Run,
        finished: &WorkResult,
        room: usize,
        now: Timestamp,
    ) -> Result<FollowUps, EngineError> {
        let mut also = FollowUps::default();
        let plan = self.plan_of(store, &run).await?;
        let run_id = run.id.clone();
        let (result, emitted) = (finished.data.clone(), finished.emitted.clone());
        let ending = Ending { job_id: job.id.clone(), result, emitted };
        let mut preparing = Preparing::new(store, &self.executors, run, plan, now);
        (preparing.ending, preparing.room) = (Some(ending), room);
        let (prepared, bodies) = preparing.all().await?;
        if !prepared.is_empty() {
            also.then(run_id, RunCommand::Advance(prepared));
        }
        also.bodies = bodies;
        Ok(also)
    }

    /// What the steps of a run do.
    pub(super) async fn plan_of(&self, store: &dyn Store, run: &Run) -> Result<Plan, EngineError> {
        let bytes = store.body(&run.id.clone().into(), run.begun.plan).await?;
        let bytes = bytes.ok_or_else(|| broken(run, "its plan is gone"))?;
        Plan::parse(&bytes).map_err(|error| broken(run, error))
    }
}

/// The run of a job once it knows that the job is completed; none if that changes nothing.
fn after_step(mut run: Run, job: &Job, finished: &WorkResult, now: Timestamp) -> Option<Run> {
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

/// The node that has what a step leaves to what its events start.
pub(super) fn files_at(after: Option<&Run>, job: &Job) -> Option<String> {
    let step = job.spec.step.as_ref()?;
    let left = after.and_then(|run| run.files_after(step.visit).into_iter().next());
    left.map(|layer| layer.left.owner.node().to_owned()).or_else(|| step.node.clone())
}

/// Whether a run goes on with an event of a step.
pub(super) fn moves(run: &Run, job: &Job, ordinal: u32) -> Moves {
    let goes_on = job.spec.step.as_ref().is_some_and(|step| {
        run.visits.iter().any(|visit| visit.cause == Cause::After(step.visit, ordinal))
            || run.joins_later(step.visit)
    });
    if goes_on { Moves::ItsRun } else { Moves::Nothing }
}

/// Everybody in the circle of a private job reads its events: what the job emitted is not published, and its history says so.
fn note_unpublished(order: &mut Order, count: usize) {
    if let (1.., Command::Job(JobCommand::Report(report))) = (count, &mut order.command) {
        let note = format!(
            "events not published: {count} (the job is private, and everybody in its circle reads events)"
        );
        report.details.note.get_or_insert(note);
    }
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
    payload: BodyRef,
) -> NewEvent {
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

impl TooDeep {
    fn of(event: &NewEvent, run: Option<&Run>) -> Self {
        let pipeline = run.map_or_else(String::new, |run| run.begun.pipeline.clone());
        Self { most: event.max_depth.unwrap_or_default(), pipeline }
    }

    /// Why the job has failed.
    fn failure(&self) -> Failure {
        let Self { most, pipeline } = self;
        let key = format!("max_depth of {pipeline}, or of the pipeline that began the chain, in its file");
        let told = format!("too many events led to what it emitted: max_depth = {most}; change {key}");
        let limit = NamedLimit {
            name: "max_depth".into(),
            value: LimitValue::Count(u64::from(*most)),
            owner: LimitOwner::Pipeline,
            key,
        };
        Failure::permanent("depth_exceeded", told).limited_by(limit)
    }
}
