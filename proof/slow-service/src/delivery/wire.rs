//! What goes over the wire about a delivery. The artifact itself never does: only its digest and size.

use serde_json::{Value, json};

use super::runner::{
    ACCEPTED, EXPIRED, FAILED_PERMANENT, FAILED_RETRYABLE, PARTIAL, RUNNING, SUCCEEDED, attempts, expires_at,
};
use crate::clock::rfc3339;
use crate::digest::id_of;
use crate::state::{Change, Record};

const KIND: &str = "artifact-delivery.submit";
const CAPABILITY: &str = "artifact.delivery.send";
const NOT_CANCELABLE: &str = "artifact-delivery-dispatch-may-already-be-in-flight";
const RETRY_AFTER_SECONDS: u32 = 5;

/// `deferred-operation.v1`: the answer to an accepted delivery.
pub fn acknowledged(record: &Record) -> Value {
    json!({
        "schema": "deferred-operation.v1",
        "schema/v": 1,
        "status": "deferred",
        "operation/id": operation_id(record),
        "operation/kind": KIND,
        "created_at": rfc3339(record.accepted_at),
        "retry_after_seconds": RETRY_AFTER_SECONDS,
        "expires_at": rfc3339(expires_at(record)),
        "status_href": status_href(record),
        "cancel/unavailable-reason": NOT_CANCELABLE,
        "audit/outcome-ref": audit_ref(record),
        "extensions": {"capability_id": CAPABILITY, "delivery/id": record.id},
    })
}

/// `deferred-operation-status.v1`: the same for every kind of deferred operation.
pub fn operation_status(record: &Record) -> Value {
    let status = deferred_status(&record.status);
    let mut body = json!({
        "schema": "deferred-operation-status.v1",
        "schema/v": 1,
        "status": status,
        "operation/id": operation_id(record),
        "operation/kind": KIND,
        "updated_at": rfc3339(record.updated_at),
        "expires_at": rfc3339(expires_at(record)),
        "extensions": {"capability_id": CAPABILITY, "attempt_no": attempts(record)},
    });
    if status == "pending" || status == "running" {
        body["retry_after_seconds"] = json!(RETRY_AFTER_SECONDS);
    }
    if status == "completed" {
        body["result"] = json!({
            "delivery/id": record.id,
            "status": record.status,
            "partial": record.status == PARTIAL,
            "artifact/digest": record.body["envelope"]["artifact"]["digest"],
            "delivered": record.body["delivered"],
        });
    }
    if let Some(class) = record.body["failure/class"].as_str() {
        let line = record.body["retry/history"].as_array().and_then(|history| history.last());
        let message = line.map_or(&Value::Null, |line| &line["message"]);
        body["diagnostics"] = json!([{"code": class, "message": message}]);
    }
    body
}

/// The delivery as its own ledger has it.
pub fn delivery(record: &Record, changes: &[Change]) -> Value {
    let changes: Vec<Value> = changes
        .iter()
        .map(|change| json!({"from": change.from, "to": change.to, "at": rfc3339(change.at)}))
        .collect();
    let artifact = &record.body["envelope"]["artifact"];
    json!({
        "schema": "artifact-delivery-record.v1",
        "schema/v": 1,
        "delivery/id": record.id,
        "operation/id": operation_id(record),
        "status": record.status,
        "failure/class": record.body["failure/class"],
        "attempts": attempts(record),
        "artifact": {
            "schema": artifact["schema"],
            "content/type": artifact["content/type"],
            "digest": artifact["digest"],
            "size/bytes": artifact["size/bytes"],
        },
        "delivered": record.body["delivered"],
        "refused": record.body["refused"],
        "retry/history": record.body["retry/history"],
        "status/history": changes,
        "created_at": rfc3339(record.accepted_at),
        "updated_at": rfc3339(record.updated_at),
        "expires_at": rfc3339(expires_at(record)),
        "audit/outcome-ref": audit_ref(record),
    })
}

/// `artifact-delivery-recovery.v1`: what one recovery pass did.
pub fn recovery(records: &[Record]) -> Value {
    let deliveries: Vec<Value> = records
        .iter()
        .map(
            |record| json!({"delivery/id": record.id, "status": record.status, "attempts": attempts(record)}),
        )
        .collect();
    json!({
        "schema": "artifact-delivery-recovery.v1",
        "schema/v": 1,
        "status": "ok",
        "recovered/count": deliveries.len(),
        "deliveries": deliveries,
    })
}

/// Where the state of a deferred operation is asked for.
pub fn status_href(record: &Record) -> String {
    format!("/v1/artifact-delivery/deliveries/{}/operation-status", record.id)
}

fn deferred_status(status: &str) -> &'static str {
    match status {
        ACCEPTED => "pending",
        RUNNING | FAILED_RETRYABLE => "running",
        SUCCEEDED | PARTIAL => "completed",
        FAILED_PERMANENT => "failed",
        EXPIRED => "expired",
        _ => "unknown",
    }
}

fn operation_id(record: &Record) -> String {
    format!("deferred:{KIND}:{}", id_of(&[KIND, record.key.as_deref().unwrap_or(&record.id)]))
}

fn audit_ref(record: &Record) -> String {
    format!("artifact-delivery-outcome:{}", record.id)
}
