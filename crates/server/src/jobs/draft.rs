//! A new job from what its caller sent. The order of the checks is part of the contract.

use std::borrow::Cow;
use std::sync::Arc;

use api::{CreateJob, FieldError, Problem, ProblemCode};
use domain::job::{JobSpec, NewJob};
use domain::{BodyName, BodyRef, Json, RetryPolicy, Timestamp};
use engine::{Executors, SERIAL};
use serde_json::value::RawValue;
use store::{NewBody, body_ref};

use super::managed_execution::{Scope, managed_execution};
use crate::authorise;
use crate::clock_text;
use crate::deferred;
use crate::gate::Principal;
use crate::problem::{at_field, of_refusal};
use crate::render::{Bodies, DEFAULT_EXECUTION, RawObject};

const BACKENDS: [&str; 7] = ["claude-code", "opencode", "codex", "gemini", "antigravity", "pi", "mcp-http"];

/// Of the digest that names a lane.
const LANE_DIGITS: usize = 16;

/// A job that is fit to be accepted, and the bodies that come with it.
pub(crate) struct Draft {
    pub(crate) new: NewJob,
    pub(crate) bodies: Vec<NewBody>,
    /// The same bodies, for the answer.
    pub(crate) texts: Bodies,
    /// Set if a peer that works in its folder would do it instead; whether the executor would is not checked yet.
    pub(super) instead: Option<Instead>,
}

/// How a job is left to a peer, instead of a process that would be started for it and stay.
pub(super) struct Instead {
    /// What the peer runs on.
    pub(super) backend: String,
    lane: Option<String>,
    retry: RetryPolicy,
}

impl Draft {
    /// Leaves it to whoever works in its folder.
    pub(super) fn left_to_peers(mut self) -> Self {
        if let Some(Instead { lane, retry, .. }) = self.instead.take() {
            self.new.spec = JobSpec { executor: None, lane, retry, ..self.new.spec };
        }
        self
    }
}

/// Checks what was sent and puts the job together.
pub(crate) fn draft(
    principal: &Principal,
    executors: &Executors,
    mut create: CreateJob,
) -> Result<Draft, Problem> {
    check_first(principal, executors, &create)?;
    let deadline_at = time(&["body", "deadline_at"], create.deadline_at.as_deref())?;
    let expires_at = time(&["body", "expires_at"], create.expires_at.as_deref())?;
    time(&["body", "due_at"], create.due_at.as_deref())?;
    authorise::check_executor(principal, create.executor.as_deref())?;
    if let (None, Some(_), Some(_)) = (&create.executor, &create.lane, &create.label) {
        let told = "a job is pulled from its lane or by its label: leave one of them out";
        return Err(at_field("label", "invalid_value", told));
    }
    let circle = authorise::circle_of_new(principal, create.circle.take())?;

    let request_text = create.request.take();
    let mut request = match &request_text {
        Some(request) => RawObject::parse(request.as_str()).unwrap_or_default(),
        None => RawObject::default(),
    };
    let callers = request.remove("execution");
    let mut callers = object(callers.as_deref(), &["body", "request", "execution"])?;
    let managed = managed_execution(&create, &mut callers)?;
    if create.prompt.is_some() {
        callers.remove("prompt");
    }
    if !callers.is_empty() {
        request.set("execution", &callers);
    }
    let kept = Kept::of(&mut create, &request);
    let execution = match managed.text.as_str() {
        DEFAULT_EXECUTION => None,
        text => Some(Json::parse(text).map_err(|refusal| of_refusal(&refusal, ""))?),
    };
    let mut instead = None;
    if let (None, Some(scope)) = (&create.executor, managed.scope) {
        // A host that has no such backend leaves the job to whoever works in its folder.
        let backend = managed.backend.filter(|name| is_backend(executors, circle.as_deref(), name));
        let retry = retry(&create, circle.as_deref(), executors);
        instead = match scope {
            Scope::Persistent => {
                let lane = create.lane.clone();
                backend.clone().map(|backend| Instead { backend, lane, retry })
            }
            Scope::PerFire => None,
        };
        if let Some(instead) = &instead {
            create.lane.get_or_insert_with(|| {
                one_at_a_time(
                    &instead.backend,
                    circle.as_deref(),
                    managed.path.as_deref(),
                    create.profile.as_deref(),
                )
            });
        }
        create.executor = backend;
    }
    if create.lane.is_none() {
        create.lane = own_lane(executors, circle.as_deref(), create.executor.as_deref());
    }
    let spec = JobSpec {
        retry: retry(&create, circle.as_deref(), executors),
        retry_requested: create.retry.is_some(),
        created_by_peer_id: principal.peer_id.clone().or(create.created_by_peer_id.take()),
        deadline_at,
        expires_at,
        path: managed.path,
        circle,
        execution,
        ..spec(create)
    };
    if instead.is_none() {
        check_fit(executors, &spec)?;
    }
    let new = NewJob { spec, due_at: managed.due_at, bodies: kept.refs };
    Ok(Draft { new, bodies: kept.bodies, texts: kept.texts, instead })
}

