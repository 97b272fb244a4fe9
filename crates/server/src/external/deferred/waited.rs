//! Calls that are waited for: completed or failed within the host's bound, and never a long process behind the caller's back.
//!
//! The wait is a task of its own: a caller who goes away does not leave the work behind.

use std::sync::Arc;
use std::time::Duration;

use api::ProblemCode;
use api::deferred::{InvokeError, InvokeOutcome};
use domain::job::{ACTION_TIMEOUT, CallerWait, Ended, Job, JobCommand, JobState, Phase};
use domain::limit::{caller_wait, ended_by};
use domain::limits::{MAX_NOTE_BYTES, cut};
use domain::{Record, RecordId};
use engine::Order;
use serde_json::Value;

use super::capability::Capability;
use super::read::result_of;
use crate::jobs::job_of;
use crate::problem::of_engine;
use crate::render::limit;
use crate::wait;
use crate::{Reply, Result, Server};

/// How long a caller may wait: what it asks for, within what the host grants.
pub(super) fn within(capability: &Capability, timeout_ms: Option<u32>) -> Duration {
    let (CallerWait::Asked(ms) | CallerWait::Host(ms)) = wait_of(capability, timeout_ms);
    Duration::from_millis(ms)
}

/// The same, and whose word it is.
pub(super) fn wait_of(capability: &Capability, timeout_ms: Option<u32>) -> CallerWait {
    let granted = capability.policy.invoke_timeout_ms;
    match timeout_ms {
        Some(asked) if asked < granted => CallerWait::Asked(asked.into()),
        Some(_) | None => CallerWait::Host(granted.into()),
    }
}

/// What a wait came to.
pub(crate) enum Settled {
    /// The job is over.
    Ended(Arc<Record>),
    /// It is not, and was asked to stop.
    Stopped {
        /// As it was when the wait ended.
        record: Arc<Record>,
        /// Why, for programs.
        code: &'static str,
        /// Why, for people.
        message: String,
    },
}

/// The code of a call whose executor left the work outside although its caller waits.
const DEFERRED_NOT_ALLOWED: &str = "deferred-not-allowed";

/// How the job ended, if it has by then; else it is asked to stop, and the call has failed.
pub(super) async fn settle(
    server: &Arc<Server>,
    id: &RecordId,
    within: Duration,
    actor: Arc<str>,
) -> Result<Settled> {
    let (server, id) = (server.clone(), id.clone());
    let waited = tokio::spawn(async move { settled(&server, &id, within, actor).await });
    waited.await.map_err(|_| ProblemCode::Internal.because("the wait has broken off"))?
}

/// The answer to whoever waited.
pub(super) async fn outcome(server: &Server, settled: &Settled) -> Result<Reply> {
    let outcome = match settled {
        Settled::Ended(record) => ended(server, job_of(record)).await?,
        Settled::Stopped { record, code, message } => failed(job_of(record), code, message),
    };
    Ok(Reply::json(&outcome))
}

async fn settled(server: &Server, id: &RecordId, within: Duration, actor: Arc<str>) -> Result<Settled> {
    let enough =
        |job: &Job| job.state.name().is_terminal() || matches!(job.state, JobState::AwaitingExternal { .. });
    let record = wait::until(server, id, within, enough).await?;
    let job = job_of(&record);
    if job.state.name().is_terminal() {
        return Ok(Settled::Ended(record));
    }
    let (code, message) = if matches!(job.state, JobState::AwaitingExternal { .. }) {
        let message = "the executor left the work outside although its caller waits for it".to_owned();
        (DEFERRED_NOT_ALLOWED, message)
    } else {
        let limit = limit::sentence(&limit::shown(caller_wait(job, server.daemon.policy())));
        (ACTION_TIMEOUT, format!("the work was not over in time, and was asked to stop: {limit}"))
    };
    stop(server, id, code, actor).await?;
    Ok(Settled::Stopped { record, code, message })
}

async fn stop(server: &Server, id: &RecordId, reason: &str, actor: Arc<str>) -> Result<()> {
    let command = JobCommand::RequestCancel { by: None, reason: reason.to_owned() };
    let order = Order::new(id.clone(), command, actor);
    server.daemon.engine().execute(order).await.map_err(|error| of_engine(&error, id.as_str()))?;
    Ok(())
}

async fn ended(server: &Server, job: &Job) -> Result<InvokeOutcome> {
    if matches!(job.state, JobState::Completed) {
        return Ok(InvokeOutcome {
            status: "completed".to_owned(),
            outcome_id: job.id.as_str().to_owned(),
            result: Some(result_of(server, job).await?),
            error: None,
        });
    }
    let code = why_over(job);
    let message = what_failed(job, error_of(server, job).await?.as_deref(), code);
    // Whoever waits has left nothing outside.
    let reached = ended_by(job, None, server.daemon.policy()).into_iter().next();
    Ok(match reached.map(limit::shown) {
        Some(reached) => failed(
            job,
            code,
            &format!("{message}; {}: {}", limit::ENDED_BY_A_LIMIT, limit::sentence(&reached)),
        ),
        None => failed(job, code, &message),
    })
}

/// What failed and why, as a sentence, and the code after it.
fn what_failed(job: &Job, message: Option<&str>, code: &str) -> String {
    let executor = job.spec.executor.as_deref().unwrap_or_default();
    let what = match job.state.phase() {
        Phase::Ended(Ended::Cancelled) => format!("the work of {executor:?} was cancelled"),
        Phase::Ended(Ended::Expired) => format!("the work of {executor:?} was not over by its deadline"),
        Phase::Ended(Ended::Unavailable { .. }) => format!("{executor:?} was lost while it worked"),
        Phase::Queued { .. }
        | Phase::Held(_)
        | Phase::Waiting(_)
        | Phase::Ended(Ended::Completed | Ended::Failed) => format!("{executor:?} failed"),
    };
    match message {
        Some(message) => format!("{what}: {message} ({code})"),
        None => format!("{what} ({code})"),
    }
}

/// What the executor said of its failure, if it said it in words.
async fn error_of(server: &Server, job: &Job) -> Result<Option<String>> {
    let Some(body) = job.result.error else { return Ok(None) };
    let bytes = server.body_of(job, body).await?.unwrap_or_default();
    let error: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let words = error.as_str().or_else(|| error["message"].as_str()).or_else(|| error["error"].as_str());
    Ok(words.filter(|words| !words.is_empty()).map(|words| cut(words, MAX_NOTE_BYTES).to_owned()))
}

/// Why a job that is over without a result is so, short. One that was stopped because it took too long says so whenever it is asked.
pub(crate) fn why_over(job: &Job) -> &str {
    let state = job.state.name().as_str();
    let asked_in_time = job.cancel.as_ref().filter(|cancel| !cancel.is_late());
    let stopped_because = asked_in_time.map(|cancel| cancel.reason.as_str());
    if matches!(job.state, JobState::Cancelled | JobState::Expired) {
        stopped_because.unwrap_or(state)
    } else {
        job.state_reason.as_deref().unwrap_or(state)
    }
}

fn failed(job: &Job, code: &str, message: &str) -> InvokeOutcome {
    InvokeOutcome {
        status: "failed".to_owned(),
        outcome_id: job.id.as_str().to_owned(),
        result: None,
        error: Some(InvokeError { code: code.to_owned(), message: message.to_owned() }),
    }
}
