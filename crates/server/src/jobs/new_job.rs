//! A new job as the API takes it, read into what the engine accepts. The order of the checks is part of the contract.

use api::{CreateJob, Problem, ProblemCode};
use domain::job::{JobSpec, VISIBLE_TO_CIRCLE, VISIBLE_TO_OWN};
use domain::retry::RetryRequest;
use domain::{BodyName, Json, RetryPolicy, Timestamp};
use engine::Executors;
use engine::accept::{AcceptedJob, BACKENDS, NewJobRequest, ProcessRequest, knows_backend};
use serde_json::value::RawValue;

use super::managed_execution::managed_execution;
use crate::Result;
use crate::access::{Principal, authorise};
use crate::clock_text;
use crate::external::deferred;
use crate::problem::{at, at_field, of_refusal, unread};
use crate::render::{DEFAULT_EXECUTION, RawObject};

/// Reads what passed [`check_first`].
pub(super) fn read_new_job(
    principal: &Principal,
    executors: &Executors,
    mut create: CreateJob,
) -> Result<NewJobRequest> {
    check_repeatable(&create)?;
    let deadline_at = time(&["body", "deadline_at"], create.deadline_at.as_deref())?;
    let expires_at = time(&["body", "expires_at"], create.expires_at.as_deref())?;
    time(&["body", "due_at"], create.due_at.as_deref())?;
    authorise::check_executor(principal, create.executor.as_deref())?;
    if let (None, Some(_), Some(_)) = (&create.executor, &create.lane, &create.label) {
        let told = "a job is pulled from its lane or by its label: leave one of them out";
        return Err(at_field("label", "invalid_value", told));
    }
    if create.executor.is_some() && create.assigned_peer_id.is_some() {
        let told = "a job is done by an executor or by a peer: leave one of them out";
        return Err(at_field("assigned_peer_id", "invalid_value", told));
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
    check_backend(managed.backend.as_deref(), circle.as_deref(), executors)?;
    if create.prompt.is_some() {
        callers.remove("prompt");
    }
    if !callers.is_empty() {
        request.set("execution", &callers);
    }
    let execution = execution(&managed.text)?;
    let (backend, profile) = (managed.backend, create.profile.take());
    let retry = create.retry.map(|retry| RetryRequest {
        max_attempts: retry.max_attempts,
        backoff_seconds: retry.backoff_seconds,
        max_backoff_seconds: retry.max_backoff_seconds,
    });
    Ok(NewJobRequest {
        due_at: managed.due_at,
        retry,
        repeatable: create.repeatable,
        process: managed.scope.map(|scope| ProcessRequest { backend, profile, scope }),
        bodies: bodies(&mut create, &request),
        spec: JobSpec {
            created_by_peer_id: principal.peer_id.clone().or(create.created_by_peer_id.take()),
            deadline_at,
            expires_at,
            path: managed.path,
            circle,
            execution,
            ..spec(create)
        },
    })
}

/// The job that the daemon itself makes of a caller's request: its own kind and source, and the executor that the caller may use.
pub(crate) fn own_job(principal: &Principal, executor: Option<&str>) -> Result<JobSpec> {
    authorise::check_executor(principal, executor)?;
    let circle = authorise::circle_of_new(principal, None)?;
    let managed = managed_execution(
        &CreateJob { executor: executor.map(str::to_owned), ..CreateJob::default() },
        &mut RawObject::default(),
    )?;
    Ok(JobSpec {
        kind: "capability".to_owned(),
        created_by_peer_id: principal.peer_id.clone(),
        circle,
        execution: execution(&managed.text)?,
        ..JobSpec::plain(executor, RetryPolicy::ONCE)
    })
}

/// The problem of a job that its executor would not do.
pub(crate) fn check_fit(executors: &Executors, job: AcceptedJob) -> Result<AcceptedJob> {
    match job.check_fit(executors) {
        Ok(()) => Ok(job),
        Err(unfit) => Err(at_field(unfit.field, unfit.code, unfit.told)),
    }
}

/// What is refused before anyone is looked up.
pub(super) fn check_first(principal: &Principal, executors: &Executors, create: &CreateJob) -> Result<()> {
    let circle = principal.circle.as_deref().or(create.circle.as_deref());
    check_backend(create.backend.as_deref(), circle, executors)?;
    check_refused_fields(create)?;
    check_visibility(principal, create)?;
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
        allow_restart_recovery: create.allow_restart_recovery,
        ..JobSpec::plain(create.executor.as_deref(), RetryPolicy::ONCE)
    }
}

