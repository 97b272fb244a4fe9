//! `GET /jobs/{id}` and its result.

use std::borrow::Cow;

use api::{JobEnd, JobResult, Problem, ResultAnswer, ResultNotReady, StatusAnswer};
use axum::response::Response;
use domain::BodyRef;
use serde_json::value::RawValue;

use super::visible::visible_job;
use crate::answer;
use crate::asked::Asked;
use crate::clock_text;
use crate::deferred;
use crate::render::{Bodies, Extent, end_provenance, raw, status};
use crate::serve::Server;

pub(crate) async fn read_status(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let visible = visible_job(server, &asked).await?;
    let bodies = Bodies::of_status(server.store(), visible.job()).await?;
    let (executors, viewer) = (server.daemon.executors(), asked.principal.reporter());
    let status = status(executors, visible.job(), visible.claim(), &bodies, Extent::Whole, &viewer);
    let mut response = answer::json(&StatusAnswer { status });
    deferred::applied(&mut response, asked.wait);
    Ok(response)
}

pub(crate) async fn read_result(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let visible = visible_job(server, &asked).await?;
    let (job, viewer) = (visible.job(), asked.principal.reporter());
    let id = Cow::Borrowed(job.id.as_str());
    if !job.state.name().is_terminal() {
        let bodies = Bodies::of_status(server.store(), job).await?;
        let not_ready = ResultNotReady {
            job_id: id.clone(),
            work_id: id,
            result_state: Cow::Borrowed("not_ready"),
            status: status(server.daemon.executors(), job, visible.claim(), &bodies, Extent::Whole, &viewer),
        };
        return Ok(answer::json(&ResultAnswer { result: JobResult::NotReady(Box::new(not_ready)) }));
    }
    let bodies = Bodies::of_result(server.store(), job).await?;
    let part = |body: Option<BodyRef>| body.and_then(|body| json(bodies.text(body)?));
    let end = JobEnd {
        job_id: id.clone(),
        work_id: id,
        state: Cow::Borrowed(job.state.name().as_str()),
        summary: job.result.summary.as_deref().map(Cow::Borrowed),
        data: part(job.result.data),
        error: part(job.result.error),
        artifacts: part(job.result.artifacts).unwrap_or_else(|| raw("[]".to_owned())),
        completed_at: job.completed_at.map(|at| Cow::Owned(clock_text::text(at))),
        provenance: end_provenance(job, &bodies, &viewer),
    };
    Ok(answer::json(&ResultAnswer { result: JobResult::End(Box::new(end)) }))
}

/// A body as JSON. An executor may have left another text: then it is shown as a string.
fn json(text: &str) -> Option<Cow<'static, RawValue>> {
    let value = RawValue::from_string(text.to_owned());
    let value = value.or_else(|_| serde_json::value::to_raw_value(text));
    value.ok().map(Cow::Owned)
}
