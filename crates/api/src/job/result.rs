//! The result of a job.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::status::JobStatus;

/// The answer to a question for the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
pub struct ResultAnswer<'a> {
    /// The result, or where the job is.
    pub result: JobResult<'a>,
}

/// A result, or the word that there is none yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
pub enum JobResult<'a> {
    /// Not over yet.
    NotReady(Box<ResultNotReady<'a>>),
    /// Over.
    End(Box<JobEnd<'a>>),
}

/// The job is not over yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
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
    #[cfg_attr(feature = "schemas", schema(value_type = Option<Object>))]
    pub data: Option<Cow<'a, RawValue>>,
    /// The error.
    #[cfg_attr(feature = "schemas", schema(value_type = Option<Object>))]
    pub error: Option<Cow<'a, RawValue>>,
    /// The list of artifacts.
    #[cfg_attr(feature = "schemas", schema(value_type = Vec<Object>))]
    pub artifacts: Cow<'a, RawValue>,
    /// When it ended.
    pub completed_at: Option<Cow<'a, str>>,
    /// Where it came from, and the runner's record.
    #[cfg_attr(feature = "schemas", schema(value_type = Object))]
    pub provenance: Cow<'a, RawValue>,
}
