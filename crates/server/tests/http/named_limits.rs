//! A limit of the host that ends work says its name, its value, whose it is and the key that changes it.

use domain::policy::{HostPolicy, KindOverride};
use serde_json::{Value, json};

use crate::given::{BEGUN, START, World, working_world, world_with_policy};

async fn deferred(world: &World, executor: &str, input: Value) -> Value {
    let body = json!({ "input": input, "timing": { "mode": "async" } });
    let answer = world.post(&format!("/v1/capabilities/{executor}/invoke"), body).send().await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.value()
}

fn job_of(handle: &Value) -> &str {
    handle["audit/outcome-ref"].as_str().expect("it has one")
}

/// The limits that ended a job, as `why`, the status and the error tell them alike.
async fn limits_of(world: &World, job: &str) -> Vec<Value> {
    let why = world.get(&format!("/jobs/{job}/why")).send().await.ok();
    let limits = why["limits"].as_array().expect("why names the limit").clone();
    let reasons = why["reasons"].as_array().expect("what the test needs is there");
    let told: Vec<&str> = reasons
        .iter()
        .filter(|one| one["code"] == "limit")
        .filter_map(|one| one["detail"].as_str())
        .collect();
    assert_eq!(told.len(), limits.len(), "{why}");
    for (limit, told) in limits.iter().zip(told) {
        let (name, value, whose) = named(limit);
        let key = limit["key"].as_str().expect("it names the key");
        let remedy = match key.strip_prefix("none: ") {
            Some(why) => format!("{why} and cannot be changed"),
            None => format!("change {key}"),
        };
        assert!(told.ends_with(&format!("{name} = {value} ({whose}); {remedy}")), "{told}");
    }
    assert_eq!(world.status(job).await["runner"]["limits"], why["limits"]);
    let result = world.get(&format!("/jobs/{job}/result")).send().await.ok();
    assert_eq!(result["result"]["error"]["limits"], why["limits"], "{result}");
    limits
}

/// The one that counts most.
async fn limit_of(world: &World, job: &str) -> Value {
    limits_of(world, job).await.swap_remove(0)
}

/// A job that ended by itself: nothing names a limit.
async fn assert_no_limit(world: &World, job: &str) {
    let why = world.get(&format!("/jobs/{job}/why")).send().await.ok();
    assert!(why.get("limits").is_none(), "{why}");
    let status = world.status(job).await;
    assert!(status["runner"].get("limits").is_none(), "{status}");
    let result = world.get(&format!("/jobs/{job}/result")).send().await.ok();
    assert!(result["result"]["error"].get("limits").is_none(), "{result}");
}

fn named(limit: &Value) -> (&str, &str, &str) {
    let text = |field: &str| limit[field].as_str().expect("what the test needs is there");
    (text("limit"), text("value"), text("whose"))
}

// conforms: O44 O91
#[tokio::test]
async fn handle_that_expires_names_max_ttl_seconds() {
    let world = working_world().await;
    // The time of the call itself is not that of the work outside.
    let timing = json!({ "mode": "async", "timeout_ms": 1_000 });
    let body = json!({ "input": { "ends": "never" }, "timing": timing });
    let handle = world.post("/v1/capabilities/defers/invoke", body).send().await.value();
    world.until(job_of(&handle), "awaiting_external").await;
    world.polled(job_of(&handle), 1).await;
    assert_eq!(world.status(job_of(&handle)).await["state"], "awaiting_external");
    world.clock.advance_seconds(900);
    world.until(job_of(&handle), "expired").await;
    let limit = limit_of(&world, job_of(&handle)).await;
    assert_eq!(named(&limit), ("max_ttl_seconds", "900 s", "host default"));
    let result = world.get(&format!("/jobs/{}/result", job_of(&handle))).send().await.ok();
    assert!(result["result"]["error"]["message"].as_str().unwrap().contains("max_ttl_seconds"), "{result}");
    let status = world.get(handle["status_href"].as_str().unwrap()).send().await.ok();
    assert_eq!(status["extensions"]["limits"][0], limit);
}

