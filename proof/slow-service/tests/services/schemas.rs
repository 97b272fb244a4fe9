//! The published shapes, written down from their tables, to hold every answer of the reference services against.

use serde_json::{Value, json};

const OPERATION_ID: &str = "^deferred:[a-z][a-z0-9.-]*:[A-Za-z0-9_-]+$";
const OPERATION_KIND: &str = r"^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*$";

#[track_caller]
pub fn check(schema: &Value, instance: &Value) {
    let validator = jsonschema::options().should_validate_formats(true).build(schema).expect("a schema");
    let complaints: Vec<String> =
        validator.iter_errors(instance).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(complaints.is_empty(), "{complaints:?} in {instance}");
}

pub fn connector_deferred() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["schema", "schema/v", "status", "connector/id", "connector_operation_id", "accepted_at"],
        "properties": {
            "schema": {"const": "sensorium-connector-deferred.v1"},
            "schema/v": {"const": 1},
            "status": {"const": "deferred"},
            "connector/id": {"type": "string", "minLength": 1},
            "connector/kind": {"type": "string"},
            "connector_operation_id": {"type": "string", "minLength": 1, "maxLength": 256},
            "accepted_at": {"type": "string", "format": "date-time"},
            "retry_after_seconds": {"type": "integer"},
            "fail_after_seconds": {"type": "integer"},
            "cancelable": {"type": "boolean", "default": true},
            "cancel/unavailable-reason": {"type": "string", "minLength": 1},
            "diagnostics": {"type": "array", "items": {"type": "object"}},
            "extensions": {"type": "object"}
        },
        "if": {"properties": {"cancelable": {"const": false}}, "required": ["cancelable"]},
        "then": {"required": ["cancel/unavailable-reason"]},
        "else": {"not": {"required": ["cancel/unavailable-reason"]}}
    })
}

pub fn connector_status() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["schema", "connector_operation_id", "status"],
        "properties": {
            "schema": {"const": "sensorium-connector-operation-status.v1"},
            "connector_operation_id": {"type": "string", "minLength": 1},
            "status": {"enum": statuses()},
            "retry_after_seconds": {"type": "integer"},
            "result": {},
            "diagnostics": {"type": "array", "items": {"type": "object"}}
        }
    })
}

pub fn deferred_operation() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": [
            "schema", "schema/v", "status", "operation/id", "operation/kind", "created_at",
            "retry_after_seconds", "expires_at"
        ],
        "properties": {
            "schema": {"const": "deferred-operation.v1"},
            "schema/v": {"const": 1},
            "status": {"const": "deferred"},
            "operation/id": {"type": "string", "pattern": OPERATION_ID},
            "operation/kind": {"type": "string", "pattern": OPERATION_KIND},
            "created_at": {"type": "string", "format": "date-time"},
            "retry_after_seconds": {"type": "integer", "minimum": 1, "maximum": 3600},
            "expires_at": {"type": "string", "format": "date-time"},
            "status_href": {"type": "string"},
            "cancel_href": {"type": "string"},
            "cancel/unavailable-reason": {"type": "string", "minLength": 1},
            "correlation/id": {"type": "string"},
            "audit/outcome-ref": {"type": "string", "minLength": 1},
            "extensions": {"type": "object"}
        },
        "oneOf": [{"required": ["cancel_href"]}, {"required": ["cancel/unavailable-reason"]}]
    })
}

pub fn deferred_operation_status() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["schema", "schema/v", "status", "operation/id", "operation/kind", "updated_at"],
        "properties": {
            "schema": {"const": "deferred-operation-status.v1"},
            "schema/v": {"const": 1},
            "status": {"enum": statuses()},
            "operation/id": {"type": "string", "pattern": OPERATION_ID},
            "operation/kind": {"type": "string", "pattern": OPERATION_KIND},
            "updated_at": {"type": "string", "format": "date-time"},
            "retry_after_seconds": {"type": "integer", "minimum": 1, "maximum": 3600},
            "expires_at": {"type": "string", "format": "date-time"},
            "result": {},
            "diagnostics": {"type": "array", "items": {"type": "object"}},
            "extensions": {"type": "object"}
        },
        "if": {"properties": {"status": {"const": "completed"}}},
        "then": {"required": ["result"]}
    })
}

fn statuses() -> Value {
    json!(["pending", "running", "completed", "failed", "timed-out", "cancelled", "expired", "unknown"])
}
