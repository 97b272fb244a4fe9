//! The input of a plugin's job: what it is asked, and with what. Values stay as they were written.

use engine::JsonObject;
use serde::{Deserialize, Serialize};

/// What a plugin is asked when the job does not say.
const POLL: &str = "poll";
/// What a plugin is asked when there is an event.
pub(super) const HANDLE: &str = "handle";

/// The input of one job of a plugin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginInput {
    /// What it is asked: `handle` if there is an event, else `poll`, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// With what; for `handle` the event if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<JsonObject>,
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<PluginEvent>,
    /// What has gathered on the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// Where it works, if the operator allows that directory; a workspace of its own if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_dir: Option<String>,
}

/// An event as plugins are told of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginEvent {
    /// What kind of thing happened.
    #[serde(rename = "type")]
    pub kind: String,
    /// The rest of it.
    #[serde(deserialize_with = "object_or_null")]
    pub payload: JsonObject,
    /// What makes it the same event as another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// Which plugin told of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// When, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
}

impl PluginInput {
    /// Reads the input of a job; a job without one asks for `poll`.
    pub fn read(input: &[u8]) -> Result<Self, String> {
        let input: Option<Self> = serde_json::from_slice(input).map_err(|error| {
            format!("the input may have command, payload, event, context and workspace_dir: {error}")
        })?;
        Ok(input.unwrap_or_default())
    }

    /// What it is asked.
    pub fn command(&self) -> &str {
        let usual = if self.event.is_some() { HANDLE } else { POLL };
        self.command.as_deref().unwrap_or(usual)
    }
}

fn object_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<JsonObject, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