// conforms: O91
#[tokio::test]
async fn work_of_a_job_lives_a_day_and_until_its_deadline() {
    let world = working_world().await;
    let job = world.create(json!({ "executor": "defers", "input": { "ends": "never" } })).await;
    world.until(&job, "awaiting_external").await;
    let why = world.get(&format!("/jobs/{job}/why")).send().await.ok();
    assert_eq!(named(&why["limits"][0]), ("job_ttl_seconds", "86400 s", "host default"), "{why}");
    world.clock.advance_seconds(86_000);
    world.until(&job, "awaiting_external").await;
    world.clock.advance_seconds(400);
    world.until(&job, "expired").await;
    assert_eq!(named(&limit_of(&world, &job).await).0, "job_ttl_seconds");
    let shown = world.status(&job).await;
    let now: jiff::Timestamp = shown["updated_at"].as_str().unwrap().parse().unwrap();
    let deadline =
        (now + jiff::SignedDuration::from_secs(3 * 86_400)).strftime("%FT%T.000000+00:00").to_string();
    let body = json!({ "executor": "defers", "input": { "ends": "never" }, "deadline_at": deadline });
    let late = world.create(body).await;
    world.until(&late, "awaiting_external").await;
    world.clock.advance_seconds(2 * 86_400);
    world.until(&late, "awaiting_external").await;
    world.clock.advance_seconds(86_400);
    world.until(&late, "expired").await;
    assert_eq!(named(&limit_of(&world, &late).await), ("deadline_at", &*deadline, "job"));
}

// conforms: O91
#[tokio::test]
async fn policy_of_the_connector_goes_before_a_day_and_says_so() {
    let hour = KindOverride { max_ttl_seconds: Some(3_600), ..KindOverride::default() };
    let kind_overrides = [("defers".to_owned(), hour)].into();
    let world = world_with_policy(HostPolicy { kind_overrides, ..HostPolicy::default() }).await;
    let job = world.create(json!({ "executor": "defers", "input": { "ends": "never" } })).await;
    world.until(&job, "awaiting_external").await;
    world.clock.advance_seconds(3_600);
    world.until(&job, "expired").await;
    assert_eq!(named(&limit_of(&world, &job).await), ("max_ttl_seconds", "3600 s", "connector policy"));
}

