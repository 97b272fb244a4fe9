//! What may be asked of a deferred operation: that its service is asked now, and that it stops.

use std::sync::Arc;

use api::{CancelJob, Problem, ProblemCode};
use axum::http::StatusCode;
use axum::response::Response;
use domain::job::{Job, JobCommand};
use domain::{Record, RecordId, Refusal};
use engine::{EngineError, Order};
use store::StoreError;

use super::read::{Purpose, Shown, named, status_response};
use crate::asked::Asked;
use crate::problem::{no_such_job, of_engine, of_store};
use crate::serve::Server;

const DEFAULT_REASON: &str = "cancel_requested";

/// Asks the service once, within the same limits as every other question.
pub(crate) async fn poll(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let shown = named(server, &asked, Purpose::Steer).await?;
    if shown.job().state.name().is_terminal() {
        return status_response(server, &shown, None).await;
    }
    let Some(open) = shown.face(server).open_operation().map(|open| open.id.clone()) else {
        return Err(ProblemCode::Refused.because("nothing of it goes on outside now: there is nobody to ask"));
    };
    if let Err(error) = server.daemon.poll_now(&open).await {
        return Err(not_now(server, &error, &asked.id));
    }
    let shown = again(server, shown.job()).await?;
    status_response(server, &shown, None).await
}

/// Too soon, or being asked already: both mean "later", and neither says anything about the work.
fn not_now(server: &Server, error: &EngineError, id: &str) -> Problem {
    let later = |seconds: u32| {
        ProblemCode::TooSoon.because("its service was asked just now; ask again later").retry_after(seconds)
    };
    match error {
        EngineError::Refused(Refusal::NotDue { due_at }) => {
            let micros = due_at.micros().saturating_sub(server.now().micros()).max(0);
            later(u32::try_from(micros / 1_000_000 + 1).unwrap_or(u32::MAX))
        }
        EngineError::Refused(Refusal::ClaimHeld | Refusal::LeaseHeld { .. })
        | EngineError::Store(StoreError::ClaimHeld) => later(1),
        EngineError::Refused(_)
        | EngineError::KeyTaken(_)
        | EngineError::Contended
        | EngineError::TooManyConsequences
        | EngineError::Store(_) => of_engine(error, id),
    }
}

/// A request first. What is over stays as it is, and what cannot be stopped says why.
pub(crate) async fn cancel(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let sent: CancelJob = if asked.body.is_some() { asked.read()? } else { CancelJob::default() };
    let shown = named(server, &asked, Purpose::Steer).await?;
    if shown.job().state.name().is_terminal() {
        return status_response(server, &shown, None).await;
    }
    if let Some(reason) = shown.face(server).cancel_unavailable_reason() {
        return Err(ProblemCode::NotCancelable.because(reason));
    }
    let command = JobCommand::RequestCancel {
        by: asked.principal.peer_id.clone().or(sent.requested_by_peer_id),
        reason: sent.reason.unwrap_or_else(|| DEFAULT_REASON.to_owned()),
    };
    let order = Order::new(shown.job().id.clone(), command, asked.principal.actor.clone());
    let outcome = server.daemon.engine().execute(order).await;
    let outcome = outcome.map_err(|error| of_engine(&error, &asked.id))?;
    let shown = Shown::of(server, outcome.record().clone()).await?;
    let mut response = status_response(server, &shown, None).await?;
    if !shown.job().state.name().is_terminal() {
        *response.status_mut() = StatusCode::ACCEPTED;
    }
    Ok(response)
}

/// The same job as it is now.
async fn again(server: &Server, job: &Job) -> Result<Shown, Problem> {
    let id = RecordId::from(job.id.clone());
    let loaded = server.store().load(&id).await.map_err(|error| of_store(&error))?;
    let record: Arc<Record> = loaded.ok_or_else(|| no_such_job(id.as_str()))?.record;
    Shown::of(server, record).await
}
