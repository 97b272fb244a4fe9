//! The request: one JSON object with every field that any era of Ductile had, so that every plugin finds what it reads.

use domain::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::input::{HANDLE, PluginInput};
use super::manifest::PROTOCOL;
use engine::JsonObject;

/// What goes into a request besides the input of the job.
pub(super) struct Given<'a> {
    pub(super) job_id: &'a str,
    pub(super) plugin: &'a str,
    pub(super) config: &'a Map<String, Value>,
    /// The plugin's state: a JSON object.
    pub(super) state: &'a RawValue,
    pub(super) secrets: &'a Value,
    /// Where it works.
    pub(super) workspace_dir: &'a str,
    pub(super) deadline_at: Timestamp,
}

#[derive(Serialize)]
struct Request<'a> {
    protocol: u64,
    job_id: &'a str,
    command: &'a str,
    config: &'a Map<String, Value>,
    state: &'a RawValue,
    payload: &'a RawValue,
    context: &'a JsonObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a RawValue>,
    workspace_dir: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<&'a Value>,
    deadline_at: String,
}

/// The bytes of the request.
pub(super) fn request(input: PluginInput, given: &Given<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let command = input.command().to_owned();
    let mut context = input.context.unwrap_or_default();
    let event = match (command.as_str(), input.event) {
        (HANDLE, Some(mut event)) => {
            // Whoever tells of an event knows best: the context fills in what is missing.
            for (key, value) in &context {
                event.payload.entry(key.clone()).or_insert_with(|| value.clone());
            }
            Some(serde_json::value::to_raw_value(&event)?)
        }
        (_, Some(event)) => Some(serde_json::value::to_raw_value(&event)?),
        (_, None) => None,
    };
    let payload = match (&input.payload, &event) {
        (Some(payload), _) => serde_json::value::to_raw_value(payload)?,
        (None, Some(event)) => event.clone(),
        (None, None) => RawValue::from_string("{}".to_owned())?,
    };
    context.entry("ductile_plugin".to_owned()).or_insert(serde_json::value::to_raw_value(given.plugin)?);
    serde_json::to_vec(&Request {
        protocol: PROTOCOL,
        job_id: given.job_id,
        command: &command,
        config: given.config,
        state: given.state,
        payload: &payload,
        context: &context,
        event: event.as_deref(),
        workspace_dir: given.workspace_dir,
        secrets: Some(given.secrets).filter(|secrets| **secrets != Value::Object(Map::new())),
        deadline_at: rfc3339(given.deadline_at),
    })
}

/// Whole seconds in UTC, as plugins have always had it.
fn rfc3339(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_microsecond(at.micros()).unwrap_or(jiff::Timestamp::MAX);
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(input: &str) -> Value {
        let state = RawValue::from_string("{\"mtime_ns\":1763337600123456789}".to_owned()).unwrap();
        let given = Given {
            job_id: "work-1",
            plugin: "echo",
            config: &Map::new(),
            state: &state,
            secrets: &json!({}),
            workspace_dir: "/w",
            deadline_at: Timestamp::from_seconds(1_700_000_000),
        };
        let bytes = request(PluginInput::read(input.as_bytes()).unwrap(), &given).unwrap();
        assert!(String::from_utf8(bytes.clone()).unwrap().contains("1763337600123456789"));
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn job_without_an_input_is_a_poll_with_nothing() {
        let sent = sent("null");
        assert_eq!(sent["protocol"], 2);
        assert_eq!(
            (&sent["command"], &sent["payload"], &sent["config"]),
            (&json!("poll"), &json!({}), &json!({}))
        );
        assert_eq!(sent["deadline_at"], "2023-11-14T22:13:20Z");
        assert!(sent.get("event").is_none() && sent.get("secrets").is_none());
        assert_eq!(sent["context"], json!({ "ductile_plugin": "echo" }));
    }

    #[test]
    fn context_fills_in_what_the_payload_of_an_event_lacks_and_the_payload_wins() {
        let sent =
            sent(r#"{"event":{"type":"t","payload":{"a":1},"event_id":"e"},"context":{"a":2,"run_id":"r"}}"#);
        assert_eq!(sent["command"], "handle");
        assert_eq!(
            sent["event"],
            json!({ "type": "t", "payload": { "a": 1, "run_id": "r" }, "event_id": "e" })
        );
        assert_eq!(sent["payload"], sent["event"]);
        assert_eq!(sent["context"]["a"], 2);
        assert_eq!(sent["workspace_dir"], "/w");
    }

    #[test]
    fn payload_of_null_is_an_empty_object_and_a_slip_of_the_pen_is_told() {
        assert_eq!(sent(r#"{"event":{"type":"t","payload":null}}"#)["event"]["payload"], json!({}));
        let told = PluginInput::read(br#"{"comand":"poll"}"#).unwrap_err();
        assert!(told.contains("unknown field `comand`"), "{told}");
    }
}
