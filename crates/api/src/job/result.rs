//! The result of a job.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, RawValue as Object};
use utoipa::ToSchema;

use super::status::JobStatus;

/// The answer to a question for the result.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResultAnswer<'a> {
    /// The result, or where the job is.
    pub result: JobResult<'a>,
}

/// A result, or the word that there is none yet.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum JobResult<'a> {
    /// Not over yet.
    NotReady(Box<ResultNotReady<'a>>),
    /// Over.
    End(Box<JobEnd<'a>>),
}

/// The job is not over yet.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResultNotReady<'a> {
    /// Its id.
    pub job_id: Cow<'a, str>,
    /// The same id.
    pub work_id: Cow<'a, str>,
    /// `not_ready`.
    pub result_state: Cow<'a, str>,
    /// Where it is.
    pub status: JobStatus<'a>,
}

/// How a job ended.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobEnd<'a> {
    /// Its id.
    pub job_id: Cow<'a, str>,
    /// The same id.
    pub work_id: Cow<'a, str>,
    /// How it ended.
    pub state: Cow<'a, str>,
    /// For people.
    pub summary: Option<Cow<'a, str>>,
    /// The data.
    pub data: Option<Cow<'a, Object>>,
    /// The error.
    pub error: Option<Cow<'a, Object>>,
    /// The list of artifacts.
    #[schema(value_type = Vec<Object>)]
    pub artifacts: Cow<'a, RawValue>,
    /// When it ended.
    pub completed_at: Option<Cow<'a, str>>,
    /// Where it came from, and the runner's record.
    pub provenance: Cow<'a, Object>,
}
