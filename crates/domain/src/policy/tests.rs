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
    let defaults = serde_json::json!({
            "min_retry_after_seconds": 1,
            "max_retry_after_seconds": 300,
            "default_retry_after_seconds": 5,
            "max_ttl_seconds": 900,
            "max_attempts": 720,
            "max_response_bytes": 65_536,
            "invoke_timeout_ms": 5_000,
            "status_timeout_ms": 5_000,
            "unknown_policy": "terminal",
            "timed_out_policy": "terminal",
            "cancel_policy": "provider",
            "persistence": "durable",
            "max_open_per_module": 64,
            "max_concurrent_polls_per_module": 4,
            "jitter_permille": 100,
            "poll_error_backoff_seconds": 1,
            "max_poll_error_backoff_seconds": 60,
            "diagnostics_max_items": 32,
            "diagnostics_max_bytes": 8_192,
    });
    assert_eq!(serde_json::to_value(HostPolicy::default().for_kind("render")).unwrap(), defaults);
    let expected = serde_json::json!({
        "defaults": {},
        "kind_overrides": {},
        "max_open_total": 1_024,
        "max_concurrent_polls_total": 32,
        "job_ttl_seconds": 86_400,
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
fn next_poll_is_later_by_the_jitter_and_within_the_longest_wait() {
    let at = |seconds, jitter| kind().next_poll_at(seconds, jitter, NOW).micros() - NOW.micros();
    assert_eq!(at(200, Jitter(0)), 200_000_000);
    assert_eq!(at(200, Jitter(32_768)), 210_000_000);
    assert_eq!(at(200, Jitter(u16::MAX)), 219_999_694);
    assert_eq!(at(290, Jitter(u16::MAX)), 300_000_000);
    assert_eq!(at(300, Jitter(u16::MAX)), 300_000_000);
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
    let days = KindPolicy { max_ttl_seconds: 3 * 86_400, max_attempts: 3 * 86_400 + 1, ..kind() };
    assert_eq!(host.for_kind("render"), days);
    assert_eq!(host.for_kind("print"), kind());
    assert_eq!(host.for_kind("print").max_ttl_seconds, 900);
}

#[test]
fn work_of_a_job_lives_until_its_end_or_a_day_unless_kind_says() {
    let hour = KindOverride { max_ttl_seconds: Some(3_600), ..KindOverride::default() };
    let polls = KindOverride { max_attempts: Some(9), ..KindOverride::default() };
    let own = KindOverride { max_ttl_seconds: Some(60), ..KindOverride::default() };
    let kind_overrides =
        [("render".to_owned(), hour), ("print".to_owned(), polls), ("press/print".to_owned(), own)].into();
    let host = HostPolicy { kind_overrides, ..HostPolicy::default() };
    for (circle, kind, life, seconds, limit) in [
        (None, "draw", JobLife::Unbounded, 86_400, LifeLimit::JobTtl),
        (None, "draw", JobLife::Bounded, TTL_CEILING_SECONDS, LifeLimit::JobTtl),
        (None, "print", JobLife::Unbounded, 86_400, LifeLimit::JobTtl),
        (Some("press"), "print", JobLife::Unbounded, 60, LifeLimit::MaxTtl),
        (Some("press"), "print", JobLife::Bounded, 60, LifeLimit::MaxTtl),
        (Some("press"), "render", JobLife::Bounded, 3_600, LifeLimit::MaxTtl),
    ] {
        let (granted, by) = host.for_job(circle, kind, life);
        assert_eq!((granted.max_ttl_seconds, by), (seconds, limit), "{circle:?} {kind} {life:?}");
    }
    assert_eq!(host.for_job(None, "print", JobLife::Unbounded).0.max_attempts, 9);
    for seconds in [60, 900] {
        let defaults = KindOverride { max_ttl_seconds: Some(seconds), ..KindOverride::default() };
        let set = HostPolicy { defaults, ..HostPolicy::default() };
        let (granted, by) = set.for_job(None, "draw", JobLife::Bounded);
        assert_eq!((granted.max_ttl_seconds, by), (seconds, LifeLimit::MaxTtl), "set by the operator");
    }
    let none = HostPolicy { job_ttl_seconds: Limit(0), ..HostPolicy::default() };
    assert_eq!(none.check(), Err(Refusal::InvalidPolicy { field: "job_ttl_seconds" }));
}

#[test]
fn polls_suffice_for_the_life_unless_somebody_sets_their_number() {
    let of = |text: &str| serde_json::from_str::<HostPolicy>(text).unwrap();
    let usual = of("{}");
    let day = of(r#"{"kind_overrides":{"draw":{"max_ttl_seconds":86400}}}"#);
    let slow =
        of(r#"{"kind_overrides":{"draw":{"min_retry_after_seconds":60,"default_retry_after_seconds":60}}}"#);
    let minute = of(r#"{"kind_overrides":{"draw":{"max_ttl_seconds":60}}}"#);
    let own = of(r#"{"kind_overrides":{"draw":{"max_ttl_seconds":86400,"max_attempts":9}}}"#);
    let for_all =
        of(r#"{"defaults":{"max_attempts":720},"kind_overrides":{"draw":{"max_ttl_seconds":86400}}}"#);
    let all_long = of(r#"{"defaults":{"max_ttl_seconds":7200}}"#);
    for (host, life, polls) in [
        (&usual, JobLife::OfHandle, 720),
        (&usual, JobLife::Unbounded, 86_401),
        (&usual, JobLife::Bounded, 366 * 86_400 + 1),
        (&slow, JobLife::Unbounded, 1_441),
        (&minute, JobLife::Unbounded, 720),
        (&day, JobLife::OfHandle, 86_401),
        (&day, JobLife::Unbounded, 86_401),
        (&own, JobLife::OfHandle, 9),
        (&own, JobLife::Bounded, 9),
        (&for_all, JobLife::OfHandle, 720),
        (&for_all, JobLife::Unbounded, 720),
        (&all_long, JobLife::OfHandle, 7_201),
        (&all_long, JobLife::Unbounded, 7_201),
    ] {
        let (granted, _) = host.for_job(None, "draw", life);
        assert_eq!((granted.max_attempts, granted.check()), (polls, Ok(())), "{host:?} {life:?}");
    }
    // What a handle promises is what its work gets.
    assert_eq!((usual.for_kind("draw").max_attempts, day.for_kind("draw").max_attempts), (720, 86_401));
    assert_eq!((own.for_kind("draw").max_attempts, all_long.for_all().max_attempts), (9, 7_201));
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
        "timed_out_policy": "resubmit",
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
        if field == "max_ttl_seconds" {
            // A longer life has polls for all of it.
            expected["max_attempts"] = serde_json::json!(259_201);
        }
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
            let whole: KindPolicy = serde_json::from_value(policy.clone()).unwrap();
            assert_eq!(whole.check(), invalid(field), "{value}");
            let defaults: KindOverride = serde_json::from_value(policy).unwrap();
            let host = HostPolicy { defaults, ..HostPolicy::default() };
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

#[test]
fn open_operations_are_limited_by_kind_and_in_all() {
    let policy = HostPolicy { max_open_total: Limit(100), ..HostPolicy::default() };
    for (of_kind, in_all, answer) in [
        (64, 100, Ok(())),
        (65, 100, Err(OpenLimit::OfKind(64))),
        (1, 101, Err(OpenLimit::InAll(100))),
        (65, 101, Err(OpenLimit::OfKind(64))),
    ] {
        assert_eq!(policy.check_open(None, "print", of_kind, in_all), answer, "{of_kind} {in_all}");
    }
}
