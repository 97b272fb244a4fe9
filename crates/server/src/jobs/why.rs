//! `GET /jobs/{id}/why`: what keeps a job where it is. The reasons are the domain's; this adds what the node knows.

use api::{Problem, Why};
use axum::response::Response;
use domain::BodyName;
use domain::job::{ExecutorHere, Job, JobState, LaneHere, Reason, Surroundings};
use serde_json::Value;
use serde_json::value::RawValue;

use super::visible::{Visible, visible_job};
use crate::answer;
use crate::asked::Asked;
use crate::clock_text::text;
use crate::problem::of_store;
use crate::serve::Server;

/// The most characters of an error's message that are shown.
const MAX_MESSAGE: usize = 500;

pub(crate) async fn why(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let visible = visible_job(server, &asked).await?;
    let job = visible.job();
    let error = error_of(server, &visible).await?;
    let around = Surroundings {
        lease_expires_at: visible.claim().map(|claim| claim.lease_expires_at),
        executor: executor_here(server, job),
        lane: lane_here(server, job),
        error: error.as_deref(),
    };
    let question = question(server, &visible).await?;
    let explanation = domain::job::why(job, around, server.now());
    Ok(answer::json(&Why {
        job_id: job.id.as_str().to_owned(),
        work_id: job.id.as_str().to_owned(),
        state: job.state.name().as_str().to_owned(),
        reasons: explanation.reasons.into_iter().map(reason).collect(),
        earliest_at: explanation.earliest_at.map(text),
        question,
    }))
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

fn executor_here(server: &Server, job: &Job) -> ExecutorHere {
    match job.spec.executor.as_deref().and_then(|name| server.daemon.executors().get(name)) {
        Some(_) => ExecutorHere::Registered,
        None => ExecutorHere::Missing { until: server.daemon.attempts().strangers_from() },
    }
}

fn lane_here(server: &Server, job: &Job) -> LaneHere {
    let (attempts, lane) = (server.daemon.attempts(), job.spec.lane());
    match attempts.free_slots(lane) {
        0 => LaneHere::Full,
        _ if attempts.serves(lane) => LaneHere::Free,
        _ => LaneHere::Unknown { until: attempts.strangers_from() },
    }
}

/// What the error of the job says for people, or that of its last attempt.
async fn error_of(server: &Server, visible: &Visible) -> Result<Option<String>, Problem> {
    let job = visible.job();
    let of_attempt = || job.last_attempt()?.end.as_ref()?.result.error;
    let Some(error) = job.result.error.or_else(of_attempt) else { return Ok(None) };
    let bytes = server.store().body(visible.id(), error).await.map_err(|error| of_store(&error))?;
    let error: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let message = error.as_ref().and_then(|error| error.get("message").unwrap_or(error).as_str());
    Ok(message.map(|message| message.chars().take(MAX_MESSAGE).collect()))
}

fn reason(reason: Reason) -> api::Reason {
    api::Reason { code: reason.code.to_owned(), detail: reason.detail, until: reason.until.map(text) }
}
