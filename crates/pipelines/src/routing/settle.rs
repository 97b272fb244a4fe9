//! What an event starts: every pipeline that listens to its type says what it does with it, and why not if it does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::event::is_between_turns;
use domain::event::{Disposition, EventCommand, NewEvent, Origin, Route, RouteAnswer};
use domain::limits::{MAX_NOTE_BYTES, cut};
use domain::planted::{Bug, planted};
use domain::run::{NewRun, Readiness, Run, RunCommand};
use domain::{BodyName, EventId, Record, RecordKind, RunId, Timestamp};
use engine::{EngineError, Executors};
use serde_json::{Map, Value, json};
use store::Store;

use super::given::Given;
use super::prepare::Preparing;
use super::{FollowUps, Router, derived};
use crate::{Pipeline, Roots, Routes, Signal};

/// Whether the run of the job that emitted an event goes on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    Nothing,
    ItsRun,
}

/// Events that are settled together, in one commit.
pub(crate) struct Settling<'a> {
    store: &'a dyn Store,
    executors: &'a Executors,
    routes: Arc<Routes>,
    now: Timestamp,
    /// What this commit has started under a key already.
    under_key: BTreeMap<(String, String), RunId>,
    /// Steps that it has begun so far.
    begun: u32,
    /// The node that has the files of the step that emitted them.
    pub(crate) files_at: Option<String>,
    /// Consequences that the commit has room for.
    pub(crate) room: usize,
    /// What else belongs to the commit.
    pub(crate) also: FollowUps,
}

impl Router {
    pub(crate) fn settling<'a>(&'a self, store: &'a dyn Store, now: Timestamp) -> Settling<'a> {
        Settling {
            store,
            executors: &self.executors,
            routes: self.routes(),
            now,
            under_key: BTreeMap::new(),
            begun: 0,
            files_at: None,
            room: self.max_following,
            also: FollowUps::default(),
        }
    }

    /// The command that settles an event that cannot be routed: everyone who listens is told why.
    pub(super) fn decline(&self, event: &NewEvent, why: &str) -> EventCommand {
        let told = cut(why, MAX_NOTE_BYTES);
        let route = |pipeline: Arc<Pipeline>| Route {
            pipeline: pipeline.name.clone(),
            answer: RouteAnswer::Not(Disposition::Invalid(told.to_owned())),
        };
        let routes = listening(&self.routes(), event).into_iter().map(route).collect();
        EventCommand::Settle { routes, moves_its_run: false }
    }
}

