//! The Sensorium names on the wire: a directive, what came of it, its outcome record, and the catalog of actions.
//!
//! The documents with a `schema` are also in `docs/schemas`, word for word as they are checked.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::JsonObject as Object;
use crate::deferred::Timing;

/// Invokes an action of the catalog: `sensorium-directive.v1`. The root is open; members that are not here are not looked at.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Directive {
    /// `sensorium-directive.v1`.
    pub schema: String,
    /// 1.
    #[serde(rename = "schema/v")]
    pub schema_version: u32,
    /// The name of this directive: it has one outcome, however often it is sent.
    #[serde(rename = "directive/id")]
    pub directive_id: String,
    /// When it was issued, RFC 3339.
    #[serde(rename = "directive/issued_at")]
    pub issued_at: String,
    /// Who issued it, as they say.
    pub issuer: Issuer,
    /// The action.
    pub action_id: String,
    /// Its parameters, which must fit the schema of the action.
    pub parameters: Object,
    /// Whether the caller waits, and how long the work may take.
    pub timing: Timing,
    /// The name of the work: the same with other parameters is a conflict.
    #[serde(default, rename = "idempotency/key", skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// When its result is of no use any more, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<String>,
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

/// Who issued a directive: a module or a participant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Issuer {
    /// A module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_id: Option<String>,
    /// A participant.
    #[serde(default, rename = "participant/did:key", skip_serializing_if = "Option::is_none")]
    pub participant: Option<String>,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
}

/// What came of a directive: `sensorium-directive-result.v1`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DirectiveResult {
    /// `sensorium-directive-result.v1`.
    pub schema: String,
    /// 1.
    #[serde(rename = "schema/v")]
    pub schema_version: u32,
    /// The directive.
    #[serde(rename = "directive/id")]
    pub directive_id: String,
    /// admitted, completed, failed, `timed_out` or rejected.
    pub status: String,
    /// Its outcome record.
    #[serde(rename = "outcome/id")]
    pub outcome_id: String,
    /// What was observed meanwhile.
    #[serde(rename = "observation/ids")]
    pub observation_ids: Vec<String>,
    /// The result; `null` unless it is completed.
    #[schema(value_type = Option<Object>)]
    pub result: Option<Box<RawValue>>,
    /// What joins it to other work.
    #[serde(default, rename = "correlation/id", skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Why it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<DirectiveDiagnostic>,
}

/// Something worth knowing of a directive. Names places, never values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectiveDiagnostic {
    /// info, warn or error.
    pub level: String,
    /// Stable.
    pub code: String,
    /// For people.
    pub message: String,
}

/// The outcome record of a directive: `sensorium-directive-outcome.v1`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DirectiveOutcome {
    /// `sensorium-directive-outcome.v1`.
    pub schema: String,
    /// 1.
    #[serde(rename = "schema/v")]
    pub schema_version: u32,
    /// The record itself: a job.
    #[serde(rename = "outcome/id")]
    pub outcome_id: String,
    /// The directive.
    #[serde(rename = "directive/id")]
    pub directive_id: String,
    /// admitted, completed, failed, `timed_out` or rejected.
    #[serde(rename = "outcome/status")]
    pub status: String,
    /// Since when it is so.
    #[serde(rename = "outcome/recorded_at")]
    pub recorded_at: String,
    /// The action that was asked for.
    pub action_id: String,
    /// Who asked, as they say.
    pub issuer: Issuer,
    /// When work on it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// From the acceptance to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What was decided of it.
    #[serde(rename = "policy/decision")]
    pub decision: PolicyDecision,
    /// Attempts after the first.
    #[serde(rename = "retry/attempts")]
    pub retries: u32,
    /// The result in short.
    #[serde(default, rename = "result/summary", skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What was observed meanwhile.
    #[serde(rename = "observation/ids")]
    pub observation_ids: Vec<String>,
    /// What joins it to other work.
    #[serde(default, rename = "correlation/id", skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The digest of the catalog entry that it was invoked through.
    #[serde(default, rename = "catalog/digest", skip_serializing_if = "Option::is_none")]
    pub catalog_digest: Option<String>,
    /// Where what happened to it is written down.
    #[serde(rename = "audit/store")]
    pub audit_store: AuditStore,
}

/// Where what happened to a directive is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditStore {
    /// The kind of store; always `ledger`.
    pub kind: String,
    /// The path of its facts on this host.
    pub href: String,
}

/// What was decided of a directive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyDecision {
    /// admit, reject, timeout or fail.
    pub decision: String,
    /// Why, short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the same may be asked for again.
    pub retryable: bool,
}

/// The actions that directives may name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ActionCatalog {
    /// By name.
    pub actions: Vec<Action>,
}

/// One action. Who does it, and where, is the operator's business.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Action {
    /// What directives call it.
    pub action_id: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// sync-only, either or async-only.
    pub execution_mode_support: String,
    /// The longest that a caller waits for it.
    pub max_timeout_ms: u32,
    /// When to ask first for work that goes on, within what the host grants.
    pub retry_after_seconds: u32,
    /// How long work that goes on may live, within what the host grants.
    pub max_ttl_seconds: u64,
    /// What its parameters must be.
    #[schema(value_type = Object)]
    pub parameters_schema: serde_json::Value,
}

/// Names an operation, for `sensorium.operation.status` and `sensorium.operation.cancel`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationNamed {
    /// The handle.
    #[serde(rename = "operation/id")]
    pub operation_id: String,
    /// Why it shall stop; only for a cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
