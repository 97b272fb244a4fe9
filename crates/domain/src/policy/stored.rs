//! What was granted, as it lies in the ledger and in views: only what differs from a baseline. A million open operations would
//! otherwise hold a gigabyte of defaults.
//!
//! The baseline is part of every fact that is out there: it never changes, whatever the defaults become.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{CancelPolicy, KindOverride, KindPolicy, Persistence, TimedOutPolicy, UnknownPolicy};

/// What a field that is left out means, for ever.
const BASELINE: KindPolicy = KindPolicy {
    min_retry_after_seconds: 1,
    max_retry_after_seconds: 300,
    default_retry_after_seconds: 5,
    max_ttl_seconds: 900,
    max_attempts: 720,
    max_response_bytes: 65_536,
    invoke_timeout_ms: 5_000,
    status_timeout_ms: 5_000,
    unknown_policy: UnknownPolicy::Terminal,
    timed_out_policy: TimedOutPolicy::Terminal,
    cancel_policy: CancelPolicy::Provider,
    persistence: Persistence::Durable,
    max_open_per_module: 64,
    max_concurrent_polls_per_module: 4,
    jitter_permille: 100,
    poll_error_backoff_seconds: 1,
    max_poll_error_backoff_seconds: 60,
    diagnostics_max_items: 32,
    diagnostics_max_bytes: 8_192,
};

pub(crate) fn serialize<S: Serializer>(granted: &KindPolicy, serializer: S) -> Result<S::Ok, S::Error> {
    differing(granted).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<KindPolicy, D::Error> {
    Ok(KindOverride::deserialize(deserializer)?.over(&BASELINE))
}

fn differing(granted: &KindPolicy) -> KindOverride {
    KindOverride {
        min_retry_after_seconds: other(granted.min_retry_after_seconds, BASELINE.min_retry_after_seconds),
        max_retry_after_seconds: other(granted.max_retry_after_seconds, BASELINE.max_retry_after_seconds),
        default_retry_after_seconds: other(
            granted.default_retry_after_seconds,
            BASELINE.default_retry_after_seconds,
        ),
        max_ttl_seconds: other(granted.max_ttl_seconds, BASELINE.max_ttl_seconds),
        max_attempts: other(granted.max_attempts, BASELINE.max_attempts),
        max_response_bytes: other(granted.max_response_bytes, BASELINE.max_response_bytes),
        invoke_timeout_ms: other(granted.invoke_timeout_ms, BASELINE.invoke_timeout_ms),
        status_timeout_ms: other(granted.status_timeout_ms, BASELINE.status_timeout_ms),
        unknown_policy: other(granted.unknown_policy, BASELINE.unknown_policy),
        timed_out_policy: other(granted.timed_out_policy, BASELINE.timed_out_policy),
        cancel_policy: other(granted.cancel_policy, BASELINE.cancel_policy),
        persistence: other(granted.persistence, BASELINE.persistence),
        max_open_per_module: other(granted.max_open_per_module, BASELINE.max_open_per_module),
        max_concurrent_polls_per_module: other(
            granted.max_concurrent_polls_per_module,
            BASELINE.max_concurrent_polls_per_module,
        ),
        jitter_permille: other(granted.jitter_permille, BASELINE.jitter_permille),
        poll_error_backoff_seconds: other(
            granted.poll_error_backoff_seconds,
            BASELINE.poll_error_backoff_seconds,
        ),
        max_poll_error_backoff_seconds: other(
            granted.max_poll_error_backoff_seconds,
            BASELINE.max_poll_error_backoff_seconds,
        ),
        diagnostics_max_items: other(granted.diagnostics_max_items, BASELINE.diagnostics_max_items),
        diagnostics_max_bytes: other(granted.diagnostics_max_bytes, BASELINE.diagnostics_max_bytes),
    }
}

fn other<T: PartialEq>(granted: T, baseline: T) -> Option<T> {
    (granted != baseline).then_some(granted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Kept(#[serde(with = "super")] KindPolicy);

    #[test]
    fn a_policy_that_is_left_out_is_the_baseline_word_for_word() {
        let Kept(read) = serde_json::from_str("{}").unwrap();
        let whole = serde_json::json!({
            "min_retry_after_seconds": 1, "max_retry_after_seconds": 300, "default_retry_after_seconds": 5,
            "max_ttl_seconds": 900, "max_attempts": 720, "max_response_bytes": 65_536,
            "invoke_timeout_ms": 5_000, "status_timeout_ms": 5_000, "unknown_policy": "terminal", "timed_out_policy": "terminal",
            "cancel_policy": "provider", "persistence": "durable", "max_open_per_module": 64,
            "max_concurrent_polls_per_module": 4, "jitter_permille": 100, "poll_error_backoff_seconds": 1,
            "max_poll_error_backoff_seconds": 60, "diagnostics_max_items": 32, "diagnostics_max_bytes": 8_192,
        });
        assert_eq!(serde_json::to_value(&read).unwrap(), whole);
        // Written whole, as it was before, it reads the same.
        assert_eq!(serde_json::from_value::<Kept>(whole).unwrap(), Kept(read));
    }

    #[test]
    fn every_field_that_differs_is_kept() {
        let whole = serde_json::to_value(BASELINE).unwrap();
        for (field, value) in whole.as_object().unwrap() {
            let differing = match value.as_str() {
                None => serde_json::json!(value.as_u64().unwrap() + 1),
                Some("terminal") if field == "timed_out_policy" => "resubmit".into(),
                Some("terminal") => "retry-until-expiry".into(),
                Some("provider") => "deny".into(),
                Some(_) => "volatile".into(),
            };
            let text = serde_json::json!({ field: differing }).to_string();
            let kept: Kept = serde_json::from_str(&text).unwrap();
            assert_ne!(kept.0, BASELINE, "{field}");
            assert_eq!(serde_json::to_string(&kept).unwrap(), text);
        }
    }
}
