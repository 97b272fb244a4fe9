//! `GET /job/{id}`: a job as Ductile shows it, and with it what Ductile leaves out: the error and the attempt. A run is shown alike.

use api::Problem;
use api::ductile::DuctileJob;
use domain::job::Job;
use domain::run::{Run, StepEnd};
use domain::{BodyName, RecordId};
use executors::plugin::PluginInput;
use serde_json::Value;
use serde_json::value::RawValue;

use super::status;
use super::tree::{Family, family};
use crate::clock_text::text;
use crate::problem::of_store;
use crate::reply::Reply;
use crate::request_context::RequestContext;
use crate::server::Server;

pub(crate) async fn read_job(server: &Server, asked: RequestContext) -> Result<Reply, Problem> {
    let shown = match family(server, &asked).await? {
        Family::Run(run) => shown_run(&run),
        Family::Job(job) => shown(server, &job).await?,
    };
    Ok(Reply::json(&shown))
}

/// A job in Ductile's words.
pub(super) async fn shown(server: &Server, job: &Job) -> Result<DuctileJob, Problem> {
    let id = RecordId::from(job.id.clone());
    let read = async |body| server.store().body(&id, body).await.map_err(|error| of_store(&error));
    let result = match job.result.data {
        Some(data) => read(data).await?.and_then(json),
        None => None,
    };
    let input = match job.bodies.iter().find(|body| body.name == BodyName::Input) {
        Some(input) => read(*input).await?,
        None => None,
    };
    let told = match job.result.error {
        Some(error) => read(error).await?.as_deref().and_then(message),
        None => None,
    };
    Ok(DuctileJob {
        job_id: job.id.as_str().to_owned(),
        parent_job_id: None,
        status: status::of_job(job).to_owned(),
        plugin: job.spec.executor.clone().unwrap_or_default(),
        command: command(job, input.as_deref()),
        attempt: job.attempt_count,
        result,
        error: told.or_else(|| job.state_reason.clone()).filter(|_| status::of_job(job) != "succeeded"),
        last_error: None,
        started_at: job.attempts.first().map(|attempt| text(attempt.started_at)),
        completed_at: job.completed_at.map(text),
    })
}

fn shown_run(run: &Run) -> DuctileJob {
    let failed = run.visits.iter().rev().find_map(|visit| match visit.end() {
        Some(StepEnd::Failed { code }) => Some(code.clone()),
        Some(StepEnd::Completed { .. } | StepEnd::Skipped | StepEnd::Cancelled) | None => None,
    });
    let status = status::of_run(run);
    DuctileJob {
        job_id: run.id.as_str().to_owned(),
        parent_job_id: None,
        status: status.to_owned(),
        plugin: "pipeline".to_owned(),
        command: run.begun.pipeline.clone(),
        attempt: 1,
        result: None,
        error: run.condemned.clone().or(failed).filter(|_| status == "failed"),
        last_error: None,
        started_at: Some(text(run.started_at)),
        completed_at: run.ended_at.map(text),
    }
}

/// What a plugin was asked; what the job is called if it is no plugin's, or its input was purged.
fn command(job: &Job, input: Option<&[u8]>) -> String {
    match input.and_then(|input| PluginInput::read(input).ok()) {
        Some(input) => input.command().to_owned(),
        None => job.spec.kind.clone(),
    }
}

fn json(bytes: Vec<u8>) -> Option<Box<RawValue>> {
    let text = String::from_utf8(bytes).ok()?;
    RawValue::from_string(text.clone()).or_else(|_| serde_json::value::to_raw_value(&text)).ok()
}

/// What an error says to people.
fn message(error: &[u8]) -> Option<String> {
    let error: Value = serde_json::from_slice(error).ok()?;
    Some(error.get("message").and_then(Value::as_str)?.to_owned())
}
