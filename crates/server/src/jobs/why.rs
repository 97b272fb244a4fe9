//! `GET /jobs/{id}/why`: what keeps a job where it is. The reasons are the domain's; this adds what the node knows.

use api::{Problem, Why};
use axum::response::Response;
use domain::job::{ExecutorHere, Job, JobState, LaneHere, Reason, Surroundings};
use domain::{BodyName, RecordId};
use serde_json::value::RawValue;

use super::visible::visible_job;
use crate::answer;
use crate::asked::Asked;
use crate::clock_text::text;
use crate::problem::of_store;
use crate::serve::Server;

pub(crate) async fn why(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let visible = visible_job(server, &asked).await?;
    let job = visible.job();
    let executor = job.spec.executor.as_deref().and_then(|name| server.daemon.executors().get(name));
    let free = server.daemon.attempts().free_slots(job.spec.lane());
    let around = Surroundings {
        lease_expires_at: visible.claim().map(|claim| claim.lease_expires_at),
        executor: if executor.is_some() { ExecutorHere::Registered } else { ExecutorHere::Missing },
        lane: if free > 0 { LaneHere::Free } else { LaneHere::Full },
    };
    let question = question(server, job).await?;
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
async fn question(server: &Server, job: &Job) -> Result<Option<Box<RawValue>>, Problem> {
    let asked = job.bodies.iter().rev().find(|body| body.name == BodyName::Question);
    let (Some(asked), JobState::AwaitingInput) = (asked, &job.state) else { return Ok(None) };
    let id = RecordId::from(job.id.clone());
    let bytes = server.store().body(&id, *asked).await.map_err(|error| of_store(&error))?;
    let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(text.and_then(|text| RawValue::from_string(text).ok()))
}

fn reason(reason: Reason) -> api::Reason {
    api::Reason { code: reason.code.to_owned(), detail: reason.detail, until: reason.until.map(text) }
}
