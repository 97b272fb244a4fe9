//! How a job shall be carried out, put together from the record, the caller's request and the prompt.

use std::borrow::Cow;

use domain::BodyName;
use domain::job::Job;
use serde::Serialize;
use serde_json::value::RawValue;

use super::raw_object::{RawObject, raw};
use super::{Bodies, Extent};

/// What a job that says nothing gets.
pub(crate) const DEFAULT_EXECUTION: &str = r#"{"target":{},"schedule":{},"delivery":{"kind":"ask"}}"#;

#[derive(Serialize)]
struct Prompt<'a> {
    body: &'a str,
    source: &'static str,
}

/// The request of a job, with its execution merged in, and that execution alone.
pub(super) fn request_and_execution(
    job: &Job,
    bodies: &Bodies,
    extent: Extent,
) -> (Cow<'static, RawValue>, Cow<'static, RawValue>) {
    let mut request = bodies.named(job, BodyName::Request).and_then(RawObject::parse).unwrap_or_default();
    let callers = request.remove("execution");
    let callers = callers.as_ref().and_then(|text| RawObject::parse(text.get())).unwrap_or_default();
    let execution = execution(job, callers, bodies, extent).to_raw();
    request.set("execution", &*execution);
    (request.to_raw(), execution)
}

/// What of the execution a list shows: known without a body.
pub(super) fn execution_in_short(job: &Job) -> Cow<'static, RawValue> {
    let mut short = managed(job);
    short.remove("schedule");
    short.to_raw()
}

/// When the job was asked for, as it was written.
pub(super) fn due_at(job: &Job) -> Option<String> {
    let managed = managed(job);
    let schedule = managed.get("schedule")?;
    RawObject::parse(schedule.get())?.text("due_at")
}

fn managed(job: &Job) -> RawObject<'_> {
    let text = job.spec.execution.as_ref().map_or(DEFAULT_EXECUTION, domain::Json::as_str);
    RawObject::parse(text).unwrap_or_default()
}

fn execution<'a>(job: &'a Job, callers: RawObject<'a>, bodies: &Bodies, extent: Extent) -> RawObject<'a> {
    let spec = &job.spec;
    let mut execution = RawObject::default();
    if extent == Extent::Whole && job.purged_at.is_none() {
        match (bodies.named(job, BodyName::Prompt), callers.get("prompt")) {
            (Some(body), _) => execution.set("prompt", &Prompt { body, source: "inline" }),
            (None, Some(prompt)) => execution.set("prompt", prompt),
            (None, None) => execution.set("prompt", &Prompt { body: &spec.title, source: "title" }),
        }
    }
    let input = bodies.named(job, BodyName::Input).filter(|_| extent == Extent::Whole);
    // Whoever creates jobs without this server may have left another text: it is not shown then.
    if let Some(Ok(input)) = input.map(|text| RawValue::from_string(text.to_owned())) {
        execution.set("input", &*input);
    }
    for (key, value) in managed(job).members() {
        execution.add(key, value);
    }
    if let Some(lane) = &spec.lane {
        execution.set("lane", lane);
    }
    if spec.priority != 0 {
        execution.set("priority", &spec.priority);
    }
    if spec.executor.is_some() {
        execution.set("retry", &spec.retry);
    }
    if let Some(seconds) = spec.timeout_seconds {
        execution.set("timeout_seconds", &seconds);
    }
    if extent == Extent::Whole && !spec.tags.is_empty() {
        execution.set("tags", &spec.tags);
    }
    for (key, value) in callers.members() {
        execution.add(key, raw(value.get().to_owned()));
    }
    execution
}
