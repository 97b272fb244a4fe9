//! The schemas of what leaves this face, as they are in `docs/schemas`. What does not fit is never sent.

use std::sync::LazyLock;

use api::ProblemCode;
use jsonschema::Validator;
use serde_json::Value;

use crate::Result;

/// By document, and of a causal context last.
static VALIDATORS: LazyLock<[Validator; 5]> = LazyLock::new(|| {
    [
        include_str!("../../../../../docs/schemas/deferred-operation.v1.schema.json"),
        include_str!("../../../../../docs/schemas/deferred-operation-status.v1.schema.json"),
        include_str!("../../../../../docs/schemas/sensorium-directive-result.v1.schema.json"),
        include_str!("../../../../../docs/schemas/sensorium-directive-outcome.v1.schema.json"),
        include_str!("../../../../../docs/schemas/causal-context.v1.schema.json"),
    ]
    .map(compiled)
});

/// What may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    /// The handle.
    Operation,
    /// Where it is.
    Status,
    /// What came of a directive.
    DirectiveResult,
    /// Its record.
    DirectiveOutcome,
}

/// The document, if it fits its schema.
pub(crate) fn check(document: Document, bytes: &[u8]) -> Result<Value> {
    let broken = || ProblemCode::Internal.because("the answer does not fit its schema; see the daemon's log");
    let value: Value = serde_json::from_slice(bytes).map_err(|_| broken())?;
    if let Err(error) = VALIDATORS[document as usize].validate(&value) {
        tracing::error!(?document, place = %error.instance_path(), "an answer does not fit its schema");
        return Err(broken());
    }
    Ok(value)
}

/// Whether a text is a `causal-context.v1`.
pub(super) fn is_causal_context(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|value: Value| VALIDATORS[4].is_valid(&value))
}

fn compiled(schema: &str) -> Validator {
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    jsonschema::options().should_validate_formats(true).build(&schema).expect("the schema is a schema")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn operation() -> Value {
        json!({
            "schema": "deferred-operation.v1",
            "schema/v": 1,
            "status": "deferred",
            "operation/id": "deferred:artifact-delivery.submit:0a1b",
            "operation/kind": "artifact-delivery.submit",
            "created_at": "2026-01-01T00:00:00Z",
            "retry_after_seconds": 5,
            "expires_at": "2026-01-01T00:15:00Z",
            "status_href": "/v1/deferred-operations/deferred:artifact-delivery.submit:0a1b/status",
            "cancel/unavailable-reason": "artifact-delivery-dispatch-may-already-be-in-flight",
        })
    }

    fn status() -> Value {
        json!({
            "schema": "deferred-operation-status.v1",
            "schema/v": 1,
            "status": "completed",
            "operation/id": "deferred:echo:0a1b",
            "operation/kind": "echo",
            "updated_at": "2026-01-01T00:00:00.5+01:00",
            "result": null,
        })
    }

    fn fits(document: Document, value: &Value) -> bool {
        check(document, value.to_string().as_bytes()).is_ok()
    }

    /// The document with these members changed; those that are changed to nothing are taken out.
    fn with(mut value: Value, changes: &[(&str, Option<Value>)]) -> Value {
        let members = value.as_object_mut().unwrap();
        for (key, changed) in changes {
            match changed {
                Some(changed) => members.insert((*key).to_owned(), changed.clone()),
                None => members.remove(*key),
            };
        }
        value
    }

    // conforms: O23 O70 O74 O92 O103
    #[test]
    fn handles_fit_their_schema_or_do_not_leave() {
        let (href, reason) = ("cancel_href", "cancel/unavailable-reason");
        assert!(fits(Document::Operation, &operation()));
        let cancelable = with(operation(), &[(reason, None), (href, Some(json!("/x")))]);
        assert!(fits(Document::Operation, &cancelable));
        assert!(fits(Document::Operation, &with(operation(), &[("extensions", Some(json!({ "any": 1 })))])));
        for unfit in [
            vec![(href, Some(json!("/x")))],
            vec![(reason, None)],
            vec![(reason, Some(json!("")))],
            vec![("attempt_no", Some(json!(1)))],
            vec![("status", Some(json!("pending")))],
            vec![("schema/v", Some(json!(2)))],
            vec![("operation/id", Some(json!("deferred:Echo:1")))],
            vec![("operation/kind", Some(json!("json_e_flow.step")))],
            vec![("retry_after_seconds", Some(json!(0)))],
            vec![("retry_after_seconds", Some(json!(3_601)))],
            vec![("expires_at", Some(json!("soon")))],
        ] {
            assert!(!fits(Document::Operation, &with(operation(), &unfit)), "{unfit:?}");
        }
        for required in [
            "schema",
            "schema/v",
            "status",
            "operation/id",
            "operation/kind",
            "retry_after_seconds",
            "created_at",
            "expires_at",
        ] {
            assert!(!fits(Document::Operation, &with(operation(), &[(required, None)])), "{required}");
        }
    }

    // conforms: O29 O72 O74 O92 O103
    #[test]
    fn statuses_fit_their_schema_or_do_not_leave() {
        assert!(fits(Document::Status, &status()));
        for word in ["pending", "running", "failed", "timed-out", "cancelled", "expired", "unknown"] {
            let open = with(status(), &[("status", Some(json!(word))), ("result", None)]);
            assert!(fits(Document::Status, &open), "{word}");
        }
        let open = json!([{ "code": "a", "anything": { "else": 1 } }]);
        assert!(fits(Document::Status, &with(status(), &[("diagnostics", Some(open))])));
        for unfit in [
            vec![("result", None)],
            vec![("status", Some(json!("deferred")))],
            vec![("status", Some(json!("timed_out")))],
            vec![("updated_at", None)],
            vec![("operation/id", Some(json!("deferred:Echo:1")))],
            vec![("operation/kind", Some(json!("json_e_flow.step")))],
            vec![("retry_after_seconds", Some(json!(0)))],
            vec![("retry_after_seconds", Some(json!(3_601)))],
            vec![("attempt_no", Some(json!(1)))],
            vec![("diagnostics", Some(json!(["text"])))],
        ] {
            assert!(!fits(Document::Status, &with(status(), &unfit)), "{unfit:?}");
        }
    }
}
