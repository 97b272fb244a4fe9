//! What each step of a run that waits is given: the event that led to it, as its condition, its templates and its baggage make it.
//!
//! What was prepared is only a proposal: the rules take it if the visit still waits (`domain::run`).

mod ends;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use domain::job::{Job, JobSpec, NewJob};
use domain::limits::{MAX_LABEL_BYTES, cut};
use domain::run::{
    Cause, MAX_PREPARED, NodeKind, Prepared, Readiness, Run, RunCommand, StepEnd, StepLink, Visit, VisitIndex,
};
use domain::{BodyName, Decision, JobId, Json, RecordId, Timestamp};
use engine::{Bodies, Emitted, EngineError, Executors};
use serde_json::{Map, Value, json};
use store::Store;

use super::derived;
use super::failed_tool::tool_failed;
use super::given::{Given, SeenEvent, carry_correlation, told};
use crate::{CORRELATION, Detail, FailureTold, Plan, Roots};

/// Prepares what waits in one run.
pub(crate) struct Preparing<'a> {
    store: &'a dyn Store,
    executors: &'a Executors,
    run: Run,
    plan: Plan,
    now: Timestamp,
    /// What the run began with, if it is at hand.
    pub(super) input: Option<Given>,
    /// The result of a job that is just ending, which the store does not have yet.
    pub(super) ending: Option<Ending>,
    bodies: Bodies,
    /// Steps that this commit begins before the next one.
    pub(super) begun: u32,
    /// Consequences that the commit has room for.
    pub(super) room: usize,
    /// The node that has the files of the turn that asked for this run.
    pub(super) files_at: Option<String>,
    /// What jobs that are over leave to what follows them: every event of one may be followed, and all of them are read once.
    outputs: Mutex<BTreeMap<VisitIndex, Outputs>>,
}

/// What a visit leaves to what follows it.
type Outputs = Arc<[Given]>;

/// A job as its end leaves it.
pub(crate) struct Ending {
    pub(crate) job_id: JobId,
    pub(crate) result: Option<Vec<u8>>,
    pub(crate) emitted: Vec<Emitted>,
}

/// Why a step cannot be given anything: its failure.
struct Unprepared(String);

/// What an event says.
#[derive(Default)]
struct Said {
    kind: String,
    dedupe_key: Option<String>,
    payload: Map<String, Value>,
    correlation: Option<Json>,
}

type Later<'b, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + Send + 'b>>;

impl<'a> Preparing<'a> {
    pub(crate) fn new(
        store: &'a dyn Store,
        executors: &'a Executors,
        run: Run,
        plan: Plan,
        now: Timestamp,
    ) -> Self {
        Self {
            store,
            executors,
            run,
            plan,
            now,
            input: None,
            ending: None,
            bodies: Bodies::default(),
            begun: 0,
            room: usize::MAX,
            files_at: None,
            outputs: Mutex::default(),
        }
    }

    /// Prepares what waits, and what waits then, up to a bound.
    pub(crate) async fn all(mut self) -> Result<(Vec<Prepared>, Bodies), EngineError> {
        let mut all = Vec::new();
        if self.files_at.is_none() && self.run.waiting().next().is_some() {
            self.files_at = self.node_of_first().await?;
        }
        while all.len() < self.room.min(MAX_PREPARED) {
            let next = self.run.waiting().next();
            let Some(visit) = next else { break };
            let readiness = match self.prepare(visit).await? {
                Ok(readiness) => readiness,
                Err(Unprepared(code)) => Readiness::Fail { code: cut(&code, MAX_LABEL_BYTES).to_owned() },
            };
            let prepared = Prepared { visit, origin: self.run.origin(visit), readiness };
            self.advance(&prepared)?;
            all.push(prepared);
        }
        Ok((all, self.bodies))
    }

    /// The run as it will be.
    fn advance(&mut self, prepared: &Prepared) -> Result<(), EngineError> {
        let command = RunCommand::Advance(vec![prepared.clone()]);
        match domain::run::decide(&self.run, &command, self.now) {
            Decision::Facts { facts, .. } => {
                for fact in facts {
                    domain::run::apply(&mut self.run, &fact, self.now)
                        .map_err(|misfold| broken(&self.run, misfold))?;
                }
                Ok(())
            }
            Decision::Nothing => Err(broken(&self.run, "what waits cannot be begun")),
            Decision::Refused { refusal, .. } => Err(refusal.into()),
        }
    }

