//! What a redaction is asked with and answered with, checked field by field.
//!
//! A complaint names the field and never its value: the value may be private.

use serde_json::{Map, Value};

/// The one action that this connector does.
const ACTION: &str = "whisper.redaction.prepare";

const TARGETS: [&str; 3] = ["public-whisper-candidate", "private-summary", "operator-review-only"];
const STATUSES: [&str; 7] = [
    "draft-ready",
    "needs-human-review",
    "unsafe-output",
    "policy-denied",
    "model-unavailable",
    "retryable-timeout",
    "failed",
];
const STATUSES_WITH_DRAFT: [&str; 2] = ["draft-ready", "needs-human-review"];

/// A directive that was understood.
#[derive(Clone, Debug)]
pub struct Directive {
    /// The idempotency key, or the id of the directive.
    pub key: String,
    /// The longest that the work may take.
    pub timeout_ms: u64,
    /// The request for a redaction, as it came.
    pub parameters: Value,
}

/// Why a directive is not taken: a stable code and a field, never a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// For programs.
    pub code: &'static str,
    /// For people.
    pub message: String,
}

/// Reads `sensorium-connector-directive.v1`.
pub fn read_directive(body: &[u8]) -> Result<Directive, Complaint> {
    let missing = |message: &str| complaint("directive-missing", message);
    let body: Value = serde_json::from_slice(body).map_err(|_| missing("the body is not JSON"))?;
    if body["schema"] != "sensorium-connector-directive.v1" {
        return Err(missing("schema must be sensorium-connector-directive.v1"));
    }
    let directive = body["directive"].as_object().ok_or_else(|| missing("directive must be an object"))?;
    let invalid = |message: &str| complaint("directive-invalid", message);
    if directive.get("schema") != Some(&Value::from("sensorium-directive.v1")) {
        return Err(invalid("directive.schema must be sensorium-directive.v1"));
    }
    if directive.get("schema/v") != Some(&Value::from(1)) {
        return Err(invalid("directive.schema/v must be 1"));
    }
    let id = text(directive, "directive/id").ok_or_else(|| invalid("directive/id must be a text"))?;
    text(directive, "directive/issued_at").ok_or_else(|| invalid("directive/issued_at must be a text"))?;
    let issuer = directive.get("issuer").and_then(Value::as_object);
    if !issuer.is_some_and(|issuer| {
        text(issuer, "module_id").is_some() || text(issuer, "participant/did:key").is_some()
    }) {
        return Err(invalid("issuer must name a module_id or a participant/did:key"));
    }
    if text(directive, "action_id") != Some(ACTION) {
        return Err(complaint(
            "action-not-allowlisted",
            "this connector does whisper.redaction.prepare only",
        ));
    }
    let timing = directive.get("timing").unwrap_or(&Value::Null);
    let timeout_ms = timing["timeout_ms"].as_u64().filter(|timeout| *timeout >= 1);
    let timeout_ms = timeout_ms.ok_or_else(|| invalid("timing.timeout_ms must be a whole number above 0"))?;
    if timing["mode"] != "async" {
        return Err(complaint("mode-not-supported", "this action is async-only"));
    }
    let parameters = directive.get("parameters").cloned().unwrap_or(Value::Null);
    check_request(&parameters)?;
    let key = text(directive, "idempotency/key").unwrap_or(id).to_owned();
    Ok(Directive { key, timeout_ms, parameters })
}

/// The request of a redaction, by its own contract.
fn check_request(parameters: &Value) -> Result<(), Complaint> {
    let invalid = |message: &str| complaint("parameters-schema-invalid", message);
    let request = parameters.as_object().ok_or_else(|| invalid("parameters must be an object"))?;
    for field in ["schema", "intake/id", "raw/private-material", "redaction/profile", "disclosure/target"] {
        text(request, field).ok_or_else(|| invalid(&format!("{field} must be a text that is not empty")))?;
    }
    if request.get("schema/v") != Some(&Value::from(1)) {
        return Err(invalid("schema/v must be 1"));
    }
    if !request.get("policy/constraints").is_some_and(Value::is_object) {
        return Err(invalid("policy/constraints must be an object"));
    }
    if !TARGETS.iter().any(|target| text(request, "disclosure/target") == Some(target)) {
        return Err(invalid("disclosure/target is not one of the known ones"));
    }
    Ok(())
}

/// The response of a redaction, by its own contract: to be checked again by whoever gets it as a deferred result.
pub fn validate_response(response: &Value) -> Result<(), String> {
    let response = response.as_object().ok_or("a redaction response is an object")?;
    text(response, "schema").ok_or("schema must be a text")?;
    if response.get("schema/v") != Some(&Value::from(1)) {
        return Err("schema/v must be 1".to_owned());
    }
    let status = text(response, "status").filter(|status| STATUSES.contains(status));
    let status = status.ok_or("status is not one of the known ones")?;
    let draft = response.get("redaction/draft");
    if STATUSES_WITH_DRAFT.contains(&status) && !draft.is_some_and(Value::is_object) {
        return Err(format!("redaction/draft is required when the status is {status}"));
    }
    Ok(())
}

fn text<'a>(object: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn complaint(code: &'static str, message: &str) -> Complaint {
    Complaint { code, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_response_needs_a_draft_exactly_when_it_says_that_there_is_one() {
        let response = |status: &str| json!({"schema": "s", "schema/v": 1, "status": status});
        for status in STATUSES {
            let without = validate_response(&response(status));
            assert_eq!(without.is_err(), STATUSES_WITH_DRAFT.contains(&status), "{status}");
            let mut with = response(status);
            with["redaction/draft"] = json!({"text": "a"});
            assert_eq!(validate_response(&with), Ok(()), "{status}");
        }
        assert!(validate_response(&response("done")).is_err());
        assert!(validate_response(&json!({"status": "failed", "schema/v": 1})).is_err());
        assert!(validate_response(&json!([])).is_err());
    }
}
