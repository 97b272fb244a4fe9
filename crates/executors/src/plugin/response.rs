//! The answer: exactly one JSON object on standard output. What it means alone; how the process ended is judged in `outcome.rs`.
//!
//! Numbers stay as they were written, in state and in payloads.

use domain::Json;
use domain::event::{MAX_CORRELATION_BYTES, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_NESTING};
use domain::json::nesting;
use domain::limits::cut;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::http::Mask;
use super::settings::Strictness;
use engine::JsonObject;
use engine::{Emitted, Failure};

/// Events of one answer.
const MAX_EVENTS: usize = 100;
const MAX_EVENT_TYPE_BYTES: usize = 256;
const MAX_DEDUPE_KEY_BYTES: usize = 512;
/// Logs of one answer that are kept.
pub(super) const MAX_LOGS: usize = 100;
const MAX_LOG_BYTES: usize = 2_048;

/// What a plugin answered.
#[derive(Debug)]
pub(super) enum Response {
    Ok(Answer),
    Error { error: String, retry: bool, warnings: Vec<String> },
}

/// What a plugin that succeeded has to say.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) result: String,
    pub(super) events: Vec<Emitted>,
    pub(super) state_updates: JsonObject,
    pub(super) logs: Vec<Log>,
    pub(super) warnings: Vec<String>,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct Log {
    pub(super) level: String,
    pub(super) message: String,
}

#[derive(Deserialize)]
struct Written {
    status: Option<String>,
    error: Option<String>,
    result: Option<String>,
    retry: Option<bool>,
    events: Option<Vec<WrittenEvent>>,
    state_updates: Option<JsonObject>,
    logs: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct WrittenEvent {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    payload: Option<Box<RawValue>>,
    dedupe_key: Option<String>,
    correlation: Option<Box<RawValue>>,
}

/// Why an answer is none.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Nobody can read it.
    Unreadable(String),
    /// It can be read, and will not be better the next time.
    Refused(Box<Failure>),
}

impl Response {
    /// Reads what stood on standard output.
    pub(super) fn read(stdout: &[u8], strictness: Strictness, mask: &Mask) -> Result<Self, NoAnswer> {
        let stdout = stdout.trim_ascii();
        let unreadable = |told: String| Err(NoAnswer::Unreadable(told));
        if stdout.is_empty() {
            return unreadable("it said nothing on its standard output".to_owned());
        }
        // A list would be read as the fields in their order.
        if !stdout.starts_with(b"{") {
            return unreadable("its standard output is not one JSON object".to_owned());
        }
        let written: Written = match serde_json::from_slice(stdout) {
            Ok(written) => written,
            Err(error) => return unreadable(format!("its standard output is not one JSON object: {error}")),
        };
        let logs: Vec<Log> =
            written.logs.iter().flatten().take(MAX_LOGS).map(|log| Log::of(log, mask)).collect();
        logs.iter().for_each(Log::tell);
        match written.status.as_deref() {
            Some("ok") => answer(written, logs, strictness, mask).map(Self::Ok),
            Some("error") => match written.error.filter(|error| !error.trim().is_empty()) {
                Some(error) => {
                    let discarded = written.events.is_some_and(|events| !events.is_empty());
                    let told = "the events of an answer that is an error are discarded".to_owned();
                    let warnings = discarded.then_some(told).into_iter().collect();
                    let retry = written.retry.unwrap_or(true);
                    Ok(Self::Error { error: mask.text(error), retry, warnings })
                }
                None => unreadable("its status is error, and it does not say which".to_owned()),
            },
            Some(other) => unreadable(format!("its status is {:?}, neither ok nor error", cut(other, 64))),
            None => unreadable("its answer has no status".to_owned()),
        }
    }
}

fn answer(written: Written, logs: Vec<Log>, strictness: Strictness, mask: &Mask) -> Result<Answer, NoAnswer> {
    let mut answer = Answer { logs, ..Answer::default() };
    answer.result = mask.text(written.result.unwrap_or_default());
    if answer.result.trim().is_empty() {
        let told = "the answer has no result; one line for people is expected there";
        match strictness {
            Strictness::Strict => return Err(NoAnswer::Unreadable(told.to_owned())),
            Strictness::Lenient => answer.warnings.push(told.to_owned()),
        }
    }
    let events = written.events.unwrap_or_default();
    let refused = |told: String| NoAnswer::Refused(Box::new(Failure::permanent("bad_event", told)));
    if events.len() > MAX_EVENTS {
        return Err(refused(format!("the answer has {} events, more than {MAX_EVENTS}", events.len())));
    }
    for (number, event) in events.into_iter().enumerate() {
        let emitted = emitted(event, &answer.result, mask)
            .map_err(|told| refused(format!("event {}: {told}", number + 1)))?;
        answer.events.push(emitted);
    }
    let state = written.state_updates.unwrap_or_default();
    // It is shown inside of others too, to readers that go only so deep.
    if let Some((name, _)) = state.iter().find(|(_, value)| nesting(value.get()) > MAX_PAYLOAD_NESTING) {
        let told =
            format!("{:?} of state_updates is nested deeper than {MAX_PAYLOAD_NESTING}", cut(name, 64));
        return Err(NoAnswer::Refused(Box::new(Failure::permanent("bad_response", told))));
    }
    answer.state_updates = masked(state, mask).map_err(NoAnswer::Unreadable)?;
    Ok(answer)
}

