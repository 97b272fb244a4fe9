//! Views as text and columns: the state of a record as JSON, and beside it what is sorted or filtered by.
//!
//! Columns are a pure function of the state, so that `verify` can compare every one of them.

use std::sync::Arc;

use domain::event::Event;
use domain::job::{Job, JobStateName};
use domain::operation::{Operation, OperationStatus};
use domain::run::Run;
use domain::{Record, RecordId, Timestamp};

use crate::StoreError;

/// The format of the stored views. Raise it when the JSON of a state changes; lower ones are rebuilt at start.
pub const VIEW_FORMAT: i64 = 7;

/// Room for most views, so that they are not moved while they grow.
const USUAL_VIEW_BYTES: usize = 2_048;

/// The columns of a job beside its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobColumns<'a> {
    /// Where it is.
    pub state: JobStateName,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
    /// Who owns it.
    pub owner_peer_id: Option<&'a str>,
    /// Who created it.
    pub created_by_peer_id: Option<&'a str>,
    /// Its workstream.
    pub session_id: Option<&'a str>,
    /// Who may see it.
    pub circle: Option<&'a str>,
}

/// The columns of an operation beside its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationColumns<'a> {
    /// The job that it belongs to.
    pub job_id: &'a str,
    /// One of the eight statuses.
    pub status: OperationStatus,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
    /// When it ended while the work may still run outside.
    pub orphaned_at: Option<Timestamp>,
}

/// The columns of an event or a run beside its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingColumns<'a> {
    /// Where it is.
    pub status: &'static str,
    /// The type of an event; the pipeline of a run.
    pub name: &'a str,
    /// Who may see it.
    pub circle: Option<&'a str>,
    /// What names the same.
    pub dedupe_key: Option<&'a str>,
    /// When it was published or began.
    pub begun_at: Timestamp,
    /// When anything last happened to it.
    pub updated_at: Timestamp,
}

impl<'a> From<&'a Event> for RoutingColumns<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            status: event.status().as_str(),
            name: &event.said.kind,
            circle: event.said.circle.as_deref(),
            dedupe_key: event.said.dedupe_key.as_deref(),
            begun_at: event.published_at,
            updated_at: event.updated_at,
        }
    }
}

impl<'a> From<&'a Run> for RoutingColumns<'a> {
    fn from(run: &'a Run) -> Self {
        Self {
            status: run.state().as_str(),
            name: &run.begun.pipeline,
            circle: run.begun.circle.as_deref(),
            dedupe_key: run.begun.dedupe_key.as_deref(),
            begun_at: run.started_at,
            updated_at: run.updated_at,
        }
    }
}

impl<'a> From<&'a Job> for JobColumns<'a> {
    fn from(job: &'a Job) -> Self {
        Self {
            state: job.state.name(),
            updated_at: job.updated_at,
            owner_peer_id: job.spec.owner_peer_id.as_deref(),
            created_by_peer_id: job.spec.created_by_peer_id.as_deref(),
            session_id: job.spec.session_id.as_deref(),
            circle: job.spec.circle.as_deref(),
        }
    }
}

impl<'a> From<&'a Operation> for OperationColumns<'a> {
    fn from(operation: &'a Operation) -> Self {
        Self {
            job_id: operation.link.job_id.as_str(),
            status: operation.status(),
            updated_at: operation.updated_at,
            orphaned_at: operation.orphan().and(operation.completed_at()),
        }
    }
}

/// The state as JSON.
pub fn encode_view(record: &Record) -> String {
    let mut view = Vec::with_capacity(USUAL_VIEW_BYTES);
    match record {
        Record::Job(job) => serde_json::to_writer(&mut view, job),
        Record::Operation(operation) => serde_json::to_writer(&mut view, operation),
        Record::Event(event) => serde_json::to_writer(&mut view, event),
        Record::Run(run) => serde_json::to_writer(&mut view, run),
    }
    .expect("states have only string keys and finite numbers");
    String::from_utf8(view).expect("JSON is UTF-8")
}

/// The state from its JSON.
pub fn decode_view(id: &RecordId, view: &str) -> Result<Arc<Record>, StoreError> {
    let broken =
        |error: serde_json::Error| StoreError::Broken(format!("the view of {id} cannot be read: {error}"));
    Ok(Arc::new(match id {
        RecordId::Job(job_id) => {
            let mut job: Box<Job> = serde_json::from_str(view).map_err(broken)?;
            job.id = job_id.clone();
            Record::Job(job)
        }
        RecordId::Operation(operation_id) => {
            let mut operation: Box<Operation> = serde_json::from_str(view).map_err(broken)?;
            operation.id = operation_id.clone();
            Record::Operation(operation)
        }
        RecordId::Event(event_id) => {
            let mut event: Box<Event> = serde_json::from_str(view).map_err(broken)?;
            event.id = event_id.clone();
            Record::Event(event)
        }
        RecordId::Run(run_id) => {
            let mut run: Box<Run> = serde_json::from_str(view).map_err(broken)?;
            run.id = run_id.clone();
            Record::Run(run)
        }
    }))
}
