//! `GET /jobs/{id}/why`: what keeps a job where it is. The reasons are the domain's; this adds what the node knows.

use api::{Problem, Why};
use axum::response::Response;
use domain::job::{ExecutorHere, Job, JobState, LaneHere, Reason, Surroundings, cancel_told};
use domain::operation::{Operation, OrphanReason, Settlement};
use domain::{BodyName, Record};
use engine::Dispatching;
use serde_json::Value;
use serde_json::value::RawValue;

use super::visible::{Visible, visible_job};
use crate::answer;
use crate::asked::Asked;
use crate::clock_text::text;
use crate::peers;
use crate::problem::of_store;
use crate::render::{awaited, operation_of};
use crate::serve::Server;

/// The most characters of an error's message that are shown.
const MAX_MESSAGE: usize = 500;
/// The newest operations of a job that are looked at.
const MAX_OPERATIONS: usize = 20;

pub(crate) async fn why(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let visible = visible_job(server, &asked).await?;
    let job = visible.job();
    let error = error_of(server, &visible).await?;
    let outside = awaited(server.store(), job).await?;
    let around = Surroundings {
        lease_expires_at: visible.claim().map(|claim| claim.lease_expires_at),
        executor: executor_here(server, job, outside.as_deref().and_then(operation_of)),
        peer: peers::here(server, job).await?,
        lane: lane_here(server, job).await?,
        error: error.as_deref(),
        outside: outside.as_deref().and_then(operation_of),
    };
    let question = question(server, &visible).await?;
    let explanation = domain::job::why(job, around, server.now());
    let mut reasons: Vec<api::Reason> = explanation.reasons.into_iter().map(reason).collect();
    let missing = reasons.iter_mut().find(|reason| reason.code == "executor_missing");
    if let (Some(missing), Some(executor)) = (missing, &job.spec.executor) {
        missing.detail.push_str(&server.daemon.executors().near(job.spec.circle.as_deref(), executor));
    }
    if let Some(detail) = crate::clock::sentence(server).filter(|_| explanation.earliest_at.is_some()) {
        reasons.push(api::Reason { code: "clock_step".to_owned(), detail, until: None });
    }
    reasons.extend(orphans(server, job).await?);
    Ok(answer::json(&Why {
        job_id: job.id.as_str().to_owned(),
        work_id: job.id.as_str().to_owned(),
        state: job.state.name().as_str().to_owned(),
        reasons,
        earliest_at: explanation.earliest_at.map(text),
        question,
    }))
}

/// What the job may have left running outside.
async fn orphans(server: &Server, job: &Job) -> Result<Vec<api::Reason>, Problem> {
    // Only a job that was dispatched has left anything.
    if job.attempts.is_empty() {
        return Ok(Vec::new());
    }
    let left = server.store().operations_of(&job.id, MAX_OPERATIONS).await;
    let left = left.map_err(|error| of_store(&error))?;
    let mut reasons: Vec<_> = left.iter().filter_map(|record| cancel_answered(record)).collect();
    reasons.extend(left.iter().filter_map(|record| orphaned(record)));
    Ok(reasons)
}

/// What the service of an operation that is over said when it was asked to stop it; while it is open, that is told with the waiting.
fn cancel_answered(record: &Record) -> Option<api::Reason> {
    let operation = operation_of(record).filter(|operation| operation.ended.is_some())?;
    let cancel = operation.cancel.as_ref()?;
    let detail = format!(
        "{} was asked {} times to stop; {}",
        operation.link.kind,
        cancel.tries_in_all(),
        cancel_told(cancel.answers.last()?)
    );
    Some(api::Reason { code: "cancel_answered".to_owned(), detail, until: None })
}

/// What an operation may have left outside and what can be done about it, or who vouched that it has left nothing.
fn orphaned(record: &Record) -> Option<api::Reason> {
    let Record::Operation(operation) = record else { return None };
    let (id, kind) = (&operation.id, &operation.link.kind);
    let told = |code: &str, detail: String| Some(api::Reason { code: code.to_owned(), detail, until: None });
    if let Some(Settlement::ByHand { by, note }) = &operation.settled {
        let by = by.as_deref().unwrap_or("somebody");
        return told("settled_by_hand", format!("{id} was settled by {by}, who has looked: {note}"));
    }
    if let Some(Settlement::EndedOutside { status }) = &operation.settled {
        return told(
            "ended_outside",
            format!("{id} runs nowhere any more: its service says that it is {status}"),
        );
    }
    let reason = operation.orphan()?;
    let settle = format!("`longhaul orphans settle {id} --note …` (POST /orphans/{id}/settle)");
    let cancel = format!("`longhaul orphans cancel {id}` (POST /orphans/{id}/cancel)");
    let what_to_do = match (operation.uncancelable_because(), reason) {
        (Some(why), _) => {
            format!(
                "it cannot be asked to stop ({why}): look for it at {kind}, then say what was found with {settle}"
            )
        }
        (None, OrphanReason::NobodyToAsk) => format!(
            "start a daemon that has the executor {kind:?}, then {cancel} asks its service; {settle} says that somebody has looked"
        ),
        (
            None,
            OrphanReason::ExpiredWhileOpen
            | OrphanReason::Unknown
            | OrphanReason::CancelUnconfirmed
            | OrphanReason::SubmitOutcomeUnknown,
        ) => format!("{cancel} asks its service again; {settle} says that somebody has looked"),
    };
    told("may_run_outside", format!("{id} may still run outside ({}); {what_to_do}", reason.as_str()))
}

