//! `POST /jobs/{id}/answer`: what a job waited for.

use std::sync::Arc;

use api::{AnswerJob, Problem};
use domain::BodyName;
use domain::job::JobCommand;
use engine::Approval;
use store::{NewBody, body_ref};

use super::order::{Begun, begin, give};
use super::visible::steerable_job;
use crate::access::audit::Verdict;
use crate::access::authorise;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

pub(crate) async fn answer(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let sent: AnswerJob = asked.read()?;
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, None).await?;
    let spec = &visible.job().spec;
    let executor = spec.executor.as_deref().unwrap_or_default();
    let executor = server.daemon.executors().find(spec.circle.as_deref(), executor);
    let approval = executor.map_or(Approval::NotNeeded, |executor| executor.contract.approval);
    authorise::check_approval(&asked.principal, approval).inspect_err(|_| {
        let RequestContext { principal, operation, id, .. } = &asked;
        server.audit.note(&principal.actor, operation.name, id, Verdict::Forbidden);
    })?;
    let bytes = sent.answer.get().as_bytes();
    let body = body_ref(BodyName::Answer, bytes);
    let bodies = vec![NewBody { body, bytes: Arc::from(bytes) }];
    give(server, &asked, &visible, keyed, JobCommand::Answer { answer: body }, bodies).await
}
