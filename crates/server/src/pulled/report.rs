//! `POST /jobs/{id}/complete`, `/fail` and `/ask`: what came of an attempt. The same rules as for every report; a stale attempt
//! changes nothing, and its word is kept as evidence.

use api::{AskInput, CompleteJob, FailJob, Problem};
use domain::BodyName;
use domain::job::{Details, JobCommand, JobStateName, Report, ResultRefs, Retryable, SubmitWord};
use store::NewBody;

use crate::jobs::refused_report::attempt_named;
use crate::jobs::{Begun, begin, give, keep, steerable_job};
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

pub(crate) async fn complete(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let sent: CompleteJob = asked.read()?;
    let mut bodies = Vec::new();
    let result = ResultRefs {
        summary: sent.summary,
        data: sent.result.map(|result| keep(&mut bodies, BodyName::Result, result.get())),
        artifacts: sent.artifacts.map(|list| keep(&mut bodies, BodyName::Artifacts, list.as_str())),
        ..ResultRefs::default()
    };
    let details = Details { result, ..Details::default() };
    let said = Said { state: JobStateName::Completed, details, retryable: Retryable::No, bodies };
    report(server, asked, &sent.attempt_id, said).await
}

pub(crate) async fn fail(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let sent: FailJob = asked.read()?;
    let mut bodies = Vec::new();
    let error = sent.error.map(|error| keep(&mut bodies, BodyName::Error, error.get()));
    let result = ResultRefs { error, ..ResultRefs::default() };
    let details = Details { reason: sent.reason, result, ..Details::default() };
    let retryable = if sent.retryable.unwrap_or(true) { Retryable::Yes } else { Retryable::No };
    let said = Said { state: JobStateName::Failed, details, retryable, bodies };
    report(server, asked, &sent.attempt_id, said).await
}

pub(crate) async fn ask(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let sent: AskInput = asked.read()?;
    let mut bodies = Vec::new();
    let question = keep(&mut bodies, BodyName::Question, sent.question.get());
    let details = Details { question: Some(question), ..Details::because("input_awaited") };
    let said = Said { state: JobStateName::AwaitingInput, details, retryable: Retryable::No, bodies };
    report(server, asked, &sent.attempt_id, said).await
}

struct Said {
    state: JobStateName,
    details: Details,
    retryable: Retryable,
    bodies: Vec<NewBody>,
}

async fn report(
    server: &Server,
    asked: RequestContext,
    attempt_id: &str,
    said: Said,
) -> Result<Reply, Problem> {
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, None).await?;
    let report = Report {
        attempt_id: Some(attempt_named(attempt_id)?),
        state: said.state,
        details: said.details,
        retryable: said.retryable,
        jitter: server.daemon.engine().ids().jitter(),
        submit: SubmitWord::Unsaid,
        by: asked.principal.reporter(),
    };
    give(server, &asked, &visible, keyed, JobCommand::Report(Box::new(report)), said.bodies).await
}
