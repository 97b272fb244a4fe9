//! `GET /job/{id}`: a job as Ductile shows it, and with it what Ductile leaves out: the error and the attempt. A run is shown alike.

use api::ductile::DuctileJob;
use domain::BodyName;
use domain::job::Job;
use domain::run::{Run, StepEnd};
use executors::plugin::PluginInput;
use serde_json::Value;
use serde_json::value::RawValue;

use super::status;
use super::tree::family;
use crate::clock_text::text;
use crate::jobs::job_of;
use crate::render::json_or_text;
use crate::{Reply, RequestContext, Result, Server};

pub(crate) async fn read_job(server: &Server, asked: RequestContext) -> Result<Reply> {
    let record = family(server, &asked).await?;
    let shown = match record.as_run() {
        Some(run) => shown_run(run),
        None => shown(server, job_of(&record)).await?,
    };
    Ok(Reply::json(&shown))
}

/// A job in Ductile's words.
pub(super) async fn shown(server: &Server, job: &Job) -> Result<DuctileJob> {
    let result = match job.result.data {
        Some(data) => server.body_of(job, data).await?.and_then(json),
        None => None,
    };
    let input = match job.bodies.iter().find(|body| body.name == BodyName::Input) {
        Some(input) => server.body_of(job, *input).await?,
        None => None,
    };
    let told = match job.result.error {
        Some(error) => server.body_of(job, error).await?.as_deref().and_then(message),
        None => None,
    };
    Ok(DuctileJob {
        job_id: job.id.as_str().to_owned(),
        status: status::of_job(job).to_owned(),
        plugin: job.spec.executor.clone().unwrap_or_default(),
        command: command(job, input.as_deref()),
        attempt: job.attempt_count,
        result,
        error: told.or_else(|| job.state_reason.clone()).filter(|_| status::of_job(job) != "succeeded"),
        started_at: job.attempts.first().map(|attempt| text(attempt.started_at)),
        completed_at: job.completed_at.map(text),
        ..DuctileJob::default()
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
        status: status.to_owned(),
        plugin: "pipeline".to_owned(),
        command: run.begun.pipeline.clone(),
        attempt: 1,
        error: run.condemned.clone().or(failed).filter(|_| status == "failed"),
        started_at: Some(text(run.started_at)),
        completed_at: run.ended_at.map(text),
        ..DuctileJob::default()
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
    Some(json_or_text(&String::from_utf8(bytes).ok()?))
}

/// What an error says to people.
fn message(error: &[u8]) -> Option<String> {
    let error: Value = serde_json::from_slice(error).ok()?;
    Some(error.get("message").and_then(Value::as_str)?.to_owned())
}
