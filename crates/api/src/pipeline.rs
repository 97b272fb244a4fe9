//! Pipelines: what follows which event, as the daemon has read it. Unknown keys are refused.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{JsonObject as Object, Run};

/// A pipeline in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PipelineSummary {
    /// What it is known by.
    pub name: String,
    /// Changes with anything that it says.
    pub version: String,
    /// What starts it, as `on tide.changed` or `on-hook job.failed`.
    pub trigger: String,
    /// Steps and groups, with those of pipelines that it calls.
    pub steps: usize,
}

/// Pipelines, by name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PipelineList {
    /// The pipelines.
    pub pipelines: Vec<PipelineSummary>,
}

/// A pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pipeline {
    /// What it is known by.
    pub name: String,
    /// Changes with anything that it says.
    pub version: String,
    /// What starts it, as `on tide.changed` or `on-hook job.failed`.
    pub trigger: String,
    /// Only events that this executor emitted start it.
    pub from_plugin: Option<String>,
    /// Only events for which this holds start it.
    pub condition: Option<String>,
    /// How many events of a chain it may be in; 0 for any.
    pub max_depth: Option<u32>,
    /// How long the key of an event is remembered.
    pub dedupe_window_seconds: u64,
    /// What follows what.
    pub steps: Vec<PipelineStep>,
    /// The same as a tree to look at.
    pub graph: String,
}

/// One step of a pipeline, or a group of steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PipelineStep {
    /// Its name.
    pub step: String,
    /// `step` or `group`.
    pub kind: String,
    /// Who does it.
    pub executor: Option<String>,
    /// It is skipped unless this holds.
    pub condition: Option<String>,
    /// Where each branch of a group begins.
    pub branches: Vec<String>,
    /// What follows it.
    pub next: Option<String>,
    /// `stop`, `continue`, or the step that a failure goes to.
    pub on_error: String,
    /// How long one attempt may take.
    pub timeout_seconds: Option<u64>,
    /// How often it is tried, where it says so.
    pub max_attempts: Option<u32>,
}

/// One pipeline.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PipelineAnswer {
    /// The pipeline.
    pub pipeline: Pipeline,
}

/// Starts a pipeline by its name, whatever its condition.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartPipeline {
    /// What its first steps are given, at most 256 KiB; an empty object if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Object>,
    /// The circle that sees the run; a token that is bound to one says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// How long to wait for its end: at most 60, not at all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u64>,
}

/// A run has begun.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PipelineStarted {
    /// The event that stands for the request.
    pub event_id: String,
    /// The run.
    pub run_id: String,
    /// Whether the run went on when the wait was over; only for a caller that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_exceeded: Option<bool>,
    /// The run after the wait; only for a caller that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

/// The files of pipelines were read anew, on this node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PipelinesReloaded {
    /// The pipelines that are in use now.
    pub pipelines: Vec<String>,
    /// Those of them that are in no file as it can be read, and stay as they were: there are mistakes.
    pub kept: Vec<String>,
    /// What is wrong, each with its file, line and column.
    pub mistakes: Vec<String>,
    /// What cannot be done as it stands: steps whose executor nobody has.
    pub doubts: Vec<String>,
}