    async fn prepare(&mut self, at: VisitIndex) -> Result<Result<Readiness, Unprepared>, EngineError> {
        let visit = self.visit(at)?.clone();
        let detail = self.plan.detail(visit.node).cloned().unwrap_or_default();
        let given = self.given(at).await?;
        let empty = json!({});
        let (payload, context) =
            (Value::Object(given.event.payload.clone()), Value::Object(given.context.clone()));
        let roots = Roots { payload: &payload, context: &context, config: &empty };
        match detail.condition.as_ref().map(|condition| condition.evaluate(&roots)) {
            None | Some(Ok(true)) => {}
            Some(Ok(false)) => return Ok(Ok(Readiness::Skip)),
            Some(Err(error)) => return Ok(Err(Unprepared(format!("predicate_invalid: {error}")))),
        }
        if self.run.is_group(at) {
            return Ok(Ok(Readiness::Enter));
        }
        let carried = match detail.baggage.as_ref().map(|baggage| baggage.carry(&given.context, &roots)) {
            None => given.context,
            Some(Ok(carried)) => carried,
            Some(Err(error)) => return Ok(Err(Unprepared(format!("baggage_invalid: {error}")))),
        };
        let mut event = given.event;
        let circle = self.run.begun.circle.as_deref();
        let executor = detail.executor.as_deref().and_then(|name| self.executors.find(circle, name));
        let takes_events = executor.is_some_and(|executor| executor.specialist.traits().takes_events);
        let runs_its_input = executor.is_some_and(|executor| executor.specialist.traits().runs_its_input);
        // Whoever takes no event is given what the file says, and would not know what to do with the rest of a payload.
        if runs_its_input || (detail.with.is_some() && !takes_events) {
            event.payload.clear();
        }
        match detail.with.as_ref().map(|with| with.render(&roots)) {
            None => {}
            Some(Ok(with)) => event.payload.extend(with),
            Some(Err(error)) => return Ok(Err(Unprepared(format!("with_invalid: {error}")))),
        }
        Ok(self.step(at, &visit, &detail, Given { event, context: carried }))
    }

    fn step(
        &mut self,
        at: VisitIndex,
        visit: &Visit,
        detail: &Detail,
        given: Given,
    ) -> Result<Readiness, Unprepared> {
        let begun = &self.run.begun;
        let name = detail.executor.as_deref().unwrap_or_default();
        let executor = self.executors.find(begun.circle.as_deref(), name);
        let usual = executor.map_or(Executors::DEFAULT_RETRY, |executor| executor.retry);
        let step = self.run.node(visit).map(|node| node.id.clone()).unwrap_or_default();
        let mut spec = JobSpec::plain(Some(name), detail.retry.map_or(usual, |retry| retry.policy(usual)));
        spec.retry_requested = detail.retry.is_some();
        let title = format!("{}: {step}", begun.pipeline);
        cut(&title, domain::limits::MAX_TITLE_BYTES).clone_into(&mut spec.title);
        spec.lane =
            executor.and_then(|executor| executor.specialist.lane()).map(std::borrow::Cow::into_owned);
        spec.timeout_seconds = detail.timeout_seconds;
        spec.circle.clone_from(&begun.circle);
        spec.source_kind = Some("pipeline".to_owned());
        spec.source_id = Some(self.run.id.as_str().to_owned());
        spec.step = Some(Box::new(StepLink {
            run_id: self.run.id.clone(),
            visit: at,
            pipeline: begun.pipeline.clone(),
            step,
            node: executor
                .is_some_and(|executor| executor.specialist.traits().needs_its_node)
                .then(|| self.node_for(at))
                .flatten(),
            ordinal: self.begun,
        }));
        self.begun = self.begun.saturating_add(1);
        let input = if executor.is_some_and(|executor| executor.specialist.traits().takes_events) {
            let context = self.context_of_plugin(&spec, &given);
            json!({ "command": "handle", "event": given.event, "context": context }).to_string().into_bytes()
        } else {
            serde_json::to_vec(&given.event.payload).expect("a payload has only texts as keys")
        };
        let job_id = derived::job_id(&self.run.id, &self.run.begun.event_id, at);
        let record = RecordId::from(job_id.clone());
        let mut bodies = vec![self.bodies.keep(record.clone(), BodyName::Input, input)];
        if !given.context.is_empty() {
            let context = serde_json::to_vec(&given.context).expect("a context has only texts as keys");
            bodies.push(self.bodies.keep(record, BodyName::Context, context));
        }
        let job = NewJob { spec, due_at: None, bodies };
        match job.check() {
            Ok(()) => Ok(Readiness::Job { job_id, job: Box::new(job) }),
            Err(refusal) => Err(Unprepared(format!("step_invalid: {refusal}"))),
        }
    }

    /// The node that has all that a visit begins with. Where several have some of it none can do it, and the step says so.
    fn node_for(&self, at: VisitIndex) -> Option<String> {
        let layers = self.run.files_for(at);
        let Some(first) = layers.first() else { return self.files_at.clone() };
        let first = first.left.owner.node();
        layers.iter().all(|layer| layer.left.owner.node() == first).then(|| first.to_owned())
    }

