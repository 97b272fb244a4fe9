//! What an operation is asked with beside its body: parts of the path, headers, the query.

use api::limits::{DEFAULT_PAGE, MAX_KEY_CHARS, MAX_PAGE};
use domain::limits::MAX_ID_BYTES;
use serde_json::{Value, json};

use super::request_limits::{PEER_ID, TEXT};
use crate::cursor;
use crate::operations::Operation;

/// The parameters of an operation on this path.
pub(super) fn of(operation: &Operation, path: &str) -> Value {
    let mut parameters = Vec::new();
    for name in ["id", "name"] {
        if path.contains(&format!("{{{name}}}")) {
            let schema = if name == "id" && !operation.id_words.is_empty() {
                json!({ "type": "string", "enum": operation.id_words })
            } else {
                json!({ "type": "string", "minLength": 1 })
            };
            parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
    }
    if operation.prefers_wait {
        parameters.push(json!({ "name": "Prefer", "in": "header", "schema": { "type": "string" },
            "description": "wait=N: answer when it is over, or after so many seconds, at most 60" }));
    }
    parameters.extend((operation.parameters)());
    if operation.keyed {
        parameters.push(idempotency_key());
    }
    json!(parameters)
}

const CURSOR: &str = "next_cursor of the previous page; empty for the first one";

/// A parameter in the query.
fn query(name: &str, about: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "description": about, "schema": schema })
}

/// How many rows a page has.
pub(crate) fn limit() -> Value {
    json!({ "name": "limit", "in": "query", "schema": {
        "type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE } })
}

/// Any text that can be stored.
pub(crate) fn text(name: &str, about: &str) -> Value {
    query(name, about, json!({ "type": "string", "pattern": TEXT }))
}

/// A text that is read as it comes.
pub(crate) fn plain_text(name: &str, about: &str) -> Value {
    query(name, about, json!({ "type": "string" }))
}

/// A text that cannot be left out.
pub(crate) fn required_text(name: &str, about: &str) -> Value {
    json!({ "name": name, "in": "query", "required": true, "description": about,
        "schema": { "type": "string", "minLength": 1, "pattern": TEXT } })
}

/// One of these words; an empty one is as if it were left out.
pub(crate) fn word(name: &str, about: &str, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain([""]).collect();
    query(name, about, json!({ "type": "string", "enum": words }))
}

/// A number from 0 on.
pub(crate) fn number(name: &str, about: &str) -> Value {
    query(name, about, json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }))
}

/// The same in a header.
pub(crate) fn header_number(name: &str, about: &str) -> Value {
    let mut number = number(name, about);
    number["in"] = "header".into();
    number
}

/// The cursor of a list of records whose ids begin so.
pub(crate) fn cursor_of(prefix: &str) -> Value {
    query("cursor", CURSOR, json!({ "type": "string", "pattern": cursor::pattern(prefix) }))
}

/// The cursor of the list of peers.
pub(crate) fn peer_cursor() -> Value {
    // The circle may follow the id.
    let character = PEER_ID.trim_start_matches('^').trim_end_matches("+$");
    let pattern = format!(r"^(?:{character}{{1,{MAX_ID_BYTES}}}(?:/[^\u0000]*)?)?$");
    query("cursor", CURSOR, json!({ "type": "string", "pattern": pattern }))
}

fn idempotency_key() -> Value {
    // Bare, with something to see at both ends, or in double quotes.
    let pattern =
        format!(r#"^(?:[!#-~](?:[ -~]{{0,{}}}[!-~])?|"[ -~]{{1,{MAX_KEY_CHARS}}}")$"#, MAX_KEY_CHARS - 2);
    json!({
        "name": "Idempotency-Key", "in": "header",
        "description": "names this write; the same key and request get the same answer, byte for byte",
        "schema": { "type": "string", "pattern": pattern },
    })
}
