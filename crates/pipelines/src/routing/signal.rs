//! That a job or an operation has ended, as an event: published in the commit of the end, if a pipeline listens to it.
//!
//! The steps of pipelines say nothing here: what follows them is their own pipeline's business, and so no hook ever calls itself. Nor do
//! private jobs: everybody in the circle reads its events.

use domain::event::{EventCommand, NewEvent, Origin};
use domain::job::{Job, JobState};
use domain::operation::{Operation, OperationStatus};
use domain::{BodyName, JobId, Record};
use serde_json::{Value, json};

use super::{FollowUps, Router, derived};
use crate::Signal;

impl Router {
    /// What is published because this record, which is this job or belongs to it, has ended at this version of its stream.
    pub(super) fn end_published(&self, record: &Record, job: &Job, version: u64) -> Option<FollowUps> {
        if job.spec.is_private() {
            return None;
        }
        let (job_id, signal, payload, circle) = if let Some(operation) = record.as_operation() {
            let signal = of_operation(operation)?;
            (&operation.link.job_id, signal, told_of_operation(operation), operation.link.circle.clone())
        } else {
            let job = record.as_job().filter(|job| job.spec.step.is_none())?;
            (&job.id, of_job(job)?, told_of_job(job), job.spec.circle.clone())
        };
        if self.routes().on_hook(signal).is_empty() {
            return None;
        }
        Some(published(record.id().as_str(), job_id, signal, &payload, circle, version))
    }
}

fn published(
    ended: &str,
    job_id: &JobId,
    signal: Signal,
    payload: &Value,
    circle: Option<String>,
    version: u64,
) -> FollowUps {
    let id = derived::ended_event_id(ended, version);
    let mut also = FollowUps::default();
    let payload = also.keep(id.clone(), BodyName::Payload, payload.to_string().into_bytes());
    let origin = Origin::JobEnded { job_id: job_id.clone() };
    let event = NewEvent { circle, ..NewEvent::new(signal.as_str(), payload, origin) };
    also.then(id, EventCommand::Publish(Box::new(event)));
    also
}

fn of_job(job: &Job) -> Option<Signal> {
    Some(match job.state {
        JobState::Completed => Signal::JobCompleted,
        JobState::Failed if job.ran_out_of_time() => Signal::JobTimedOut,
        JobState::Failed => Signal::JobFailed,
        JobState::Cancelled => Signal::JobCancelled,
        JobState::Expired => Signal::JobExpired,
        JobState::Unavailable { .. } => Signal::JobUnavailable,
        JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => return None,
    })
}

fn of_operation(operation: &Operation) -> Option<Signal> {
    match operation.status() {
        OperationStatus::Completed => Some(Signal::OperationCompleted),
        OperationStatus::Failed
        | OperationStatus::TimedOut
        | OperationStatus::Cancelled
        | OperationStatus::Expired
        | OperationStatus::Unknown => Some(Signal::OperationFailed),
        OperationStatus::Pending | OperationStatus::Running => None,
    }
}

/// Nothing private: the result itself is the job's.
fn told_of_job(job: &Job) -> Value {
    json!({
        "job_id": job.id.as_str(),
        "plugin": job.spec.executor,
        "kind": job.spec.kind,
        "title": job.spec.title,
        "status": job.state.name().as_str(),
        "reason": job.state_reason,
        "result": job.result.summary,
        "attempts": job.attempt_count,
    })
}

fn told_of_operation(operation: &Operation) -> Value {
    json!({
        "operation_id": operation.id.as_str(),
        "job_id": operation.link.job_id.as_str(),
        "kind": operation.link.kind,
        "status": operation.status().as_str(),
        "polls": operation.polls,
    })
}
