//! Many jobs in one request, each with its own verdict.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{CreateJob, Problem};

/// Up to 1,000 new jobs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBatch {
    /// The jobs, each as in `POST /jobs`. One that does not fit is refused by itself: its verdict has the problem.
    #[schema(value_type = Vec<CreateJob>)]
    pub jobs: Vec<Box<RawValue>>,
}

impl CreateBatch {
    /// A batch of these.
    pub fn of(jobs: &[CreateJob]) -> Result<Self, serde_json::Error> {
        let jobs = jobs.iter().map(serde_json::value::to_raw_value).collect::<Result<_, _>>()?;
        Ok(Self { jobs })
    }
}

/// One verdict per job, in the order of the request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchAnswer<'a> {
    /// How many were accepted.
    pub accepted: usize,
    /// How many were refused.
    pub refused: usize,
    /// The verdicts.
    pub results: Vec<BatchVerdict<'a>>,
}

/// What became of one job of a batch: exactly one of `job_id` and `problem` is there.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchVerdict<'a> {
    /// Its place in the request, from 0.
    pub index: usize,
    /// The status that it would have had alone.
    pub status: u16,
    /// Its id, if it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<Cow<'a, str>>,
    /// Whether its idempotency key had been used and this is the job of then.
    #[serde(default)]
    pub replayed: bool,
    /// Why not, if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}
