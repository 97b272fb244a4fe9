//! The host's policy: its defaults, what differs per kind, what it refuses, and the clamp on every hint.

use super::*;
use crate::{Jitter, Timestamp};

const NOW: Timestamp = Timestamp::from_seconds(1_000);

fn kind() -> KindPolicy {
    KindPolicy::default()
}

fn invalid(field: &'static str) -> Result<(), Refusal> {
    Err(Refusal::InvalidPolicy { field })
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let expected = serde_json::json!({
        "defaults": {
            "min_retry_after_seconds": 1,
            "max_retry_after_seconds": 300,
            "default_retry_after_seconds": 5,
            "max_ttl_seconds": 900,
            "max_attempts": 720,
            "max_response_bytes": 65_536,
            "invoke_timeout_ms": 5_000,
            "status_timeout_ms": 5_000,
            "unknown_policy": "terminal",
            "cancel_policy": "provider",
            "persistence": "durable",
            "max_open_per_module": 64,
            "max_concurrent_polls_per_module": 4,
            "jitter_permille": 100,
            "poll_error_backoff_seconds": 1,
            "max_poll_error_backoff_seconds": 60,
            "diagnostics_max_items": 32,
            "diagnostics_max_bytes": 8_192,
        },
        "kind_overrides": {},
        "max_open_total": 1_024,
        "max_concurrent_polls_total": 32,
    });
    assert_eq!(serde_json::to_value(HostPolicy::default()).unwrap(), expected);
    assert_eq!(HostPolicy::default().check(), Ok(()));
    assert_eq!(serde_json::from_str::<HostPolicy>("{}").unwrap(), HostPolicy::default());
}

#[test]
fn a_field_that_is_not_a_policy_is_refused() {
    for text in ["{\"max_atempts\":3}", "{\"defaults\":{\"max_atempts\":3}}"] {
        assert!(serde_json::from_str::<HostPolicy>(text).is_err(), "{text}");
    }
    let text = "{\"kind_overrides\":{\"render\":{\"max_atempts\":3}}}";
    assert!(serde_json::from_str::<HostPolicy>(text).is_err());
}

// conforms: O36 O38 O93
#[test]
fn a_retry_hint_is_clamped() {
    for (hint, seconds, hint_was_invalid) in [
        (Hint::Absent, 5, false),
        (Hint::Seconds(0), 1, false),
        (Hint::Seconds(5), 5, false),
        (Hint::Seconds(99_999), 300, false),
        (Hint::Seconds(-3), 1, true),
        (Hint::Invalid, 1, true),
        (Hint::Seconds(1), 1, false),
        (Hint::Seconds(300), 300, false),
        (Hint::Seconds(301), 300, false),
        (Hint::Seconds(i64::MAX), 300, false),
        (Hint::Seconds(i64::MIN), 1, true),
    ] {
        assert_eq!(kind().retry_after(hint), Clamped { seconds, hint_was_invalid }, "{hint:?}");
    }
}

// conforms: O39 O40 O41 O42
#[test]
fn the_smallest_hint_on_its_life_counts_and_never_more_than_the_host_grants() {
    let hint = |seconds: Option<i64>| seconds.map_or(Hint::Absent, Hint::Seconds);
    for (fail_after, action_ttl, deadline_in, ttl) in [
        (None, None, None, 900),
        (Some(1_800), Some(600), Some(120), 120),
        (Some(3_600), None, None, 900),
        (Some(60), Some(1_800), Some(400), 60),
        (None, Some(600), None, 600),
        (None, None, Some(99_999), 900),
        (Some(i64::MAX), Some(i64::MAX), None, 900),
        (Some(0), None, None, 1),
        (Some(-3), None, None, 1),
    ] {
        let hints = TtlHints {
            fail_after: hint(fail_after),
            action_ttl: hint(action_ttl),
            deadline_at: deadline_in.map(|seconds| NOW.plus_seconds(seconds)),
        };
        assert_eq!(kind().expires_at(hints, NOW), Ok(NOW.plus_seconds(ttl)), "{hints:?}");
    }
}