/// Refuses what its executor would not do.
pub(super) fn check_fit(executors: &Executors, spec: &JobSpec) -> Result<(), Problem> {
    let executor = spec.executor.as_deref().and_then(|name| executors.find(spec.circle.as_deref(), name));
    match executor.and_then(|executor| executor.specialist.unfit(spec)) {
        Some(unfit) => Err(at_field(unfit.field, unfit.code, unfit.told)),
        None => Ok(()),
    }
}

/// What is refused before anyone is looked up.
pub(super) fn check_first(
    principal: &Principal,
    executors: &Executors,
    create: &CreateJob,
) -> Result<(), Problem> {
    let circle = principal.circle.as_deref().or(create.circle.as_deref());
    check_backend(create.backend.as_deref(), circle, executors)?;
    check_refused_fields(create)?;
    check_source(create.source_kind.as_deref())
}

/// What is taken over as it was sent.
fn spec(create: CreateJob) -> JobSpec {
    JobSpec {
        title: create.title,
        kind: create.kind,
        lane: create.lane,
        label: create.label,
        priority: create.priority.unwrap_or_default(),
        timeout_seconds: create.timeout_seconds,
        owner_peer_id: create.owner_peer_id,
        assigned_peer_id: create.assigned_peer_id,
        session_id: create.repowire_session_id,
        correlation_id: create.correlation_id,
        source_kind: create.source_kind,
        source_id: create.source_id,
        scope: create.scope,
        visibility: create.visibility,
        tags: create.tags,
        ..JobSpec::plain(create.executor.as_deref(), RetryPolicy::ONCE)
    }
}

#[derive(Default)]
struct Kept {
    refs: Vec<BodyRef>,
    bodies: Vec<NewBody>,
    texts: Bodies,
}

impl Kept {
    /// What is large or private goes beside the record.
    fn of(create: &mut CreateJob, request: &RawObject<'_>) -> Self {
        let mut kept = Self::default();
        if !request.is_empty() {
            kept.keep(BodyName::Request, request.to_text());
        }
        if let Some(prompt) = create.prompt.take() {
            kept.keep(BodyName::Prompt, prompt);
        }
        if let Some(input) = create.input.take() {
            kept.keep(BodyName::Input, input.get().to_owned());
        }
        if let Some(provenance) = create.provenance.take() {
            kept.keep(BodyName::Provenance, provenance.as_str().to_owned());
        }
        kept
    }

    fn keep(&mut self, name: BodyName, text: String) {
        let body = body_ref(name, text.as_bytes());
        self.refs.push(body);
        self.bodies.push(NewBody { body, bytes: Arc::from(text.as_bytes()) });
        self.texts.keep(body, Arc::from(text));
    }
}

/// The lane of jobs that one command does, one after the other. They wait in the queue: no lease, no time limit, nobody's place.
fn one_at_a_time(backend: &str, circle: Option<&str>, path: Option<&str>, profile: Option<&str>) -> String {
    let named = [circle, path, profile].map(Option::unwrap_or_default).join("\0");
    let digest = store::sha256(named.as_bytes()).to_string();
    format!("{SERIAL}{backend}:{}", &digest[..LANE_DIGITS])
}

