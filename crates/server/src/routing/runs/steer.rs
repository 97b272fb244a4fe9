//! `POST /runs/{id}/cancel` and `/retry`: a run is stopped with all that it has begun, or goes on from where it failed.

use api::{CancelRun, ProblemCode, RunAnswer, RunRetried};
use domain::job::Trigger;
use domain::run::{NoRetry, RunCommand, retryable_jobs};
use domain::{JobId, Record, RunId};
use engine::{EngineError, Order, RunOrder};
use futures::future::join_all;

use super::shown::{run_of, whole};
use super::visible_run;
use crate::access::authorise;
use crate::jobs::{Begun, CANCEL_REQUESTED, begin, job_of};
use crate::keyed;
use crate::problem::{no_such, of_engine};
use crate::reply::{Reply, render};
use crate::{RequestContext, Result, Server};

pub(crate) async fn cancel(server: &Server, asked: RequestContext) -> Result<Reply> {
    let sent: CancelRun = asked.read_or_default()?;
    let keyed = match begin(server, &asked).await? {
        Begun::Earlier(response) => return Ok(response),
        Begun::New(keyed) => keyed,
    };
    let loaded = visible_run(server, &asked).await?;
    let command = RunCommand::RequestCancel {
        by: Some(asked.principal.actor.to_string()),
        reason: sent.reason.unwrap_or_else(|| CANCEL_REQUESTED.to_owned()),
    };
    let id = run_of(&loaded.record).id.clone();
    let order = Order::new(id.clone(), command, asked.principal.actor.clone());
    let render = |record: &Record| render(&RunAnswer { run: whole(run_of(record)) });
    let reply = keyed::give(server, keyed.as_ref(), order, &asked.id, render).await?;
    ask_all_to_stop(server, &id, &asked).await;
    Ok(reply)
}

/// Asks the rest of the open jobs to stop, a few in each commit. The worker of runs does so too, but not on a node that drains.
async fn ask_all_to_stop(server: &Server, id: &RunId, asked: &RequestContext) {
    loop {
        let order = Order::new(id.clone(), RunCommand::ContinueCancel, asked.principal.actor.clone());
        let Ok(outcome) = server.daemon.engine().execute(order).await else { return };
        if run_of(outcome.record()).not_yet_cancelled().next().is_none() {
            return;
        }
    }
}

/// Tries every step again that failed and of whose failure nothing was made.
pub(crate) async fn retry(server: &Server, asked: RequestContext) -> Result<Reply> {
    let loaded = visible_run(server, &asked).await?;
    let jobs = retryable_jobs(run_of(&loaded.record), server.now()).map_err(|why| match why {
        NoRetry::MovedOn => ProblemCode::StepMovedOn
            .because("the run was stopped, or has gone on from what failed: publish its event again"),
        NoRetry::NothingFailed => ProblemCode::NothingToRetry.because("no step of the run has failed"),
    })?;
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
    Ok(Reply::json(&RunRetried { retried, run: whole(run_of(&loaded.record)) }))
}

/// What one may not run by the job's own id, one may not run by its run either.
async fn check_executor(server: &Server, asked: &RequestContext, job_id: &JobId) -> Result<()> {
    let loaded = server.load(&job_id.clone().into()).await?;
    let loaded = loaded.ok_or_else(|| no_such("job", job_id.as_str()))?;
    authorise::check_executor(&asked.principal, job_of(&loaded.record).spec.executor.as_deref())
}
