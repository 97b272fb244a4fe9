//! What a caller sends to steer a job. Unknown keys are refused.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{JsonArray, JsonObject as Object, UnderClaim};

/// Where the doer says that a job is. `state_reason` and `phase` are overwritten even when left out; everything else stays. A report
/// that says nothing but the state that a job has ended in changes nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateJob {
    /// The state; the current one only adds notes.
    pub state: String,
    /// The attempt that it is about; required once the job was dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// The claim under which it is reported, if its doer holds one: refused if it does not any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<UnderClaim>,
    /// Why, short and machine-readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    /// A free label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Replaces the progress object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Object>,
    /// One line for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_note: Option<String>,
    /// The result for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_summary: Option<String>,
    /// The result's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_data: Option<Object>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Object>,
    /// The list of artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub artifacts: Option<JsonArray>,
    /// Replaces the whole provenance object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Object>,
}

impl UpdateJob {
    /// Only a state.
    pub fn to(state: impl Into<String>) -> Self {
        Self { state: state.into(), ..Self::default() }
    }
}

/// Asks to stop a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelJob {
    /// Who asks; a token that is bound to a peer says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by_peer_id: Option<String>,
    /// Why; `cancel_requested` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Asks to run a job now, or again. The body may be left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunJob {
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by_peer_id: Option<String>,
}

/// Answers what a job waits for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerJob {
    /// The answer: any JSON.
    #[schema(value_type = utoipa::openapi::schema::Value)]
    pub answer: Box<RawValue>,
}