/// The lane that an executor wants its jobs in, if it is not its name.
fn own_lane(executors: &Executors, circle: Option<&str>, executor: Option<&str>) -> Option<String> {
    let executor = executors.find(circle, executor?)?;
    executor.specialist.lane().map(Cow::into_owned)
}

fn is_backend(executors: &Executors, circle: Option<&str>, name: &str) -> bool {
    executors.find(circle, name).is_some_and(|executor| executor.specialist.is_backend())
}

fn check_backend(backend: Option<&str>, circle: Option<&str>, executors: &Executors) -> Result<(), Problem> {
    match backend {
        Some(backend) if !BACKENDS.contains(&backend) && !is_backend(executors, circle, backend) => {
            let told = format!("backend must be one of {}", BACKENDS.join(", "));
            Err(at_field("backend", "literal_error", told))
        }
        Some(_) | None => Ok(()),
    }
}

/// What the daemon itself says of a job's source, nobody else says.
fn check_source(source_kind: Option<&str>) -> Result<(), Problem> {
    match source_kind {
        Some(source) if deferred::OWN_SOURCES.contains(&source) => {
            let told = format!("source_kind {source:?} is set by the daemon; choose another word");
            Err(at_field("source_kind", "reserved", told))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_refused_fields(create: &CreateJob) -> Result<(), Problem> {
    if create.due_at.is_some() && create.cron.is_some() {
        return Err(ProblemCode::FieldsExclusive.because("provide due_at or cron, not both"));
    }
    if create.cron.is_some() {
        let told = "recurring jobs are not available yet; create each job with due_at";
        let error = FieldError::new("calendars_unavailable", &["body", "cron"], told);
        return Err(ProblemCode::CalendarsUnavailable.because(told).at(error));
    }
    if create.prompt_file.is_some() {
        let told = "the daemon does not read files for callers; read the file and send its text as prompt";
        let error = FieldError::new("prompt_file_refused", &["body", "prompt_file"], told);
        return Err(ProblemCode::PromptFileRefused.because(told).at(error));
    }
    Ok(())
}

fn retry(create: &CreateJob, circle: Option<&str>, executors: &Executors) -> RetryPolicy {
    let default = match create.executor.as_deref() {
        Some(executor) => {
            executors.find(circle, executor).map_or(Executors::DEFAULT_RETRY, |executor| executor.retry)
        }
        None => RetryPolicy::ONCE,
    };
    let Some(asked) = create.retry else { return default };
    let backoff_seconds = asked.backoff_seconds.unwrap_or(default.backoff_seconds);
    RetryPolicy {
        max_attempts: asked.max_attempts.unwrap_or(default.max_attempts),
        backoff_seconds,
        max_backoff_seconds: asked
            .max_backoff_seconds
            .unwrap_or(default.max_backoff_seconds.max(backoff_seconds)),
    }
}

pub(crate) fn time(loc: &[&str], text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    clock_text::parse(text).map(Some).ok_or_else(|| {
        let told = "a time is RFC 3339 with an offset, like 2026-11-16T09:30:00Z";
        ProblemCode::InvalidRequest.because(format!("{}: {told}", loc.join("."))).at(FieldError::new(
            "datetime_type",
            loc,
            told,
        ))
    })
}

pub(super) fn one_of(field: &'static str, allowed: &str) -> Problem {
    let told = format!("{field} must be one of: {allowed}");
    ProblemCode::InvalidValue.because(told.clone()).at(FieldError::new(
        "literal_error",
        &["body", field],
        told,
    ))
}

/// The members of a part of the request that must be an object.
pub(super) fn object<'a>(value: Option<&'a RawValue>, loc: &[&str]) -> Result<RawObject<'a>, Problem> {
    let Some(value) = value else { return Ok(RawObject::default()) };
    RawObject::parse(value.get()).ok_or_else(|| {
        let told = "an object was expected";
        ProblemCode::InvalidRequest.because(format!("{}: {told}", loc.join("."))).at(FieldError::new(
            "dict_type",
            loc,
            told,
        ))
    })
}
