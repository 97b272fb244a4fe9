//! The three facts that drive work outside, in the flat form of their first users: one member per field of the record. What a poll
//! leaves as it was is left out of its fact, and of this.

use anyhow::Result;
use domain::operation::{Ending, OperationFact};
use domain::{Fact, JobId};
use serde_json::{Value, json};
use store::decode_fact;

/// The payload in its flat form; none if the fact is not of these.
pub(super) fn flat(kind: &str, payload: &str) -> Result<Option<Value>> {
    if !kind.starts_with("external_production_") {
        return Ok(None);
    }
    let Fact::Operation(fact) = decode_fact(kind, payload)? else { return Ok(None) };
    Ok(match fact {
        OperationFact::Dispatched(accepted) => {
            let render_job_id: &JobId = &accepted.link.job_id;
            Some(json!({
                "render_job_id": render_job_id.as_str(),
                "declared_render_type_ref": accepted.link.kind,
                "specialist_ref": accepted.link.specialist,
                "external_job_id": accepted.external_job_id,
                "polling_interval_seconds": accepted.interval_seconds,
                "progress_hint": accepted.progress_hint,
            }))
        }
        OperationFact::Polled(polled) => {
            let mut flat = serde_json::Map::new();
            if let Some(seconds) = polled.interval_seconds {
                flat.insert("polling_interval_seconds".to_owned(), seconds.into());
            }
            if let Some(hint) = polled.progress_hint {
                flat.insert("progress_hint".to_owned(), hint.into());
            }
            Some(flat.into())
        }
        OperationFact::Resolved(ending) => Some(match ending {
            Ending::Completed { result } => {
                let digest = result.data.map(|body| format!("sha256:{}", body.sha256));
                json!({ "render_event_object_id": digest })
            }
            Ending::Failed { failure_detail, error_code, .. } => {
                json!({ "failure_detail": failure_detail, "error_code": error_code })
            }
            Ending::TimedOut => json!({ "failure_detail": "timed-out", "error_code": "operation_timed_out" }),
            Ending::Expired => json!({ "failure_detail": "expired", "error_code": "operation_expired" }),
            Ending::Unknown => json!({ "failure_detail": "unknown", "error_code": "operation_unknown" }),
            Ending::NobodyToAsk => json!({
                "failure_detail": "no node has the executor that could ask",
                "error_code": domain::operation::SPECIALIST_UNREGISTERED,
            }),
        }),
        OperationFact::CancelRequested { .. }
        | OperationFact::CancelAnswered { .. }
        | OperationFact::Cancelled
        | OperationFact::Expired { .. }
        | OperationFact::HandleLearned { .. }
        | OperationFact::Settled(_)
        | OperationFact::LatePolled(_)
        | OperationFact::Contradicted { .. }
        | OperationFact::TimersMoved { .. }
        | OperationFact::Purged { .. }
        | OperationFact::Retired => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // conforms: L94
    #[test]
    fn three_kinds_of_facts_read_flat() {
        let dispatched = r#"{"dispatched":{"link":{"job_id":"work-1","attempt_id":"attempt-1","kind":"render","specialist":"farm"},"cancelability":"cancelable","interval_seconds":30,"progress_hint":"queued","next_poll_at":1,"expires_at":2,"policy":{},"external_job_id":"r-7"}}"#;
        let expected = json!({ "render_job_id": "work-1", "declared_render_type_ref": "render", "specialist_ref": "farm",
            "external_job_id": "r-7", "polling_interval_seconds": 30, "progress_hint": "queued" });
        assert_eq!(flat("external_production_dispatched/1", dispatched).unwrap(), Some(expected));
        let polled = r#"{"polled":{"interval_seconds":60,"progress_hint":"page 2","next_poll_at":1}}"#;
        let expected = json!({ "polling_interval_seconds": 60, "progress_hint": "page 2" });
        assert_eq!(flat("external_production_polled/1", polled).unwrap(), Some(expected));
        let failed = r#"{"resolved":{"failed":{"failure_detail":"no ink","error_code":"ink"}}}"#;
        let expected = json!({ "failure_detail": "no ink", "error_code": "ink" });
        assert_eq!(flat("external_production_resolved/1", failed).unwrap(), Some(expected));
        let completed = flat("external_production_resolved/1", r#"{"resolved":{"completed":{}}}"#).unwrap();
        assert_eq!(completed, Some(json!({ "render_event_object_id": null })));
        assert_eq!(flat("job.created/1", "{}").unwrap(), None);
    }
}
