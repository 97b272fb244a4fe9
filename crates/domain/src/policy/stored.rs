//! What was granted, as it lies in the ledger and in views: only what differs from a baseline. A million open operations would
//! otherwise hold a gigabyte of defaults.
//!
//! The baseline is part of every fact that is out there: it never changes, whatever the defaults become.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::kind::{BASELINE, KindOverride, KindPolicy};

pub(crate) fn serialize<S: Serializer>(granted: &KindPolicy, serializer: S) -> Result<S::Ok, S::Error> {
    KindOverride::differing(granted).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<KindPolicy, D::Error> {
    Ok(KindOverride::deserialize(deserializer)?.over(&BASELINE))
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
