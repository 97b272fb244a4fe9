//! The status of a job: 35 keys, always all present; and its summary, for which no body is read.

use std::borrow::Cow;

use api::{JobStatus, ProgressEvent};
use domain::job::{Job, Note, Phase, Reporter};
use domain::{Claim, Timestamp};
use engine::Executors;

use super::raw_object::raw;
use super::{Bodies, execution, outside, provenance};
use crate::clock_text::text;

/// How much of a job an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// What fits into a stored answer: no bodies, no notes, the last attempt.
    Cut,
}

/// Where a job is, as this caller may see it.
pub(crate) fn status<'a>(
    executors: &Executors,
    job: &'a Job,
    claim: Option<&Claim>,
    bodies: &'a Bodies,
    extent: Extent,
    viewer: &Reporter,
) -> JobStatus<'a> {
    let lease_until = claim.filter(|_| is_leased(job)).map(|claim| text(claim.lease_expires_at));
    let operation = bodies.outside();
    let mut runner = provenance::runner(job, lease_until, extent, viewer);
    if let Some(runner) = &mut runner {
        runner.outside = operation.map(outside::outside);
    }
    let told_to_stop = provenance::protocol_cancel(job);
    let (request, execution) = execution::request_and_execution(job, bodies, extent);
    let notes = match extent {
        Extent::Whole => &job.notes[..],
        Extent::Cut => &[],
    };
    // What its service says is newer than what its attempt said before it left the work there.
    let progress = operation.and_then(|operation| operation.progress.as_ref()).or(job.progress.as_ref());
    let progress = progress.map_or("{}", domain::Json::as_str);
    let runners = serde_json::to_string(&runner).expect("it has only string keys");
    JobStatus {
        progress: Some(raw(progress.to_owned())),
        phase: borrowed(job.phase.as_deref().or_else(|| operation.map(outside::phase))),
        progress_events: Some(notes.iter().map(event).chain(operation.and_then(outside::event)).collect()),
        provenance: Some(provenance::provenance(job, runner.as_ref(), told_to_stop.as_ref(), bodies)),
        protocol_cancel: Some(told_to_stop),
        request: Some(request),
        execution,
        runner: Some(raw(if runner.is_some() { runners } else { "{}".to_owned() })),
        links: Some(provenance::links(job, bodies)),
        ..summary(executors, job)
    }
}

/// What a list shows of a job.
pub(crate) fn summary<'a>(executors: &Executors, job: &'a Job) -> JobStatus<'a> {
    let spec = &job.spec;
    let cancel = job.cancel.as_ref();
    JobStatus {
        job_id: Cow::Borrowed(job.id.as_str()),
        work_id: Cow::Borrowed(job.id.as_str()),
        title: Cow::Borrowed(&spec.title),
        kind: Cow::Borrowed(&spec.kind),
        state: Cow::Borrowed(job.state.name().as_str()),
        state_reason: borrowed(job.state_reason.as_deref().or_else(|| missing(executors, job))),
        phase: borrowed(job.phase.as_deref()),
        progress: None,
        progress_events: None,
        owner_peer_id: borrowed(job.owner_peer()),
        assigned_peer_id: borrowed(spec.assigned_peer_id.as_deref()),
        repowire_session_id: borrowed(spec.session_id.as_deref()),
        correlation_id: provenance::correlation(job),
        circle: borrowed(spec.circle.as_deref()),
        created_by_peer_id: borrowed(spec.created_by_peer_id.as_deref()),
        source_kind: borrowed(spec.source_kind.as_deref()),
        source_id: borrowed(spec.source_id.as_deref()),
        scope: borrowed(spec.scope.as_deref()),
        visibility: Cow::Borrowed(&spec.visibility),
        created_at: Cow::Owned(text(job.created_at)),
        updated_at: Cow::Owned(text(job.updated_at)),
        deadline_at: time(spec.deadline_at),
        expires_at: time(spec.expires_at),
        result_summary: borrowed(job.result.summary.as_deref()),
        cancel_requested: cancel.is_some(),
        cancel_requested_at: time(cancel.map(|cancel| cancel.requested_at)),
        cancel_requested_by_peer_id: cancel.and_then(|cancel| borrowed(cancel.by.as_deref())),
        cancellation_reason: cancel.map(|cancel| Cow::Borrowed(cancel.reason.as_str())),
        protocol_cancel: None,
        request: None,
        provenance: None,
        execution: execution::execution_in_short(job),
        runner: None,
        due_at: execution::due_at(job).map(Cow::Owned),
        links: None,
    }
}

/// A queued job whose executor is not here says so at once; whether it will come, nobody knows.
fn missing(executors: &Executors, job: &Job) -> Option<&'static str> {
    let named = job.spec.executor.as_deref()?;
    let is_queued = matches!(job.state.phase(), Phase::Queued { .. });
    (is_queued && executors.find_usable(job.spec.circle.as_deref(), named).is_none())
        .then_some("capability_missing")
}

/// Whether a lease governs the job.
pub(super) fn is_leased(job: &Job) -> bool {
    matches!(job.state.phase(), Phase::Held(_)) && !job.attempts.is_empty() && !job.resume_pending
}

fn event(note: &Note) -> ProgressEvent<'_> {
    ProgressEvent {
        at: Cow::Owned(text(note.at)),
        note: Cow::Borrowed(&note.note),
        state: Cow::Borrowed(note.state.as_str()),
        phase: borrowed(note.phase.as_deref()),
    }
}

fn borrowed(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(Cow::Borrowed)
}

fn time(at: Option<Timestamp>) -> Option<Cow<'static, str>> {
    at.map(|at| Cow::Owned(text(at)))
}