fn emitted(event: WrittenEvent, result: &str, mask: &Mask) -> Result<Emitted, String> {
    let kind = mask.text(event.kind.unwrap_or_default());
    if !(1..=MAX_EVENT_TYPE_BYTES).contains(&kind.len()) || kind.chars().any(char::is_control) {
        return Err(format!("its type has 1 to {MAX_EVENT_TYPE_BYTES} bytes and no control characters"));
    }
    let text = event.payload.as_deref().map_or("null", RawValue::get);
    let payload: Option<JsonObject> =
        serde_json::from_str(text).map_err(|_| format!("the payload of {kind:?} is not an object"))?;
    // What follows is read with the payload inside of it, by readers that go only so deep.
    if nesting(text) > MAX_PAYLOAD_NESTING {
        return Err(format!("the payload of {kind:?} is nested deeper than {MAX_PAYLOAD_NESTING}"));
    }
    let mut payload = masked(payload.unwrap_or_default(), mask)?;
    if !result.trim().is_empty() && !payload.contains_key("result") {
        let result = serde_json::value::to_raw_value(result).map_err(|error| error.to_string())?;
        payload.insert("result".to_owned(), result);
    }
    let payload = serde_json::to_vec(&payload).map_err(|error| error.to_string())?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(format!("the payload of {kind:?} has more than {MAX_PAYLOAD_BYTES} bytes"));
    }
    let dedupe_key = event.dedupe_key.map(|key| mask.text(key)).filter(|key| !key.is_empty());
    if dedupe_key.as_ref().is_some_and(|key| key.len() > MAX_DEDUPE_KEY_BYTES) {
        return Err(format!("the dedupe_key of {kind:?} has more than {MAX_DEDUPE_KEY_BYTES} bytes"));
    }
    let correlation = event.correlation.map(|written| correlation(&kind, &written, mask)).transpose()?;
    Ok(Emitted { kind, payload, dedupe_key, correlation })
}

/// What is carried with everything that follows from an event.
fn correlation(kind: &str, written: &RawValue, mask: &Mask) -> Result<Json, String> {
    let told =
        || format!("the correlation of {kind:?} is not an object of at most {MAX_CORRELATION_BYTES} bytes");
    let object: JsonObject = serde_json::from_str(written.get()).map_err(|_| told())?;
    // As with payloads: it is read again inside of others.
    if nesting(written.get()) > MAX_PAYLOAD_NESTING {
        return Err(format!("the correlation of {kind:?} is nested deeper than {MAX_PAYLOAD_NESTING}"));
    }
    let text = serde_json::to_string(&masked(object, mask)?).map_err(|_| told())?;
    let json = Json::parse(&text).map_err(|_| told())?;
    if json.as_str().len() > MAX_CORRELATION_BYTES { Err(told()) } else { Ok(json) }
}

/// The same object without secrets: a plugin is given them anew each time, and nobody else is.
fn masked(object: JsonObject, mask: &Mask) -> Result<JsonObject, String> {
    if mask.is_empty() {
        return Ok(object);
    }
    let text = serde_json::to_vec(&object).map_err(|error| error.to_string())?;
    serde_json::from_slice(&mask.json(text)).map_err(|_| "a secret stands where no text may stand".to_owned())
}

impl Log {
    fn of(written: &Value, mask: &Mask) -> Self {
        let text = |name: &str| written.get(name).and_then(Value::as_str);
        let message = text("message").map_or_else(|| written.to_string(), str::to_owned);
        Self {
            level: text("level").filter(|level| level.len() <= 16).unwrap_or("info").to_owned(),
            message: cut(&mask.text(message), MAX_LOG_BYTES).to_owned(),
        }
    }

    fn tell(&self) {
        let message = &self.message;
        match self.level.as_str() {
            "error" => tracing::error!(target: "plugin", "{message}"),
            "warn" => tracing::warn!(target: "plugin", "{message}"),
            "debug" => tracing::debug!(target: "plugin", "{message}"),
            _ => tracing::info!(target: "plugin", "{message}"),
        }
    }
}

#[cfg(test)]
mod tests;