// conforms: O91
#[tokio::test]
async fn handle_lives_as_long_as_the_connectors_policy_says() {
    let hours = KindOverride { max_ttl_seconds: Some(7_200), ..KindOverride::default() };
    let kind_overrides = [("defers".to_owned(), hours)].into();
    let world = world_with_policy(HostPolicy { kind_overrides, ..HostPolicy::default() }).await;
    let handle = deferred(&world, "defers", json!({ "ends": "never" })).await;
    let end: jiff::Timestamp = handle["expires_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(end.as_microsecond(), START.plus_seconds(7_200).micros());
    world.until(job_of(&handle), "awaiting_external").await;
    world.clock.advance_seconds(7_199);
    world.until(job_of(&handle), "awaiting_external").await;
    world.clock.advance_seconds(1);
    world.until(job_of(&handle), "expired").await;
    let limit = limit_of(&world, job_of(&handle)).await;
    assert_eq!(named(&limit), ("max_ttl_seconds", "7200 s", "connector policy"));
}

#[tokio::test]
async fn work_of_a_job_is_polled_as_often_as_its_life_has_room() {
    const USUAL_POLLS: u64 = 720;
    let world = working_world().await;
    let input = json!({ "polls": USUAL_POLLS + 5 });
    let job = world.create(json!({ "executor": "defers", "input": input })).await;
    world.until(&job, "awaiting_external").await;
    for times in 1..=USUAL_POLLS + 5 {
        world.polled(&job, times).await;
    }
    assert_eq!(world.status(&job).await["state"], "awaiting_external");
    world.clock.advance_seconds(6);
    world.until(&job, "completed").await;
    assert_no_limit(&world, &job).await;
}

// conforms: O81
#[tokio::test]
async fn work_that_uses_up_its_polls_names_max_attempts() {
    let defaults =
        KindOverride { max_attempts: Some(2), jitter_permille: Some(0), ..KindOverride::default() };
    let world = world_with_policy(HostPolicy { defaults, ..HostPolicy::default() }).await;
    let job = world.create(json!({ "executor": "defers", "input": { "ends": "never" } })).await;
    world.until(&job, "awaiting_external").await;
    world.polled(&job, 1).await;
    world.clock.advance_seconds(6);
    world.until(&job, "expired").await;
    assert_eq!(named(&limit_of(&world, &job).await), ("max_attempts", "2 status polls", "host default"));
}

#[tokio::test]
async fn job_that_used_up_its_attempts_names_them() {
    let world = working_world().await;
    let retry = json!({ "max_attempts": 1 });
    let job = world.create(json!({ "executor": "never_taken", "retry": retry })).await;
    world.until(&job, "failed").await;
    assert_eq!(named(&limit_of(&world, &job).await), ("retry.max_attempts", "1 attempt", "job"));
    let other = world.create(json!({ "executor": "fails" })).await;
    world.until(&other, "failed").await;
    assert_no_limit(&world, &other).await;
}

#[tokio::test]
async fn executor_limit_is_named_although_the_job_has_one() {
    let world = working_world().await;
    for (executor, name, key) in [
        ("slow", "timeout_seconds", "executors[].timeout_seconds of slow"),
        ("slow_plugin", "timeouts.handle", "plugins.slow_plugin.timeouts.handle"),
    ] {
        for more in [json!({ "timeout_seconds": 600 }), json!({})] {
            let mut body = json!({ "executor": executor });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let job = world.create(body).await;
            world.until(&job, "failed").await;
            let limits = limits_of(&world, &job).await;
            assert_eq!(limits.len(), 1, "{limits:?}");
            assert_eq!((named(&limits[0]), &limits[0]["key"]), ((name, "2 s", "executor"), &json!(key)));
            let result = world.get(&format!("/jobs/{job}/result")).send().await.ok();
            assert_eq!(result["result"]["error"]["message"], "it was too slow", "what it said stays");
        }
    }
}

#[tokio::test]
async fn failure_that_says_timeout_is_no_limit_of_ours() {
    let world = working_world().await;
    let job = world.create(json!({ "executor": "says_timeout", "timeout_seconds": 600 })).await;
    let status = world.until(&job, "failed").await;
    assert_eq!(status["state_reason"], "timeout");
    assert_no_limit(&world, &job).await;
}

#[tokio::test]
async fn attempt_over_its_time_names_timeout_seconds_of_the_job() {
    let world = working_world().await;
    let once = json!({ "max_attempts": 1 });
    let pulled = json!({ "assigned_peer_id": "repow-press-1", "timeout_seconds": 20, "retry": once });
    let pulled = world.create(pulled).await;
    world.pulled(json!({ "peer_id": "repow-press-1" })).await;
    let managed = world.create(json!({ "executor": "stays", "timeout_seconds": 20, "retry": once })).await;
    BEGUN.acquire().await.expect("it is never closed").forget();
    world.clock.advance_seconds(21);
    for job in [managed, pulled] {
        world.until(&job, "failed").await;
        let limit = limit_of(&world, &job).await;
        assert_eq!(named(&limit), ("timeout_seconds", "20 s", "job"));
        assert_eq!(limit["key"], "timeout_seconds of the job");
    }
}

#[tokio::test]
async fn cancel_that_nobody_confirms_names_its_limit() {
    let world = working_world().await;
    let job = world.create(json!({ "executor": "hands_over" })).await;
    world.until(&job, "delivered").await;
    world.post(&format!("/jobs/{job}/cancel"), json!({})).send().await.ok();
    world.clock.advance_seconds(30);
    world.until(&job, "cancelled").await;
    assert_eq!(named(&limit_of(&world, &job).await), ("cancel_limit_seconds", "30 s", "host default"));
}

#[tokio::test]
async fn work_past_the_word_of_its_service_names_fail_after() {
    let world = working_world().await;
    let input = json!({ "ends": "never", "fail_after": 60 });
    let job = world.create(json!({ "executor": "defers", "input": input })).await;
    let status = world.until(&job, "awaiting_external").await;
    let began: jiff::Timestamp = status["updated_at"].as_str().unwrap().parse().unwrap();
    let end = (began + jiff::SignedDuration::from_secs(60)).strftime("%FT%T.000000+00:00").to_string();
    world.clock.advance_seconds(60);
    world.until(&job, "expired").await;
    assert_eq!(named(&limit_of(&world, &job).await), ("fail_after", &*end, "connector"));
}

// conforms: O19 O91
#[tokio::test]
async fn handle_past_its_connectors_wish_names_preferred_max_ttl() {
    let world = working_world().await;
    let handle = deferred(&world, "modest", json!({ "ends": "never" })).await;
    world.until(job_of(&handle), "awaiting_external").await;
    world.clock.advance_seconds(60);
    world.until(job_of(&handle), "expired").await;
    let limit = limit_of(&world, job_of(&handle)).await;
    assert_eq!(named(&limit), ("preferred_max_ttl_seconds", "60 s", "connector"));
}

#[tokio::test]
async fn call_that_is_waited_for_too_long_names_whose_wait_it_was() {
    let invoke = |ms: u32| KindOverride { invoke_timeout_ms: Some(ms), ..KindOverride::default() };
    let kind_overrides = [("stays".to_owned(), invoke(100))].into();
    let of_kind = HostPolicy { kind_overrides, ..HostPolicy::default() };
    let of_host = HostPolicy { defaults: invoke(100), ..HostPolicy::default() };
    let (none, long, short) = (json!({}), json!({ "timeout_ms": 60_000 }), json!({ "timeout_ms": 50 }));
    for (policy, timing, expected) in [
        (&of_host, &none, ("invoke_timeout_ms", "100 ms", "host default")),
        (&of_kind, &none, ("invoke_timeout_ms", "100 ms", "connector policy")),
        (&of_kind, &long, ("invoke_timeout_ms", "100 ms", "connector policy")),
        (&of_kind, &short, ("timeout_ms", "50 ms", "job")),
    ] {
        let world = world_with_policy(policy.clone()).await;
        let call = world.post("/v1/capabilities/stays/invoke", json!({ "timing": timing }));
        let answer = call.send().await.ok();
        assert_eq!(answer["error"]["code"], "action-timeout", "{answer}");
        let (name, value, whose) = expected;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("{name} = {value} ({whose}); change ")), "{message}");
        let job = answer["outcome/id"].as_str().unwrap();
        world.until(job, "cancelled").await;
        let limits = limits_of(&world, job).await;
        assert_eq!((limits.len(), named(&limits[0])), (1, expected));
    }
}

