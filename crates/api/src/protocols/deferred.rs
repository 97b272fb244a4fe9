//! Capabilities and deferred operations on the wire: what is sent to invoke an executor, and the handle on work that goes on.
//!
//! The two documents with a `schema` are also in `docs/schemas`, word for word as they are checked on the way out.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::JsonObject as Object;

/// Invokes a capability. Unknown keys are refused.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Invoke {
    /// The executor's input: any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<utoipa::openapi::schema::Value>)]
    pub input: Option<Box<RawValue>>,
    /// Whether the caller waits, and how long the work may take.
    #[serde(default)]
    pub timing: Timing,
    /// When its result is of no use any more, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<String>,
    /// The name of this call; the header `Idempotency-Key` says the same.
    #[serde(default, rename = "idempotency/key", skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Lets work that its service does not know any more, after a restart for instance, be asked about until it expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_restart_recovery: bool,
    /// What joins it to other work.
    #[serde(default, rename = "correlation/id", skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Where it came from: a `causal-context.v1`.
    #[serde(default, rename = "causal/context", skip_serializing_if = "Option::is_none")]
    pub causal_context: Option<Object>,
}

/// Whether the caller waits, and how long the work may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Whether the caller waits for the result or takes a handle.
    #[serde(default)]
    pub mode: Mode,
    /// The time that the work itself may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
}

/// Whether the caller waits for the result or takes a handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Waits.
    #[default]
    Sync,
    /// Takes a handle.
    Async,
}

/// What came of a call that was waited for: completed or failed, never a handle.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InvokeOutcome {
    /// completed or failed.
    pub status: String,
    /// The record of it: a job.
    #[serde(rename = "outcome/id")]
    pub outcome_id: String,
    /// The result; only if it was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<utoipa::openapi::schema::Value>)]
    pub result: Option<Box<RawValue>>,
    /// Why not; only if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<InvokeError>,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvokeError {
    /// Stable: `action-timeout`, `deferred-not-allowed`, or the executor's own.
    pub code: String,
    /// For people.
    pub message: String,
}

/// A call was accepted and goes on: a bounded handle. Exactly one of `cancel_href` and `cancel/unavailable-reason` is there.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeferredOperation {
    /// `deferred-operation.v1`.
    pub schema: String,
    /// 1.
    #[serde(rename = "schema/v")]
    pub schema_version: u32,
    /// deferred.
    pub status: String,
    /// The handle.
    #[serde(rename = "operation/id")]
    pub operation_id: String,
    /// The kind of work.
    #[serde(rename = "operation/kind")]
    pub operation_kind: String,
    /// When it was accepted.
    pub created_at: String,
    /// When to ask.
    pub retry_after_seconds: u32,
    /// When it ends at the latest.
    pub expires_at: String,
    /// Where to ask.
    pub status_href: String,
    /// Where to stop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_href: Option<String>,
    /// Why it cannot be stopped.
    #[serde(default, rename = "cancel/unavailable-reason", skip_serializing_if = "Option::is_none")]
    pub cancel_unavailable_reason: Option<String>,
    /// What joins it to other work.
    #[serde(default, rename = "correlation/id", skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Where it came from.
    #[serde(default, rename = "causal/context", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub causal_context: Option<Box<RawValue>>,
    /// The record of its acceptance: a job.
    #[serde(rename = "audit/outcome-ref")]
    pub audit_outcome_ref: String,
    /// What is worth knowing of it; empty if nothing is.
    #[serde(default)]
    pub diagnostics: Vec<DeferredDiagnostic>,
    /// What the schema has no place for.
    pub extensions: DeferredExtensions,
}

/// Where a deferred operation is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeferredStatus {
    /// `deferred-operation-status.v1`.
    pub schema: String,
    /// 1.
    #[serde(rename = "schema/v")]
    pub schema_version: u32,
    /// pending, running, completed, failed, timed-out, cancelled, expired or unknown.
    pub status: String,
    /// The handle.
    #[serde(rename = "operation/id")]
    pub operation_id: String,
    /// The kind of work.
    #[serde(rename = "operation/kind")]
    pub operation_kind: String,
    /// When anything last happened to it.
    pub updated_at: String,
    /// When to ask again; only while it is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
    /// When it ends at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Where it came from.
    #[serde(default, rename = "causal/context", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub causal_context: Option<Box<RawValue>>,
    /// The result; always if it is completed, and only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<utoipa::openapi::schema::Value>)]
    pub result: Option<Box<RawValue>>,
    /// Why it is there; empty if there is nothing to say.
    #[serde(default)]
    pub diagnostics: Vec<DeferredDiagnostic>,
    /// What the schema has no place for.
    pub extensions: DeferredExtensions,
}

