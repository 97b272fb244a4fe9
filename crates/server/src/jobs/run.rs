//! `POST /jobs/{id}/run` and `/retry`: a new attempt now, whatever the due time. Answers when the attempt has left dispatching.

use api::{Problem, ProblemCode, RunJob};
use domain::job::Trigger;
use domain::{RecordId, Refusal};
use engine::RunOrder;

use super::order::{Begun, answer_with, begin, key_for};
use super::visible::{Visible, steerable_job};
use crate::access::authorise;
use crate::keyed;
use crate::peers;
use crate::problem::no_such_job;
use crate::render::Bodies;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

pub(crate) async fn run(server: &Server, asked: RequestContext, trigger: Trigger) -> Result<Reply, Problem> {
    let order: RunJob = if asked.body.is_some() { asked.read()? } else { RunJob::default() };
    if asked.id.starts_with("cal-") {
        let what = if trigger == Trigger::Retry { "retried" } else { "run" };
        return Err(
            ProblemCode::RecurringTemplate.because(format!("Recurring job templates cannot be {what}"))
        );
    }
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, order.requested_by_peer_id.as_deref()).await?;
    authorise::check_executor(&asked.principal, visible.job().spec.executor.as_deref())?;
    if trigger == Trigger::Run
        && visible.job().waits_for_anyone()
        && pullers_in_sight(server, &visible).await?
    {
        return keyed::refused(keyed.as_ref(), &Refusal::WaitsForPuller.into(), &asked.id);
    }
    let RecordId::Job(job_id) = visible.id() else { return Err(no_such_job(&asked.id)) };
    let mut run = RunOrder { actor: asked.principal.actor.clone(), keys: Vec::new() };
    if let Some(keyed) = &keyed {
        run.keys.push(key_for(server, &asked, &visible, keyed, Bodies::default()).await?);
    }
    match server.daemon.run_now(job_id, trigger, run).await {
        Ok(record) => answer_with(server, &asked, &visible, keyed, &record, Bodies::default()).await,
        Err(error) => keyed::refused(keyed.as_ref(), &error, &asked.id),
    }
}

/// Whether somebody pulls what names nobody: on this node, or as a registered peer of its circle on another.
async fn pullers_in_sight(server: &Server, visible: &Visible) -> Result<bool, Problem> {
    let spec = &visible.job().spec;
    Ok(server.daemon.pulls().are_in_sight(&spec.lane())
        || peers::anyone_here(server, spec.circle.as_deref()).await?)
}