#[test]
fn a_deadline_now_or_past_is_refused() {
    for deadline_at in [NOW, NOW.plus_micros(-1), Timestamp::default(), Timestamp::from_micros(i64::MIN)] {
        let hints = TtlHints { deadline_at: Some(deadline_at), ..TtlHints::default() };
        assert_eq!(kind().expires_at(hints, NOW), Err(Refusal::DeadlineElapsed));
    }
    let hints = TtlHints { deadline_at: Some(NOW.plus_micros(1)), ..TtlHints::default() };
    assert_eq!(kind().expires_at(hints, NOW), Ok(NOW.plus_micros(1)));
}

#[test]
fn a_hint_that_is_no_number_says_nothing_about_a_life() {
    let hints = TtlHints { fail_after: Hint::Invalid, action_ttl: Hint::Invalid, deadline_at: None };
    assert_eq!(kind().expires_at(hints, NOW), Ok(NOW.plus_seconds(900)));
}

#[test]
fn whatever_a_connector_writes_is_a_whole_number_or_nonsense() {
    for (text, seconds) in [
        ("5", 5),
        (" 5\t", 5),
        ("+5", 5),
        ("0", 0),
        ("-0", 0),
        ("-3", -3),
        ("007", 7),
        ("9223372036854775807", i64::MAX),
        ("9223372036854775808", i64::MAX),
        ("-9223372036854775809", i64::MIN),
        ("99999999999999999999999999999999999999", i64::MAX),
    ] {
        assert_eq!(Hint::parse(text), Hint::Seconds(seconds), "{text:?}");
    }
    assert_eq!(Hint::parse(&"9".repeat(100_000)), Hint::Seconds(i64::MAX));
    assert_eq!(Hint::parse(&format!("-{}", "9".repeat(100_000))), Hint::Seconds(i64::MIN));
    for text in [
        "",
        " ",
        "-",
        "+",
        "--5",
        "+-5",
        "5.5",
        "5.0",
        "1e308",
        "1e3",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "null",
        "five",
        "5s",
        "0x10",
        "5 6",
        "1_000",
        "٥",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "2015-10-21T07:28:00Z",
    ] {
        assert_eq!(Hint::parse(text), Hint::Invalid, "{text:?}");
    }
}

#[test]
fn the_next_poll_is_later_by_at_most_the_jitter_and_never_sooner() {
    let at = |seconds, jitter| kind().next_poll_at(seconds, jitter, NOW).micros() - NOW.micros();
    assert_eq!(at(300, Jitter(0)), 300_000_000);
    assert_eq!(at(300, Jitter(32_768)), 315_000_000);
    assert_eq!(at(300, Jitter(u16::MAX)), 329_999_542);
    let exact = KindPolicy { jitter_permille: 0, ..kind() };
    assert_eq!(exact.next_poll_at(300, Jitter(u16::MAX), NOW), NOW.plus_seconds(300));
}

#[test]
fn the_last_instant_is_not_passed() {
    let last = Timestamp::from_micros(i64::MAX);
    assert_eq!(kind().next_poll_at(300, Jitter(u16::MAX), last), last);
    assert_eq!(kind().next_poll_after_error(9, Jitter(u16::MAX), last), last);
    assert_eq!(kind().expires_at(TtlHints::default(), last), Ok(last));
}

// conforms: O91
#[test]
fn a_kind_without_an_override_lives_for_a_quarter_of_an_hour_and_one_with_it_for_days() {
    let days = KindOverride { max_ttl_seconds: Some(3 * 86_400), ..KindOverride::default() };
    let host = HostPolicy { kind_overrides: [("render".to_owned(), days)].into(), ..HostPolicy::default() };
    assert_eq!(host.for_kind("render"), KindPolicy { max_ttl_seconds: 3 * 86_400, ..kind() });
    assert_eq!(host.for_kind("print"), kind());
    assert_eq!(host.for_kind("print").max_ttl_seconds, 900);
}