/// What the job waits to be answered, while it does.
async fn question(server: &Server, visible: &Visible) -> Result<Option<Box<RawValue>>, Problem> {
    let job = visible.job();
    let asked = job.bodies.iter().rev().find(|body| body.name == BodyName::Question);
    let (Some(asked), JobState::AwaitingInput) = (asked, &job.state) else { return Ok(None) };
    let bytes = server.store().body(visible.id(), *asked).await.map_err(|error| of_store(&error))?;
    let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(text.and_then(|text| RawValue::from_string(text).ok()))
}

/// Whether this node has who does it, or who asks about it where it goes on outside.
fn executor_here<'s>(server: &'s Server, job: &Job, outside: Option<&Operation>) -> ExecutorHere<'s> {
    let circle = job.spec.circle.as_deref();
    let name = outside.map(|operation| operation.link.kind.as_str()).or(job.spec.executor.as_deref());
    match name.and_then(|name| server.daemon.executors().find(circle, name)) {
        Some(executor) => {
            let (specialist, now) = (&executor.specialist, server.now());
            match (specialist.left_out_because(), specialist.left_alone_until(now)) {
                (Some(why), _) => ExecutorHere::LeftOut { why },
                (None, Some(until)) => ExecutorHere::LeftAlone { until },
                (None, None) => ExecutorHere::Registered,
            }
        }
        None => ExecutorHere::Missing { until: server.daemon.attempts().strangers_from() },
    }
}

async fn lane_here(server: &Server, job: &Job) -> Result<LaneHere, Problem> {
    let (attempts, lane) = (server.daemon.attempts(), job.spec.lane());
    if let Some(node) = job.spec.node().filter(|_| attempts.is_pinned_elsewhere(&lane)) {
        let nodes = server.store().nodes().await.map_err(|error| of_store(&error))?;
        let is_it = |id: &str| domain::OwnerId::new(id).node() == node;
        let lives = nodes.iter().any(|one| is_it(&one.id) && !one.is_silent(server.now()));
        return Ok(LaneHere::Elsewhere { lives });
    }
    if attempts.dispatching() == Dispatching::Off {
        return Ok(LaneHere::NotTaken);
    }
    Ok(match attempts.free_slots(&lane) {
        0 => LaneHere::Full,
        _ if attempts.serves(&lane) => LaneHere::Free,
        _ => LaneHere::Unknown { until: attempts.strangers_from() },
    })
}

/// What the error of the job says for people, or that of its last attempt.
async fn error_of(server: &Server, visible: &Visible) -> Result<Option<String>, Problem> {
    let job = visible.job();
    let of_attempt = || job.last_attempt()?.end.as_ref()?.result.error;
    let Some(error) = job.result.error.or_else(of_attempt) else { return unanswered(server, job).await };
    let bytes = server.store().body(visible.id(), error).await.map_err(|error| of_store(&error))?;
    let error: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let message = error.as_ref().and_then(|error| error.get("message").unwrap_or(error).as_str());
    Ok(message.map(|message| message.chars().take(MAX_MESSAGE).collect()))
}

/// What the last poll of work outside failed with, when that was all that the host heard before it gave up.
async fn unanswered(server: &Server, job: &Job) -> Result<Option<String>, Problem> {
    if job.state != JobState::Expired {
        return Ok(None);
    }
    let newest = server.store().operations_of(&job.id, 1).await.map_err(|error| of_store(&error))?;
    let error = newest.first().and_then(|record| operation_of(record)?.last_error.as_ref());
    Ok(error.map(|error| error.told().chars().take(MAX_MESSAGE).collect()))
}

fn reason(reason: Reason) -> api::Reason {
    api::Reason { code: reason.code.to_owned(), detail: reason.detail, until: reason.until.map(text) }
}
