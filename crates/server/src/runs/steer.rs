//! `POST /runs/{id}/cancel` and `/retry`: a run is stopped with all that it has begun, or goes on from where it failed.

use api::{CancelRun, Problem, ProblemCode, RunAnswer, RunRetried};
use axum::response::Response;
use domain::job::Trigger;
use domain::run::{Run, RunCommand, StepEnd, decide};
use domain::{Decision, JobId, Record, Timestamp};
use engine::{EngineError, Order, RunOrder};
use futures::future::join_all;

use super::read::visible_run;
use super::shown::{Extent, run_of, shown};
use crate::answer::{self, Given};
use crate::asked::Asked;
use crate::authorise;
use crate::jobs::{Begun, begin, job_of};
use crate::keyed::{self, Keyed};
use crate::problem::{no_such, of_engine, of_store};
use crate::serve::Server;

const DEFAULT_REASON: &str = "cancel_requested";

pub(crate) async fn cancel(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let sent: CancelRun = if asked.body.is_some() { asked.read()? } else { CancelRun::default() };
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let loaded = visible_run(server, &asked).await?;
    let command = RunCommand::RequestCancel {
        by: Some(asked.principal.actor.to_string()),
        reason: sent.reason.unwrap_or_else(|| DEFAULT_REASON.to_owned()),
    };
    let id = run_of(&loaded.record).id.clone();
    let mut order = Order::new(id, command, asked.principal.actor.clone());
    let render = |record: &Record| answer::render(&RunAnswer { run: shown(run_of(record), Extent::Whole) });
    if let Some(keyed) = &keyed {
        order.keys.push(keyed.order_key(server.now(), render));
    }
    match server.daemon.engine().execute(order).await {
        Ok(outcome) => {
            let sent = keyed.as_ref().and_then(Keyed::sent);
            Ok(answer::bytes(sent.unwrap_or_else(|| render(outcome.record())), Given::Now))
        }
        Err(error) => keyed::refused(keyed.as_ref(), &error, &asked.id),
    }
}

/// Tries every step again that failed and of whose failure nothing was made.
pub(crate) async fn retry(server: &Server, asked: Asked) -> Result<Response, Problem> {
    let loaded = visible_run(server, &asked).await?;
    let jobs = failed_jobs(run_of(&loaded.record), server.now())?;
    for job_id in &jobs {
        check_executor(server, &asked, job_id).await?;
    }
    let again = jobs.iter().map(|job_id| {
        let order = RunOrder { actor: asked.principal.actor.clone(), keys: Vec::new() };
        server.daemon.run_now(job_id, Trigger::Retry, order)
    });
    let tried: Vec<Result<_, EngineError>> = join_all(again).await;
    let retried = jobs.iter().zip(&tried).filter(|(_, tried)| tried.is_ok());
    let retried: Vec<String> = retried.map(|(job_id, _)| job_id.as_str().to_owned()).collect();
    // Whoever has tried some of them a moment before was faster: what is left is enough.
    if let (true, Some(Err(error))) = (retried.is_empty(), tried.first()) {
        return Err(of_engine(error, &asked.id));
    }
    let loaded = visible_run(server, &asked).await?;
    Ok(answer::json(&RunRetried { retried, run: shown(run_of(&loaded.record), Extent::Whole) }))
}

/// The jobs of the steps that may be done again, by the rules of the run.
fn failed_jobs(run: &Run, now: Timestamp) -> Result<Vec<JobId>, Problem> {
    let mut has_failed = false;
    let mut jobs = Vec::new();
    for (visit, seen) in run.numbered() {
        match seen.end() {
            Some(StepEnd::Failed { .. } | StepEnd::Cancelled) => has_failed = true,
            Some(StepEnd::Completed { .. } | StepEnd::Skipped) | None => continue,
        }
        let Some(job_id) = seen.job_id().cloned() else { continue };
        let command = RunCommand::ReopenStep { visit, job_id: job_id.clone() };
        if matches!(decide(run, &command, now), Decision::Facts { .. }) {
            jobs.push(job_id);
        }
    }
    match (jobs.is_empty(), has_failed) {
        (false, _) => Ok(jobs),
        (true, true) => Err(ProblemCode::StepMovedOn
            .because("the run was stopped, or has gone on from what failed: publish its event again")),
        (true, false) => Err(ProblemCode::NothingToRetry.because("no step of the run has failed")),
    }
}

/// What one may not run by the job's own id, one may not run by its run either.
async fn check_executor(server: &Server, asked: &Asked, job_id: &JobId) -> Result<(), Problem> {
    let loaded = server.store().load(&job_id.clone().into()).await.map_err(|error| of_store(&error))?;
    let loaded = loaded.ok_or_else(|| no_such("job", job_id.as_str()))?;
    authorise::check_executor(&asked.principal, job_of(&loaded.record).spec.executor.as_deref())
}
