//! What may be asked of a deferred operation: that its service is asked now, and that it stops.

use api::{CancelJob, Problem, ProblemCode};
use domain::job::{JobCommand, Trigger};
use domain::{RecordId, Refusal};
use engine::{EngineError, Order, RunOrder};
use store::StoreError;

use super::read::{Purpose, Shown, named, status_response};
use crate::access::{Verdict, authorise};
use crate::jobs::{CANCEL_REQUESTED, count_repeat};
use crate::problem::{no_such_job, of_engine};
use crate::{Reply, RequestContext, Result, Server};

/// Asks the service once, within the same limits as every other question.
pub(crate) async fn poll(server: &Server, asked: RequestContext) -> Result<Reply> {
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
    let id = RecordId::from(shown.job().id.clone());
    let record = server.load(&id).await?.ok_or_else(|| no_such_job(id.as_str()))?.record;
    status_response(server, &Shown::of(server, record).await?, None).await
}

/// Too soon, or being asked already: both mean "later", and neither says anything about the work.
fn not_now(server: &Server, error: &EngineError, id: &str) -> Problem {
    let later = |seconds: u32| {
        ProblemCode::TooSoon.because("its service was asked just now; ask again later").retry_after(seconds)
    };
    if let EngineError::Refused(Refusal::NotDue { due_at }) = error {
        let micros = due_at.micros().saturating_sub(server.now().micros()).max(1);
        return later(u32::try_from(micros.unsigned_abs().div_ceil(1_000_000)).unwrap_or(u32::MAX));
    }
    let is_asked = matches!(
        error,
        EngineError::Refused(Refusal::ClaimHeld | Refusal::LeaseHeld { .. })
            | EngineError::Store(StoreError::ClaimHeld)
    );
    if is_asked { later(1) } else { of_engine(error, id) }
}

/// A request first, which is kept. What is over stays as it is, and what cannot be stopped says why.
pub(crate) async fn cancel(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: CancelJob = asked.read_or_default()?;
    let shown = named(server, &asked, Purpose::Steer).await?;
    let is_over = shown.job().state.name().is_terminal();
    let not_cancelable = |reason: String| {
        server.audit.note(&asked.principal.actor, asked.operation.name, &asked.id, Verdict::NotCancelable);
        ProblemCode::NotCancelable.because(reason)
    };
    if let (false, Some(reason)) = (is_over, shown.face(server).cancel_unavailable_reason()) {
        return Err(not_cancelable(reason));
    }
    // Where it is may have changed since: the rules have the last word.
    let command = JobCommand::CancelOrRefuse {
        by: asked.principal.peer_id.clone().or(sent.requested_by_peer_id),
        reason: sent.reason.unwrap_or_else(|| CANCEL_REQUESTED.to_owned()),
    };
    let order = Order::new(shown.job().id.clone(), command, asked.principal.actor.clone());
    let outcome = match server.daemon.engine().execute(order).await {
        Err(EngineError::Refused(Refusal::NotCancelable { reason })) => return Err(not_cancelable(reason)),
        outcome => outcome.map_err(|error| of_engine(&error, &asked.id))?,
    };
    count_repeat(server, &outcome);
    let shown = Shown::of(server, outcome.record().clone()).await?;
    let reply = status_response(server, &shown, None).await?;
    Ok(if shown.job().state.name().is_terminal() { reply } else { reply.accepted() })
}

/// Makes another attempt of what failed, where there is time for it and what it was asked to do is still there.
pub(crate) async fn retry(server: &Server, asked: RequestContext) -> Result<Reply> {
    let shown = named(server, &asked, Purpose::Steer).await?;
    authorise::check_executor(&asked.principal, shown.job().spec.executor.as_deref())?;
    if !shown.face(server).may_be_retried(server.now()) {
        let told = "only what failed is retried, while its time is not over and its input is kept; see allowed_actions";
        return Err(ProblemCode::Refused.because(told));
    }
    let run = RunOrder { actor: asked.principal.actor.clone(), keys: Vec::new() };
    let retried = server.daemon.run_now(&shown.job().id, Trigger::Retry, run).await;
    let record = retried.map_err(|error| of_engine(&error, &asked.id))?;
    status_response(server, &Shown::of(server, record).await?, None).await
}
