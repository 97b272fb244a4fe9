//! `POST /jobs/{id}/complete`, `/fail` and `/ask`: what came of an attempt. The same rules as for every report; a stale attempt
//! changes nothing, and its word is kept as evidence. `/heartbeat`: the doer is alive, and hears of a cancel or a pause.

use std::borrow::Cow;

use api::{AskInput, CompleteJob, FailJob, HeartbeatAnswer, HeartbeatJob};
use domain::job::{Details, Job, JobStateName, ResultRefs, Retryable};
use domain::{AttemptId, BodyName, Json, RecordId};
use engine::{Evidence, Order};
use store::NewBody;

use crate::clock_text;
use crate::jobs::refused_report::{self, attempt_named};
use crate::jobs::{self, Begun, begin, give, job_of, keep, steerable_job};
use crate::problem::{no_such_job, of_engine, of_refusal};
use crate::{Reply, RequestContext, Result, Server};

pub(crate) async fn complete(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: CompleteJob = asked.read()?;
    let mut bodies = Vec::new();
    let result = ResultRefs {
        summary: sent.summary,
        data: sent.result.map(|result| keep(&mut bodies, BodyName::Result, result.get())),
        artifacts: sent.artifacts.map(|list| keep(&mut bodies, BodyName::Artifacts, list.as_str())),
        ..ResultRefs::default()
    };
    let details = Details { result, ..Details::default() };
    report(server, asked, &sent.attempt_id, JobStateName::Completed, details, Retryable::No, bodies).await
}

pub(crate) async fn fail(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: FailJob = asked.read()?;
    let mut bodies = Vec::new();
    let error = sent.error.map(|error| keep(&mut bodies, BodyName::Error, error.get()));
    let result = ResultRefs { error, ..ResultRefs::default() };
    let details = Details { reason: sent.reason, result, ..Details::default() };
    let retryable = if sent.retryable.unwrap_or(true) { Retryable::Yes } else { Retryable::No };
    report(server, asked, &sent.attempt_id, JobStateName::Failed, details, retryable, bodies).await
}

pub(crate) async fn ask(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: AskInput = asked.read()?;
    let mut bodies = Vec::new();
    let question = keep(&mut bodies, BodyName::Question, sent.question.get());
    let details = Details { question: Some(question), ..Details::because("input_awaited") };
    report(server, asked, &sent.attempt_id, JobStateName::AwaitingInput, details, Retryable::No, bodies).await
}

async fn report(
    server: &Server,
    asked: RequestContext,
    attempt_id: &str,
    state: JobStateName,
    details: Details,
    retryable: Retryable,
    bodies: Vec<NewBody>,
) -> Result<Reply> {
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let visible = steerable_job(server, &asked, None).await?;
    let command = jobs::report(server, &asked, Some(attempt_named(attempt_id)?), state, details, retryable);
    give(server, &asked, &visible, keyed, command, bodies).await
}

/// The lease is renewed, and news comes back.
pub(crate) async fn heartbeat(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: HeartbeatJob = asked.read()?;
    let visible = steerable_job(server, &asked, None).await?;
    let RecordId::Job(job_id) = visible.id() else { return Err(no_such_job(&asked.id)) };
    let details = details(&sent, visible.job())?;
    let attempt_id = attempt_named(&sent.attempt_id)?;
    let actor = &asked.principal.actor;
    let by = asked.principal.reporter();
    let beat = server.daemon.pulls().heartbeat(job_id, &attempt_id, actor, by).await;
    let beat = beat.map_err(|error| {
        refused_report::note(server, &asked, None, &error, Evidence::None);
        of_engine(&error, &asked.id)
    })?;
    if let Some(details) = details {
        note(server, &asked, job_of(&beat.record), attempt_id, details).await?;
    }
    let job = job_of(&beat.record);
    let cancel = job.cancel.as_ref();
    Ok(Reply::json(&HeartbeatAnswer {
        state: Cow::Borrowed(job.state.name().as_str()),
        lease_expires_at: beat.claim.map(|claim| Cow::Owned(clock_text::text(claim.lease_expires_at))),
        cancel_requested: cancel.is_some(),
        cancellation_reason: cancel.map(|cancel| Cow::Borrowed(cancel.reason.as_str())),
        cancel_limit_at: job.cancel_limit_at().map(|limit| Cow::Owned(clock_text::text(limit))),
    }))
}

/// What was said of the progress; the state stays.
async fn note(
    server: &Server,
    asked: &RequestContext,
    job: &Job,
    attempt_id: AttemptId,
    details: Details,
) -> Result<()> {
    let command = jobs::report(server, asked, Some(attempt_id), job.state.name(), details, Retryable::Yes);
    let order = Order::new(job.id.clone(), command, asked.principal.actor.clone());
    let noted = server.daemon.engine().execute(order).await;
    noted.map(|_| ()).map_err(|error| of_engine(&error, &asked.id))
}

/// What was said beside being alive; phase and reason stay as they are if they are left out.
fn details(sent: &HeartbeatJob, job: &Job) -> Result<Option<Details>> {
    let progress = sent.progress.as_ref().map(|progress| Json::parse(progress.as_str()));
    let said = Details {
        phase: sent.phase.clone(),
        progress: progress.transpose().map_err(|refusal| of_refusal(&refusal, ""))?,
        note: sent.progress_note.clone().filter(|note| !note.is_empty()),
        ..Details::default()
    };
    if said.is_empty() {
        return Ok(None);
    }
    let phase = said.phase.clone().or_else(|| job.phase.clone());
    let details = Details { phase, reason: job.state_reason.clone(), ..said };
    details.check().map_err(|refusal| of_refusal(&refusal, ""))?;
    Ok(Some(details))
}
