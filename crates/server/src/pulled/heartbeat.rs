//! `POST /jobs/{id}/heartbeat`: the doer is alive. Its lease is renewed, and news of a cancel or a pause comes back.

use std::borrow::Cow;

use api::{HeartbeatAnswer, HeartbeatJob, Problem};
use domain::job::{Details, Job, JobCommand, Report, Retryable, SubmitWord};
use domain::{AttemptId, Json, RecordId};
use engine::{Evidence, Order};

use crate::clock_text;
use crate::jobs::refused_report;
use crate::jobs::{job_of, steerable_job};
use crate::problem::{no_such_job, of_engine, of_refusal};
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

pub(crate) async fn heartbeat(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let sent: HeartbeatJob = asked.read()?;
    let visible = steerable_job(server, &asked, None).await?;
    let RecordId::Job(job_id) = visible.id() else { return Err(no_such_job(&asked.id)) };
    let details = details(&sent, visible.job())?;
    let attempt_id = refused_report::attempt_named(&sent.attempt_id)?;
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
) -> Result<(), Problem> {
    let report = Report {
        attempt_id: Some(attempt_id),
        state: job.state.name(),
        details,
        retryable: Retryable::Yes,
        jitter: server.daemon.engine().ids().jitter(),
        submit: SubmitWord::Unsaid,
        by: asked.principal.reporter(),
    };
    let command = JobCommand::Report(Box::new(report));
    let order = Order::new(job.id.clone(), command, asked.principal.actor.clone());
    let noted = server.daemon.engine().execute(order).await;
    noted.map(|_| ()).map_err(|error| of_engine(&error, &asked.id))
}

/// What was said beside being alive; phase and reason stay as they are if they are left out.
fn details(sent: &HeartbeatJob, job: &Job) -> Result<Option<Details>, Problem> {
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