#[tokio::test]
async fn what_was_asked_and_granted_is_on_handle_status_and_view() {
    let world = working_world().await;
    let handle = deferred(&world, "boasts", json!({ "polls": 9 })).await;
    let asked = json!([
        { "limit": "max_retry_after_seconds", "asked_seconds": 99_999, "granted_seconds": 300 },
        { "limit": "max_ttl_seconds", "asked_seconds": 99_999, "granted_seconds": 900 },
    ]);
    assert_eq!(handle["extensions"]["clamps"], asked);
    world.until(job_of(&handle), "awaiting_external").await;
    let status = world.get(handle["status_href"].as_str().unwrap()).send().await.ok();
    assert_eq!(status["extensions"]["clamps"][0], asked[0]);
    let id = handle["operation/id"].as_str().unwrap();
    let view = world.get(&format!("/v1/deferred-operations/{id}")).send().await.ok();
    assert_eq!(view["operation"]["clamps"][0], asked[0]);
    let job = world.status(job_of(&handle)).await;
    assert_eq!(job["runner"]["outside"]["clamps"][0], asked[0], "{job}");
}

#[tokio::test]
async fn work_out_of_its_own_time_is_not_submitted_again() {
    let world = working_world().await;
    let retry = json!({ "max_attempts": 8 });
    let job = json!({ "executor": "defers", "input": { "ends": "timed_out" }, "retry": retry });
    let job = world.create(job).await;
    world.until(&job, "awaiting_external").await;
    world.clock.advance_seconds(6);
    let status = world.until(&job, "failed").await;
    assert_eq!(status["state_reason"], "operation_timed_out");
    assert_eq!(status["runner"]["attempt_count"], 1);
}