impl Settling<'_> {
    /// So many consequences are in the commit already.
    pub(crate) fn reserve(&mut self, consequences: usize) {
        self.room = self.room.saturating_sub(consequences);
    }

    /// Whether the commit has room for settling this event: all that it may start begins together.
    pub(crate) fn has_room_for(&self, event: &NewEvent) -> bool {
        listening(&self.routes, event).len() < self.room
    }

    /// Whether any pipeline listens to this event.
    pub(crate) fn is_listened_to(&self, event: &NewEvent) -> bool {
        !listening(&self.routes, event).is_empty()
    }

    /// The command that settles an event; what it starts is kept for the order.
    pub(crate) async fn settle(
        &mut self,
        id: &EventId,
        event: &NewEvent,
        payload: &[u8],
        moves: Moves,
    ) -> Result<EventCommand, EngineError> {
        let listening = listening(&self.routes, event);
        // All that may start comes before the first steps of any.
        self.reserve(listening.len() + 1);
        let mut routes = Vec::with_capacity(listening.len());
        // Read once, and only if somebody listens.
        let read = if listening.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(payload) };
        for pipeline in listening {
            let answer = match &read {
                Ok(Value::Object(payload)) => self.ask(id, event, payload, &pipeline).await?,
                Ok(_) => RouteAnswer::Not(Disposition::Invalid("the payload is no object".to_owned())),
                // A number that no f64 holds, for one.
                Err(error) => {
                    RouteAnswer::Not(Disposition::Invalid(format!("the payload cannot be read: {error}")))
                }
            };
            routes.push(Route { pipeline: pipeline.name.clone(), answer });
        }
        Ok(EventCommand::Settle { routes, moves_its_run: moves == Moves::ItsRun })
    }

    async fn ask(
        &mut self,
        id: &EventId,
        event: &NewEvent,
        payload: &Map<String, Value>,
        pipeline: &Pipeline,
    ) -> Result<RouteAnswer, EngineError> {
        let not = |disposition| Ok(RouteAnswer::Not(disposition));
        let asked_by_name = matches!(event.origin, Origin::Asked { .. });
        if event.is_too_deep() {
            return not(Disposition::DepthExceeded(event.depth));
        }
        if !asked_by_name && pipeline.from_plugin.is_some() && pipeline.from_plugin != event.source {
            return not(Disposition::OtherSource);
        }
        if let Some(condition) = pipeline.condition.as_ref().filter(|_| !asked_by_name) {
            let (payload, empty) = (Value::Object(payload.clone()), json!({}));
            match condition.evaluate(&Roots { payload: &payload, context: &empty, config: &empty }) {
                Ok(true) => {}
                Ok(false) => return not(Disposition::PredicateFalse),
                Err(error) => {
                    let told = cut(&error.to_string(), MAX_NOTE_BYTES).to_owned();
                    return not(Disposition::PredicateInvalid(told));
                }
            }
        }
        let run_id = match &event.dedupe_key {
            Some(key) if !planted(Bug::DedupeForgotten) => match self.under_key(id, pipeline, key).await? {
                Ok(run_id) => run_id,
                Err(of) => return not(Disposition::DuplicateOf(of)),
            },
            Some(_) | None => derived::run_id_of(id, &pipeline.name),
        };
        self.start(id, event, payload, pipeline, run_id).await
    }

    /// The run to start under a key, or the one that is there.
    async fn under_key(
        &mut self,
        id: &EventId,
        pipeline: &Pipeline,
        key: &str,
    ) -> Result<Result<RunId, RunId>, EngineError> {
        let place = (pipeline.name.clone(), key.to_owned());
        if let Some(started) = self.under_key.get(&place) {
            return Ok(Err(started.clone()));
        }
        let newest = self.store.newest_record(RecordKind::Run, &pipeline.name, key).await?;
        let newest = newest.as_deref().and_then(Record::as_run);
        if let Some(run) =
            newest.filter(|run| run.stands_for_its_key(pipeline.dedupe_window_seconds, self.now))
        {
            return Ok(Err(run.id.clone()));
        }
        let run_id = if planted(Bug::RunNamedAfterItsEvent) {
            derived::run_id_of(id, &pipeline.name)
        } else {
            derived::run_id_under_key(&pipeline.name, key, newest.map(|run| &run.id))
        };
        self.under_key.insert(place, run_id.clone());
        Ok(Ok(run_id))
    }

    async fn start(
        &mut self,
        id: &EventId,
        event: &NewEvent,
        payload: &Map<String, Value>,
        pipeline: &Pipeline,
        run_id: RunId,
    ) -> Result<RouteAnswer, EngineError> {
        let given = Given::of_event(id, event, payload.clone(), pipeline.carry, self.now);
        let plan = self.also.keep(run_id.clone(), BodyName::Plan, pipeline.plan.to_json());
        let input = self.also.keep(run_id.clone(), BodyName::Input, given.to_json());
        let run = NewRun {
            pipeline: pipeline.name.clone(),
            version: pipeline.version.clone(),
            shape: pipeline.shape.clone(),
            plan,
            input,
            event_id: id.clone(),
            parent: None,
            circle: event.circle.clone(),
            depth: event.depth,
            max_depth: event.chain_limit(pipeline.max_depth),
            dedupe_key: event.dedupe_key.clone(),
            correlation: event.correlation.clone(),
        };
        if self.room > 0 {
            self.begin(&run_id, &run, event, pipeline, given).await?;
        }
        Ok(RouteAnswer::Start { run_id, run: Box::new(run) })
    }

    /// Prepares the first steps of a run, if the commit has room for them. A run whose first steps wait is advanced by whoever advances runs.
    async fn begin(
        &mut self,
        run_id: &RunId,
        run: &NewRun,
        event: &NewEvent,
        pipeline: &Pipeline,
        given: Given,
    ) -> Result<(), EngineError> {
        let begun = Run::new(run_id.clone(), run, self.now);
        let mut preparing =
            Preparing::new(self.store, self.executors, begun, pipeline.plan.clone(), self.now);
        preparing.input = Some(given);
        preparing.begun = self.begun;
        preparing.files_at = self.files_at.clone().filter(|_| is_between_turns(&event.kind));
        let (prepared, bodies) = preparing.all().await?;
        let steps = prepared.iter().filter(|one| matches!(one.readiness, Readiness::Job { .. })).count();
        // Without the run that the rules then start there is nothing to go on with: one bug in two places.
        if prepared.is_empty() || steps + 1 > self.room || planted(Bug::RunNotStarted) {
            return Ok(());
        }
        self.reserve(steps + 1);
        self.begun = self.begun.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        self.also.bodies.extend(bodies);
        self.also.then(run_id.clone(), RunCommand::Advance(prepared));
        Ok(())
    }
}

/// Those who listen to an event.
fn listening(routes: &Routes, event: &NewEvent) -> Vec<Arc<Pipeline>> {
    match &event.origin {
        Origin::Asked { pipeline, .. } => routes.find(pipeline).cloned().into_iter().collect(),
        Origin::JobEnded { .. } => {
            match Signal::ALL.into_iter().find(|signal| signal.as_str() == event.kind) {
                Some(signal) => routes.on_hook(signal).to_vec(),
                None => Vec::new(),
            }
        }
        Origin::Published { .. } | Origin::Webhook { .. } | Origin::Emitted { .. } => {
            routes.on(&event.kind).to_vec()
        }
    }
}