/// Every field of a kind's policy with a value that is not its default.
fn others() -> serde_json::Map<String, serde_json::Value> {
    let others = serde_json::json!({
        "min_retry_after_seconds": 2,
        "max_retry_after_seconds": 301,
        "default_retry_after_seconds": 6,
        "max_ttl_seconds": 259_200,
        "max_attempts": 721,
        "max_response_bytes": 65_537,
        "invoke_timeout_ms": 5_001,
        "status_timeout_ms": 5_002,
        "unknown_policy": "retry-until-expiry",
        "cancel_policy": "deny",
        "persistence": "volatile",
        "max_open_per_module": 65,
        "max_concurrent_polls_per_module": 5,
        "jitter_permille": 101,
        "poll_error_backoff_seconds": 2,
        "max_poll_error_backoff_seconds": 61,
        "diagnostics_max_items": 33,
        "diagnostics_max_bytes": 8_193,
    });
    others.as_object().unwrap().clone()
}

#[test]
fn a_kind_may_override_each_field_alone_and_all_together() {
    let defaults = serde_json::to_value(kind()).unwrap();
    assert!(defaults.as_object().unwrap().keys().eq(others().keys()));
    let overridden = |fields: serde_json::Value| {
        let overrides = serde_json::json!({ "kind_overrides": { "render": fields } });
        let host: HostPolicy = serde_json::from_value(overrides).unwrap();
        assert_eq!(host.check(), Ok(()));
        serde_json::to_value(host.for_kind("render")).unwrap()
    };
    for (field, value) in others() {
        let mut expected = defaults.clone();
        expected[&field] = value.clone();
        assert_eq!(overridden(serde_json::json!({ field.as_str(): value })), expected);
    }
    assert_eq!(overridden(others().into()), serde_json::Value::from(others()));
}

#[test]
fn a_policy_whose_bounds_cannot_be_held_is_refused_by_field() {
    let over_an_hour = u64::from(RETRY_AFTER_CEILING_SECONDS) + 1;
    for (field, values) in [
        ("min_retry_after_seconds", vec![0]),
        ("max_retry_after_seconds", vec![0, over_an_hour]),
        ("default_retry_after_seconds", vec![0, 301]),
        ("max_ttl_seconds", vec![0, TTL_CEILING_SECONDS + 1, u64::MAX]),
        ("max_attempts", vec![0]),
        ("max_response_bytes", vec![0]),
        ("invoke_timeout_ms", vec![0]),
        ("status_timeout_ms", vec![0]),
        ("max_open_per_module", vec![0]),
        ("max_concurrent_polls_per_module", vec![0]),
        ("jitter_permille", vec![1_001]),
        ("poll_error_backoff_seconds", vec![0]),
        ("max_poll_error_backoff_seconds", vec![0, over_an_hour]),
    ] {
        for value in values {
            let policy = serde_json::json!({ field: value });
            let policy: KindPolicy = serde_json::from_value(policy).unwrap();
            assert_eq!(policy.check(), invalid(field), "{value}");
            let host = HostPolicy { defaults: policy, ..HostPolicy::default() };
            assert_eq!(host.check(), invalid(field), "{value}");
        }
    }
}

#[test]
fn bounds_that_contradict_each_other_are_refused() {
    let min_over_max = KindPolicy { min_retry_after_seconds: 301, ..kind() };
    assert_eq!(min_over_max.check(), invalid("max_retry_after_seconds"));
    let default_under_min = KindPolicy { min_retry_after_seconds: 6, ..kind() };
    assert_eq!(default_under_min.check(), invalid("default_retry_after_seconds"));
    let first_over_longest = KindPolicy { poll_error_backoff_seconds: 61, ..kind() };
    assert_eq!(first_over_longest.check(), invalid("max_poll_error_backoff_seconds"));
}

#[test]
fn a_host_policy_is_checked_in_all_its_parts() {
    let none_open = HostPolicy { max_open_total: Limit(0), ..HostPolicy::default() };
    assert_eq!(none_open.check(), invalid("max_open_total"));
    let no_polls = HostPolicy { max_concurrent_polls_total: Limit(0), ..HostPolicy::default() };
    assert_eq!(no_polls.check(), invalid("max_concurrent_polls_total"));
    let never = KindOverride { max_attempts: Some(0), ..KindOverride::default() };
    let bad_kind =
        HostPolicy { kind_overrides: [("render".to_owned(), never)].into(), ..HostPolicy::default() };
    assert_eq!(bad_kind.check(), invalid("max_attempts"));
}
