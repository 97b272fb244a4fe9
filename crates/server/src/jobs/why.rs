//! `GET /jobs/{id}/why`: what keeps a job where it is. The reasons are the domain's; this adds what the node knows.

use api::{Problem, Why};
use axum::response::Response;
use domain::job::{ExecutorHere, LaneHere, Reason, Surroundings};

use super::visible::visible_job;
use crate::answer;
use crate::asked::Asked;
use crate::clock_text::text;
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
    let explanation = domain::job::why(job, around, server.now());
    Ok(answer::json(&Why {
        job_id: job.id.as_str().to_owned(),
        work_id: job.id.as_str().to_owned(),
        state: job.state.name().as_str().to_owned(),
        reasons: explanation.reasons.into_iter().map(reason).collect(),
        earliest_at: explanation.earliest_at.map(text),
    }))
}

fn reason(reason: Reason) -> api::Reason {
    api::Reason { code: reason.code.to_owned(), detail: reason.detail, until: reason.until.map(text) }
}
