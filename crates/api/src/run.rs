//! Runs: one pipeline at its work, and what may be asked of it. Unknown keys are refused.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{JsonObject as Object, ReachedLimit};

/// A run, and where it has been.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// What it is known by.
    pub run_id: String,
    /// The pipeline.
    pub pipeline: String,
    /// Which version of it: a run keeps the one that it began with.
    pub version: String,
    /// `running`, `cancelling`, `completed`, `failed` or `cancelled`.
    pub state: String,
    /// Why it is so, where there is something to say.
    pub reason: Option<String>,
    /// The limits of the host that ended it as a whole; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<ReachedLimit>,
    /// The event that started it.
    pub event_id: String,
    /// The circle that sees it.
    pub circle: Option<String>,
    /// How many events led to it.
    pub depth: u32,
    /// What names the same work.
    pub dedupe_key: Option<String>,
    /// Carried with everything that follows from it.
    pub correlation: Option<Object>,
    /// When it began.
    pub started_at: String,
    /// When anything last happened to it.
    pub updated_at: String,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Where it has been, oldest first; left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<Vec<RunVisit>>,
}

/// A run has come to a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunVisit {
    /// Its number in the run.
    pub visit: u16,
    /// The step.
    pub step: String,
    /// `step`, which is a job, or `group`.
    pub kind: String,
    /// `waiting`, `open`, `inside` (a group in which something goes on), `completed`, `skipped`, `failed` or `cancelled`.
    pub state: String,
    /// Why it failed.
    pub reason: Option<String>,
    /// Its job.
    pub job_id: Option<String>,
    /// The visit of the group that it is in.
    pub within: Option<u16>,
    /// What brought the run here.
    pub cause: RunCause,
}

/// What brought a run to a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunCause {
    /// `start`, `entered` (the group around it), `after` (another visit was over) or `failure` (of another visit).
    pub kind: String,
    /// That other visit.
    pub visit: Option<u16>,
    /// Which of its events, from 0.
    pub event: Option<u32>,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunAnswer {
    /// The run.
    pub run: Run,
}

/// Runs, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The runs, without their visits. A page may be short: only one without `next_cursor` is the last.
    pub runs: Vec<Run>,
    /// Asks for the next page.
    pub next_cursor: Option<String>,
}

/// Asks to stop a run, with everything that it has begun.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRun {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Steps of a run are done again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunRetried {
    /// The jobs that are tried again.
    pub retried: Vec<String>,
    /// The run afterwards.
    pub run: Run,
}
