//! Calls that are waited for: completed or failed within the host's bound, and never a long process behind the caller's back.
//!
//! The wait is a task of its own: a caller who goes away does not leave the work behind.

use std::sync::Arc;
use std::time::Duration;

use api::deferred::{InvokeError, InvokeOutcome};
use api::{Problem, ProblemCode};
use axum::response::Response;
use domain::RecordId;
use domain::job::{Job, JobCommand, JobState};
use engine::Order;

use super::capability::Capability;
use super::read::result_of;
use crate::answer;
use crate::jobs::job_of;
use crate::problem::of_engine;
use crate::serve::Server;
use crate::wait;

/// How long a caller may wait: what it asks for, within what the host grants.
pub(super) fn within(capability: &Capability, timeout_ms: Option<u32>) -> Duration {
    let granted = capability.policy.invoke_timeout_ms;
    Duration::from_millis(u64::from(timeout_ms.map_or(granted, |asked| asked.min(granted))))
}

/// How the job ended, if it has by then; else it is asked to stop, and the call has failed.
pub(super) async fn outcome(
    server: &Arc<Server>,
    id: &RecordId,
    within: Duration,
    actor: Arc<str>,
) -> Result<Response, Problem> {
    let (server, id) = (server.clone(), id.clone());
    let waited = tokio::spawn(async move { settled(&server, &id, within, actor).await });
    let outcome = waited.await.map_err(|_| ProblemCode::Internal.because("the wait has broken off"))??;
    Ok(answer::json(&outcome))
}

async fn settled(
    server: &Server,
    id: &RecordId,
    within: Duration,
    actor: Arc<str>,
) -> Result<InvokeOutcome, Problem> {
    let enough =
        |job: &Job| job.state.name().is_terminal() || matches!(job.state, JobState::AwaitingExternal { .. });
    let record = wait::until(server, id, within, enough).await?;
    let job = job_of(&record);
    if job.state.name().is_terminal() {
        return ended(server, job).await;
    }
    let (code, message) = if matches!(job.state, JobState::AwaitingExternal { .. }) {
        ("deferred-not-allowed", "the executor left the work outside although its caller waits for it")
    } else {
        ("action-timeout", "the work was not over in time, and was asked to stop")
    };
    stop(server, id, code, actor).await?;
    Ok(failed(job, code, message))
}

async fn stop(server: &Server, id: &RecordId, reason: &str, actor: Arc<str>) -> Result<(), Problem> {
    let command = JobCommand::RequestCancel { by: None, reason: reason.to_owned() };
    let order = Order::new(id.clone(), command, actor);
    server.daemon.engine().execute(order).await.map_err(|error| of_engine(&error, id.as_str()))?;
    Ok(())
}

async fn ended(server: &Server, job: &Job) -> Result<InvokeOutcome, Problem> {
    if matches!(job.state, JobState::Completed) {
        return Ok(InvokeOutcome {
            status: "completed".to_owned(),
            outcome_id: job.id.as_str().to_owned(),
            result: Some(result_of(server, job).await?),
            error: None,
        });
    }
    let state = job.state.name().as_str();
    // A call that was stopped because it took too long says so whenever it is asked about.
    let stopped_because = job.cancel.as_ref().map(|cancel| cancel.reason.as_str());
    let code = if matches!(job.state, JobState::Cancelled | JobState::Expired) {
        stopped_because.unwrap_or(state)
    } else {
        job.state_reason.as_deref().unwrap_or(state)
    };
    Ok(failed(job, code, &format!("it is {state}")))
}

fn failed(job: &Job, code: &str, message: &str) -> InvokeOutcome {
    InvokeOutcome {
        status: "failed".to_owned(),
        outcome_id: job.id.as_str().to_owned(),
        result: None,
        error: Some(InvokeError { code: code.to_owned(), message: message.to_owned() }),
    }
}