    /// The node where the run began, if it was bound to one because of its files.
    async fn node_of_first(&self) -> Result<Option<String>, EngineError> {
        let began = |visit: &&Visit| visit.cause == Cause::Start;
        let Some(id) = self.run.visits.iter().find(began).and_then(Visit::job_id) else { return Ok(None) };
        let loaded = self.store.load(&RecordId::from(id.clone())).await?;
        let job = loaded.as_ref().and_then(|loaded| loaded.record.as_job());
        Ok(job.and_then(|job| job.spec.step.as_ref()?.node.clone()))
    }

    /// The context as plugins know it: what was carried, and what the host says of the run.
    fn context_of_plugin(&self, spec: &JobSpec, given: &Given) -> Map<String, Value> {
        let begun = &self.run.begun;
        let mut context = given.context.clone();
        let run_id = self.run.id.as_str();
        let step = spec.step.as_ref().map_or("", |step| step.step.as_str());
        let (depth, most) = (begun.depth + 1, begun.max_depth.unwrap_or_default());
        for (key, value) in [
            ("ductile_pipeline", json!(begun.pipeline)),
            ("ductile_step_id", json!(step)),
            ("ductile_pipeline_instance_id", json!(run_id)),
            ("ductile_route_depth", json!(depth)),
            ("ductile_route_max_depth", json!(most)),
            (
                "ductile",
                json!({ "pipeline_instance_id": run_id, "route_depth": depth, "route_max_depth": most }),
            ),
        ] {
            context.insert(key.to_owned(), value);
        }
        context
    }

    fn visit(&self, at: VisitIndex) -> Result<&Visit, EngineError> {
        self.run.visit(at).ok_or_else(|| broken(&self.run, "a visit names one that is not there"))
    }

