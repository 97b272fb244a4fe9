//! What a step is given: an event, and the context that was carried to it.

use domain::event::NewEvent;
use domain::{EventId, Json, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CORRELATION, Carry, is_own};

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
    /// The event that starts a run, and what its pipeline carries of it.
    pub(crate) fn of_event(
        id: &EventId,
        event: &NewEvent,
        payload: Map<String, Value>,
        carry: Carry,
        now: Timestamp,
    ) -> Self {
        let mut context = match carry {
            Carry::Claimed => Map::new(),
            Carry::Payload => payload.clone(),
        };
        // What is the host's own is never taken from a payload.
        context.retain(|name, _| !is_own(name));
        carry_correlation(&mut context, event.correlation.as_ref());
        let event = SeenEvent {
            kind: event.kind.clone(),
            payload,
            dedupe_key: event.dedupe_key.clone(),
            source: event.source.clone(),
            timestamp: Some(rfc3339(now)),
            event_id: Some(id.as_str().to_owned()),
        };
        Self { event, context }
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

/// From here on this is carried with everything; what was carried before, if there is nothing.
pub(crate) fn carry_correlation(context: &mut Map<String, Value>, correlation: Option<&Json>) {
    if let Some(value) = correlation.and_then(|json| serde_json::from_str(json.as_str()).ok()) {
        context.insert(CORRELATION.to_owned(), value);
    }
}

/// What is carried with everything.
pub(crate) fn correlation_in(context: &Map<String, Value>) -> Option<Json> {
    Json::parse(&context.get(CORRELATION)?.to_string()).ok()
}

pub(crate) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.micros()).unwrap_or_default().to_string()
}