/// What is large or private goes beside the record.
fn bodies(create: &mut CreateJob, request: &RawObject<'_>) -> Vec<(BodyName, String)> {
    let input = create.input.take().map(|input| input.get().to_owned());
    let provenance = create.provenance.take().map(|provenance| provenance.as_str().to_owned());
    let named = [
        (BodyName::Request, (!request.is_empty()).then(|| request.to_text())),
        (BodyName::Prompt, create.prompt.take()),
        (BodyName::Input, input),
        (BodyName::Provenance, provenance),
    ];
    named.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// What is stored of how a job shall be carried out; nothing if that is as usual.
fn execution(managed: &str) -> Result<Option<Json>> {
    match managed {
        DEFAULT_EXECUTION => Ok(None),
        text => Json::parse(text).map(Some).map_err(|refusal| of_refusal(&refusal, "")),
    }
}

/// What is accepted is kept to: a private job must name somebody who will see it.
fn check_visibility(principal: &Principal, create: &CreateJob) -> Result<()> {
    match create.visibility.as_str() {
        VISIBLE_TO_CIRCLE => Ok(()),
        VISIBLE_TO_OWN if principal.peer_id.is_some() || authorise::sees_private(principal) => Ok(()),
        VISIBLE_TO_OWN => {
            let told = "only its peers and operators see a private job, and this token is neither: create it with a token that is bound to a peer (`longhaul token create --peer`), or leave visibility out";
            Err(at_field("visibility", "private_without_peer", told))
        }
        _ => Err(at_field("visibility", "literal_error", "visibility must be one of: circle, private")),
    }
}

fn check_backend(backend: Option<&str>, circle: Option<&str>, executors: &Executors) -> Result<()> {
    if backend.is_none_or(|backend| knows_backend(executors, circle, backend)) {
        return Ok(());
    }
    Err(at_field("backend", "literal_error", format!("backend must be one of {}", BACKENDS.join(", "))))
}

/// What the daemon itself says of a job's source, nobody else says.
fn check_source(source_kind: Option<&str>) -> Result<()> {
    let own = source_kind.filter(|source| deferred::OWN_SOURCES.contains(source));
    let Some(source) = own else { return Ok(()) };
    let told = format!("source_kind {source:?} is set by the daemon; choose another word");
    Err(at_field("source_kind", "reserved", told))
}

fn check_refused_fields(create: &CreateJob) -> Result<()> {
    if create.due_at.is_some() && create.cron.is_some() {
        return Err(ProblemCode::FieldsExclusive.because("provide due_at or cron, not both"));
    }
    if create.cron.is_some() {
        let told = "recurring jobs are not available yet; create each job with due_at";
        return Err(at(ProblemCode::CalendarsUnavailable, "calendars_unavailable", &["body", "cron"], told));
    }
    if create.prompt_file.is_some() {
        let told = "the daemon does not read files for callers; read the file and send its text as prompt";
        return Err(at(
            ProblemCode::PromptFileRefused,
            "prompt_file_refused",
            &["body", "prompt_file"],
            told,
        ));
    }
    Ok(())
}

/// Once only and several attempts exclude each other.
fn check_repeatable(create: &CreateJob) -> Result<()> {
    let attempts = create.retry.and_then(|retry| retry.max_attempts);
    if create.repeatable != Some(false) || attempts.is_none_or(|attempts| attempts < 2) {
        return Ok(());
    }
    let told = "repeatable: false means one attempt: leave it out, or ask for one attempt";
    Err(at_field("repeatable", "invalid_value", told))
}

pub(crate) fn time(loc: &[&str], text: Option<&str>) -> Result<Option<Timestamp>> {
    let Some(text) = text else { return Ok(None) };
    let told = "a time is RFC 3339 with an offset, like 2026-11-16T09:30:00Z";
    clock_text::parse(text).map(Some).ok_or_else(|| unread("datetime_type", loc, told))
}

pub(super) fn one_of(field: &'static str, allowed: &str) -> Problem {
    let told = format!("{field} must be one of: {allowed}");
    at(ProblemCode::InvalidValue, "literal_error", &["body", field], told)
}

/// The members of a part of the request that must be an object.
pub(super) fn object<'a>(value: Option<&'a RawValue>, loc: &[&str]) -> Result<RawObject<'a>> {
    let Some(value) = value else { return Ok(RawObject::default()) };
    RawObject::parse(value.get()).ok_or_else(|| unread("dict_type", loc, "an object was expected"))
}