    /// What a visit is given, by what led to it.
    fn given(&self, at: VisitIndex) -> Later<'_, Given> {
        Box::pin(async move {
            match self.visit(at)?.cause {
                Cause::Start => self.beginning().await,
                Cause::Entered(group) => self.given(group).await,
                Cause::After(before, ordinal) => {
                    let outputs = self.outputs(before).await?;
                    let output = outputs.get(ordinal as usize).or(outputs.first()).cloned();
                    output.ok_or_else(|| broken(&self.run, "a visit is over and left nothing"))
                }
                Cause::Failure(before) => {
                    let failed = self.failure(before).await?;
                    let told = self.plan.detail(self.visit(at)?.node).map(|detail| detail.failure_told);
                    Ok(match told.unwrap_or_default() {
                        FailureTold::AsStep => failed,
                        FailureTold::AsToolResult => tool_failed(failed, self.now),
                    })
                }
            }
        })
    }

    async fn beginning(&self) -> Result<Given, EngineError> {
        if let Some(input) = &self.input {
            return Ok(input.clone());
        }
        let id = RecordId::from(self.run.id.clone());
        let bytes = self.store.body(&id, self.run.begun.input).await?;
        let bytes = bytes.ok_or_else(|| broken(&self.run, "its input is gone"))?;
        serde_json::from_slice(&bytes).map_err(|error| broken(&self.run, error))
    }

    /// What a visit that is over leaves to what follows it: one for each of its events, and one if there were none.
    fn outputs(&self, at: VisitIndex) -> Later<'_, Outputs> {
        Box::pin(async move {
            let visit = self.visit(at)?;
            if visit.end() == Some(&StepEnd::Skipped) {
                return Ok([self.given(at).await?].into());
            }
            match self.run.node(visit).map(|node| &node.kind) {
                Some(NodeKind::Group { .. }) => Ok([self.joined(at).await?].into()),
                Some(NodeKind::Step) | None => self.outputs_of_job_once(at).await,
            }
        })
    }

    async fn outputs_of_job_once(&self, at: VisitIndex) -> Result<Outputs, EngineError> {
        let known = || self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outputs) = known().get(&at) {
            return Ok(outputs.clone());
        }
        let outputs: Outputs = self.outputs_of_job(at).await?.into();
        known().insert(at, outputs.clone());
        Ok(outputs)
    }

    async fn outputs_of_job(&self, at: VisitIndex) -> Result<Vec<Given>, EngineError> {
        let (job, result) = self.job_of(at).await?;
        let context = match job.as_deref().filter(|job| job.purged_at.is_none()) {
            Some(job) => context_of(self.store, job).await?,
            // Gone with the job: what was carried to it is carried on.
            None => self.given(at).await?.context,
        };
        let at_time = job.as_ref().and_then(|job| job.completed_at).unwrap_or(self.now);
        let source = job.as_ref().and_then(|job| job.spec.executor.clone());
        let result: Value = result.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let emitted = self.visit(at)?.end().map_or(0, |end| match end {
            StepEnd::Completed { emitted, .. } => *emitted,
            StepEnd::Skipped | StepEnd::Failed { .. } | StepEnd::Cancelled => 0,
        });
        if emitted == 0 {
            let payload = if let Value::Object(payload) = result {
                payload
            } else {
                Map::from_iter([("result".to_owned(), result)])
            };
            let event = SeenEvent { source, ..told("ductile.step.succeeded", payload, at_time) };
            return Ok(vec![Given { event, context }]);
        }
        let job_id = self.visit(at)?.job_id().cloned();
        let listed = result.get("events").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut outputs = Vec::new();
        for ordinal in 0..emitted {
            let event_id = job_id.as_ref().map(|job_id| derived::event_id(job_id, ordinal));
            let listed = listed.get(ordinal as usize).cloned().unwrap_or_default();
            let text = |key: &str| listed.get(key).and_then(Value::as_str).map(str::to_owned);
            let said = match listed.get("payload").and_then(Value::as_object) {
                Some(payload) => Said {
                    kind: text("type").unwrap_or_default(),
                    dedupe_key: text("dedupe_key"),
                    payload: payload.clone(),
                    correlation: listed.get(CORRELATION).and_then(|own| Json::parse(&own.to_string()).ok()),
                },
                None => self.written_down(job_id.as_ref(), ordinal).await?.unwrap_or_default(),
            };
            let seen = SeenEvent {
                dedupe_key: said.dedupe_key,
                source: source.clone(),
                event_id: event_id.map(|id| id.as_str().to_owned()),
                ..told(&said.kind, said.payload, at_time)
            };
            let mut context = context.clone();
            carry_correlation(&mut context, said.correlation.as_ref());
            outputs.push(Given { event: seen, context });
        }
        Ok(outputs)
    }

    /// What an event says that a result does not have whole: all of them together are too large, or somebody has purged the
    /// job, or it was kept long enough while its run went on. The event has them; one that is gone too says nothing, and the run goes on.
    async fn written_down(&self, job_id: Option<&JobId>, ordinal: u32) -> Result<Option<Said>, EngineError> {
        let Some(job_id) = job_id else { return Ok(None) };
        if let Some(ending) = self.ending.as_ref().filter(|ending| ending.job_id == *job_id)
            && let Some(emitted) = ending.emitted.get(ordinal as usize)
        {
            let payload =
                serde_json::from_slice(&emitted.payload).map_err(|error| broken(&self.run, error))?;
            let (kind, dedupe_key) = (emitted.kind.clone(), emitted.dedupe_key.clone());
            return Ok(Some(Said { kind, dedupe_key, payload, correlation: emitted.correlation.clone() }));
        }
        let id = RecordId::from(derived::event_id(job_id, ordinal));
        let loaded = self.store.load(&id).await?;
        let Some(event) = loaded.as_ref().and_then(|loaded| loaded.record.as_event()) else {
            return Ok(None);
        };
        let payload = match self.store.body(&id, event.said.payload).await? {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| broken(&self.run, error))?,
            None => Map::new(),
        };
        let (kind, dedupe_key) = (event.said.kind.clone(), event.said.dedupe_key.clone());
        Ok(Some(Said { kind, dedupe_key, payload, correlation: event.said.correlation.clone() }))
    }

    /// The job of a visit, and its result.
    async fn job_of(&self, at: VisitIndex) -> Result<(Option<Box<Job>>, Option<Vec<u8>>), EngineError> {
        let Some(job_id) = self.visit(at)?.job_id() else { return Ok((None, None)) };
        let id = RecordId::from(job_id.clone());
        let loaded = self.store.load(&id).await?;
        let job = loaded.and_then(|loaded| loaded.record.as_job().cloned()).map(Box::new);
        if let Some(ending) = self.ending.as_ref().filter(|ending| ending.job_id == *job_id) {
            return Ok((job, ending.result.clone()));
        }
        let result = match job.as_ref().and_then(|job| job.result.data) {
            Some(body) => self.store.body(&id, body).await?,
            None => None,
        };
        Ok((job, result))
    }
}

/// What was carried to a job.
pub(super) async fn context_of(store: &dyn Store, job: &Job) -> Result<Map<String, Value>, EngineError> {
    let Some(body) = job.bodies.iter().find(|body| body.name == BodyName::Context) else {
        return Ok(Map::new());
    };
    let bytes = store.body(&job.id.clone().into(), *body).await?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

pub(super) fn broken(run: &Run, what: impl std::fmt::Display) -> EngineError {
    EngineError::Store(store::StoreError::Broken(format!("{}: {what}", run.id)))
}