/// What the schemas have no place for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeferredExtensions {
    /// How often its service was asked so far.
    pub attempt_no: u32,
    /// Who does it.
    pub owner_module_id: String,
    /// The capability that was invoked.
    pub capability_id: String,
    /// The action that a directive asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// The job that it is the face of.
    pub job_id: String,
    /// In a status: where it is asked to stop; only while it is not over, and if it can be stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_href: Option<String>,
    /// In a status: why it cannot be stopped; only while it is not over.
    #[serde(default, rename = "cancel/unavailable-reason", skip_serializing_if = "Option::is_none")]
    pub cancel_unavailable_reason: Option<String>,
    /// The digest of the catalog entry that it was invoked through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog_digest: Option<String>,
    /// `volatile` if it is given up when its daemon is gone; left out if it outlives that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<String>,
    /// What was asked for and not granted; left out if everything was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clamps: Vec<crate::Clamp>,
    /// The limits of the host that ended it; left out if none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<crate::ReachedLimit>,
}

/// Something worth knowing: a code, nothing that a service said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeferredDiagnostic {
    /// Stable.
    pub code: String,
}

/// What operators see of a deferred operation: digests in place of everything private.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeferredView {
    /// The handle.
    #[serde(rename = "operation/id")]
    pub operation_id: String,
    /// The kind of work.
    #[serde(rename = "operation/kind")]
    pub operation_kind: String,
    /// One of the eight statuses.
    pub status: String,
    /// Who does it.
    pub owner_module_id: String,
    /// The capability that was invoked.
    pub capability_id: String,
    /// The action that a directive asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// What made it.
    pub source: Option<String>,
    /// When it was accepted.
    pub created_at: String,
    /// When anything last happened to it.
    pub updated_at: String,
    /// When it ends at the latest.
    pub expires_at: Option<String>,
    /// When its service is asked next.
    pub next_retry_at: Option<String>,
    /// How often its service was asked.
    pub attempts: u32,
    /// Whether it can be stopped.
    pub cancelable: bool,
    /// Why not.
    #[serde(rename = "cancel/unavailable-reason")]
    pub cancel_unavailable_reason: Option<String>,
    /// What joins it to other work.
    #[serde(rename = "correlation/id")]
    pub correlation_id: Option<String>,
    /// The record of its acceptance: a job.
    #[serde(rename = "audit/outcome-ref")]
    pub audit_outcome_ref: String,
    /// Who goes on with its result.
    pub continuation_owner: Option<String>,
    /// The digest of what its service is asked with.
    pub continuation_digest: Option<String>,
    /// The service's own id of the work, if its executor tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_job_id: Option<String>,
    /// The digest of the catalog entry that it was invoked through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog_digest: Option<String>,
    /// `volatile` if it is given up when its daemon is gone; left out if it outlives that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<String>,
    /// What was asked for and not granted; left out if everything was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clamps: Vec<crate::Clamp>,
    /// The limits of the host that ended it; left out if none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<crate::ReachedLimit>,
    /// The digest of its input.
    pub input_digest: Option<String>,
    /// The digest of its result.
    pub result_digest: Option<String>,
    /// The digest of all that is worth knowing of it.
    pub diagnostics_digest: Option<String>,
    /// The newest of that.
    pub last_diagnostic: Option<DeferredDiagnostic>,
    /// The code of the last question that failed.
    pub last_error_class: Option<String>,
    /// The beginning of what it failed with, without secrets.
    pub last_error_text: Option<String>,
    /// poll, cancel and retry, if they are of use now.
    pub allowed_actions: Vec<String>,
}

/// A page of deferred operations, newest change first. A page may be short; only a missing `next_cursor` is the end.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeferredList {
    /// The operations.
    pub operations: Vec<DeferredView>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}

/// One deferred operation and what happened to it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeferredDetail {
    /// The operation.
    pub operation: DeferredView,
    /// Its newest lines of the ledger, oldest first: digests only.
    pub history: Vec<DeferredEvent>,
}

/// One line of the ledger, without what it says.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeferredEvent {
    /// Its place in the whole ledger.
    pub position: u64,
    /// What kind of thing happened.
    pub kind: String,
    /// When.
    pub at: String,
    /// Who did it.
    pub actor: String,
    /// The digest of the rest.
    pub payload_digest: String,
}
