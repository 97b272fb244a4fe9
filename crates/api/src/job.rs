//! `/jobs` and `/work`: what is sent and what comes back.

pub mod batch;
mod create;
mod result;
mod status;
mod update;
pub mod why;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use create::{CreateJob, Retry};
pub use result::{JobEnd, JobResult, ResultAnswer, ResultNotReady};
pub use status::{
    Attempt, AttemptError, JobStatus, Outside, OutsideError, ProgressEvent, ProtocolCancel, ReleaseResult,
    Runner,
};
pub use update::{AnswerJob, CancelJob, RunJob, UpdateJob};

/// A job was accepted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobCreated<'a> {
    /// Its id.
    pub job_id: Cow<'a, str>,
    /// The same id.
    pub work_id: Cow<'a, str>,
    /// Where it is.
    pub status: JobStatus<'a>,
}

/// Where a job is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StatusAnswer<'a> {
    /// Where it is.
    pub status: JobStatus<'a>,
}

/// A page of jobs, newest change first. In `view=summary` the keys of `status` that need the job's bodies are left out.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobList<'a> {
    /// The jobs.
    pub work: Vec<JobStatus<'a>>,
    /// The calendars; none yet.
    #[schema(value_type = Vec<Object>)]
    pub recurring: Vec<Cow<'a, serde_json::value::RawValue>>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<Cow<'a, str>>,
}
