//! Ductile's words on the wire: what its clients send, and what they are answered.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::JsonObject as Object;

/// What a plugin or a pipeline is started with.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DuctileTrigger {
    /// What it is given.
    pub payload: Object,
}

/// What was started.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DuctileTriggered {
    /// The job; of a pipeline that of its first step, or the run if no step has begun.
    pub job_id: String,
    /// `queued`.
    pub status: String,
    /// The plugin, or `pipeline`.
    pub plugin: String,
    /// The command, or the name of the pipeline.
    pub command: String,
    /// The run of a pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

/// A job as Ductile shows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DuctileJob {
    /// Its id.
    pub job_id: String,
    /// The job that led to it; in a tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_job_id: Option<String>,
    /// queued, running, succeeded, failed, `timed_out` or dead.
    pub status: String,
    /// The plugin.
    pub plugin: String,
    /// The command.
    pub command: String,
    /// The how manieth attempt.
    pub attempt: u32,
    /// What it came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Box<RawValue>>,
    /// Why it came to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same, as trees call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When its first attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
}

/// A synchronous pipeline that is over.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DuctileOutcome {
    /// As when it was started.
    pub job_id: String,
    /// The run.
    pub run_id: String,
    /// succeeded, failed, `timed_out` or dead.
    pub status: String,
    /// How long the run took.
    pub duration_ms: u64,
    /// What its last step came to.
    #[schema(value_type = Option<Object>)]
    pub result: Option<Box<RawValue>>,
    /// All its jobs.
    pub tree: Vec<DuctileJob>,
}

/// A synchronous pipeline that goes on after its caller has waited long enough.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DuctileLate {
    /// As when it was started.
    pub job_id: String,
    /// The run.
    pub run_id: String,
    /// `running`.
    pub status: String,
    /// True.
    pub timeout_exceeded: bool,
    /// What to do now.
    pub message: String,
}

/// All plugins that jobs may name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PluginList {
    /// They.
    pub plugins: Vec<PluginSummary>,
}

/// A plugin, in short.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PluginSummary {
    /// What jobs call it.
    pub name: String,
    /// As its manifest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it can be asked.
    pub commands: Vec<String>,
    /// Whether it is left alone on the node that answers.
    pub breaker: PluginBreaker,
}

/// A plugin, whole.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PluginDetail {
    /// What jobs call it.
    pub name: String,
    /// As its manifest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it can be asked.
    pub commands: Vec<PluginCommand>,
    /// Whether it is left alone on the node that answers.
    pub breaker: PluginBreaker,
}

/// The circuit breaker of a plugin on one node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PluginBreaker {
    /// off, closed, open or `half_open`.
    pub state: String,
    /// Failed jobs in a row, while it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// Failed jobs in a row after which it opens; none if it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// While it is open: when the plugin is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_until: Option<String>,
}

/// A plugin whose breaker was reset.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PluginReset {
    /// The plugin.
    pub plugin: String,
    /// How its breaker is now.
    pub breaker: PluginBreaker,
}

/// What a plugin remembers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PluginMemory {
    /// The plugin.
    pub plugin: String,
    /// How often it was changed.
    pub version: u64,
    /// Its state, as it was written.
    pub state: Object,
    /// How many facts were ever kept.
    pub fact_count: u64,
    /// Facts that its manifest asks to keep, oldest first: the newest, or those after the number that was asked for.
    pub facts: Vec<PluginKept>,
}

/// A fact that the manifest of a plugin asks to keep.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PluginKept {
    /// Counted from 1 for each plugin.
    pub number: u64,
    /// What it is called.
    pub fact_type: String,
    /// What it says.
    pub value: Object,
}

/// One thing that a plugin can be asked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PluginCommand {
    /// What it is called.
    pub name: String,
    /// read or write.
    #[serde(rename = "type")]
    pub effect: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub input_schema: Option<serde_json::Value>,
    /// The JSON Schema of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<serde_json::Value>,
}

/// All that can be started, for those who choose by themselves.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SkillList {
    /// Commands of plugins first, then pipelines.
    pub skills: Vec<Skill>,
}

/// One thing that can be started.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Skill {
    /// `plugin.<plugin>.<command>` or `pipeline.<name>`.
    pub name: String,
    /// plugin or pipeline.
    pub kind: String,
    /// Where it is started, by POST.
    pub endpoint: String,
    /// READ or WRITE.
    pub tier: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub input_schema: Option<serde_json::Value>,
}

/// A webhook that was taken in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WebhookTaken {
    /// The event; the same whenever the same message comes again.
    pub event_id: String,
}

/// Why a request of a client of Ductile was refused.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DuctileError {
    /// For people.
    pub error: String,
}
