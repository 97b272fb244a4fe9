//! What an agent is told of a tool that failed: the answer that the tool owes it, with the status `error`.

use domain::Timestamp;
use domain::event::TOOL_RESULT;
use serde_json::{Map, Value, json};

use super::given::{Given, SeenEvent, rfc3339, told};
use crate::CORRELATION;

/// A failure as the answer of a tool: which turn had asked is what was carried.
pub(super) fn tool_failed(failed: Given, now: Timestamp) -> Given {
    let Given { event, context } = failed;
    let of_turn = |key: &str| {
        let correlated = context.get(CORRELATION).and_then(|own| own.get(key));
        correlated.or_else(|| context.get(key)).cloned()
    };
    let code = event.payload.get("code").cloned().unwrap_or_default();
    let error = match event.payload.get("error") {
        Some(Value::Object(error)) => Value::Object(error.clone()),
        Some(_) | None => json!({ "code": code, "message": code }),
    };
    let turn = ["run_id", "step", "tool"].map(|key| (key, of_turn(key)));
    let key = match &turn {
        [(_, Some(Value::String(run_id))), (_, Some(step)), _] => {
            Some(format!("agentic:run:{run_id}:step:{step}:result"))
        }
        _ => None,
    };
    let mut payload: Map<String, Value> =
        turn.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    for (key, value) in [
        ("status", json!("error")),
        ("result", Value::Null),
        ("error", error),
        ("completed_at", json!(rfc3339(now))),
    ] {
        payload.insert(key.to_owned(), value);
    }
    Given { event: SeenEvent { dedupe_key: key, ..told(TOOL_RESULT, payload, now) }, context }
}
