//! What a step is given: an event, and the context that was carried to it.

use domain::event::NewEvent;
use domain::{EventId, Json, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An event as a step sees it, and what is carried with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) event: SeenEvent,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) context: Map<String, Value>,
}

/// An event as plugins know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeenEvent {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) payload: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dedupe_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event_id: Option<String>,
}

impl Given {
    /// The event that starts a run.
    pub(crate) fn of_event(
        id: &EventId,
        event: &NewEvent,
        payload: Map<String, Value>,
        now: Timestamp,
    ) -> Self {
        let event = SeenEvent {
            kind: event.kind.clone(),
            payload,
            dedupe_key: event.dedupe_key.clone(),
            source: event.source.clone(),
            timestamp: Some(rfc3339(now)),
            event_id: Some(id.as_str().to_owned()),
        };
        Self { event, context: Map::new() }
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an event has only texts as keys")
    }
}

/// An event of ours: that a step is done, or is not, or that branches have come together.
pub(crate) fn told(kind: &str, payload: Map<String, Value>, at: Timestamp) -> SeenEvent {
    SeenEvent {
        kind: kind.to_owned(),
        payload,
        dedupe_key: None,
        source: Some("longhaul".to_owned()),
        timestamp: Some(rfc3339(at)),
        event_id: None,
    }
}

/// What is carried with everything, as a value.
pub(crate) fn carried(correlation: Option<&Json>) -> Option<Value> {
    correlation.and_then(|json| serde_json::from_str(json.as_str()).ok())
}

fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.micros()).unwrap_or_default().to_string()
}
