//! Invoking a capability: a result within bounds, or a handle at once.

use api::Role;
use domain::policy::{CancelPolicy, HostPolicy, KindOverride};
use serde_json::{Value, json};
use server::ServerLimits;

use crate::given::{
    Answer, BEGUN, Call, World, assert_fits, working_world, working_world_with, world, world_with_policy,
};

fn invoke<'a>(world: &'a World, executor: &str, mode: &str, input: Value) -> Call<'a> {
    let body = json!({ "input": input, "timing": { "mode": mode } });
    world.post(&format!("/v1/capabilities/{executor}/invoke"), body)
}

async fn jobs(world: &World) -> usize {
    world.get("/jobs?view=summary").send().await.ok()["work"].as_array().expect("a list").len()
}

fn accepted(answer: &Answer) -> Value {
    assert_eq!(answer.status, 202, "{}", answer.body);
    let handle = answer.value();
    assert_fits("deferred-operation.v1", &handle);
    handle
}

// conforms: O2 O13 O21 O24 O25 O44 O70 O71 O73 O74 O75 O91 O92 O103
#[tokio::test]
async fn call_that_goes_on_is_answered_with_a_bounded_handle_at_once() {
    // Nothing is dispatched here: the answer waits for nobody.
    let world = world().await;
    let body = json!({
        "input": { "secret": "sesame" },
        "timing": { "mode": "async", "timeout_ms": 60_000 },
        "correlation/id": "order-9",
    });
    let answer = world.post("/v1/capabilities/defers_only/invoke", body).send().await;
    let handle = accepted(&answer);
    let id = handle["operation/id"].as_str().unwrap();
    assert_eq!((&handle["schema"], &handle["schema/v"]), (&json!("deferred-operation.v1"), &json!(1)));
    assert_eq!((&handle["status"], &handle["operation/kind"]), (&json!("deferred"), &json!("defers-only")));
    assert_eq!(handle["created_at"], "2026-01-01T00:00:00.000000+00:00");
    // What the caller grants to one call is not how long the work may live.
    assert_eq!(handle["expires_at"], "2026-01-01T00:15:00.000000+00:00");
    assert_eq!(handle["retry_after_seconds"], 5);
    assert_eq!(answer.headers["retry-after"], "5");
    assert_eq!(handle["status_href"], format!("/v1/deferred-operations/{id}/status"));
    assert_eq!(answer.headers["location"], handle["status_href"].as_str().unwrap());
    assert_eq!(handle["cancel_href"], format!("/v1/deferred-operations/{id}/cancel"));
    assert_eq!(handle["correlation/id"], "order-9");
    assert_eq!(handle["diagnostics"], json!([]));
    let job = handle["audit/outcome-ref"].as_str().unwrap();
    assert_eq!(id, format!("deferred:defers-only:{}", job.strip_prefix("work-").unwrap()));
    assert_eq!(handle["extensions"]["capability_id"], "defers_only");
    assert_eq!(handle["extensions"]["owner_module_id"], "builtin");
    assert_eq!(handle["extensions"]["attempt_no"], 0);
    let status = world.status(job).await;
    assert_eq!((&status["state"], &status["correlation_id"]), (&json!("queued"), &json!("order-9")));
    assert_eq!(status["title"], "defers_only", "people find it in a list");
    assert!(!answer.body.contains("sesame"), "{}", answer.body);
}

#[tokio::test]
async fn executors_are_listed_by_name_with_how_they_may_be_invoked_and_nothing_else() {
    let world = world().await;
    let list = world.get("/v1/capabilities").send().await.ok();
    let names: Vec<&str> =
        list["capabilities"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"echo"), "{names:?}");
    let one =
        list["capabilities"].as_array().unwrap().iter().find(|one| one["name"] == "defers_only").unwrap();
    assert_eq!(
        *one,
        json!({
            "name": "defers_only",
            "circle": null,
            "kind": "defers-only",
            "execution_mode_support": "async-only",
            "deferred_profile": { "preferred_retry_after_seconds": null, "preferred_max_ttl_seconds": null },
            "available": true,
        })
    );
}

#[tokio::test]
async fn executors_of_a_circle_are_listed_for_the_circle_and_for_those_who_see_all_of_them() {
    let world = world().await;
    let of_circle = |circle: &str| json!({ "circle": circle });
    let folds = |list: &Value| {
        let all = list["capabilities"].as_array().unwrap().clone();
        let of = all.into_iter().filter(|one| one["name"] == "folds" || one["name"] == "echo");
        of.map(|one| (one["name"].clone(), one["circle"].clone())).collect::<Vec<_>>()
    };
    let (echo, bindery) = ((json!("echo"), json!(null)), (json!("folds"), json!("bindery")));
    let own_echo = (json!("echo"), json!("bindery"));
    let everything = folds(&world.get("/v1/capabilities").send().await.ok());
    assert_eq!(everything, [echo.clone(), own_echo.clone(), bindery.clone()]);
    for (circle, expected) in [("bindery", vec![own_echo, bindery]), ("foundry", vec![echo])] {
        let token = world.token(Role::Peer, of_circle(circle)).await;
        let list = world.get("/v1/capabilities").bearer(&token).send().await.ok();
        assert_eq!(folds(&list), expected, "{circle}");
    }
}

// conforms: O30
#[tokio::test]
async fn work_that_no_service_has_taken_is_pending_however_often_it_was_offered() {
    let world = working_world().await;
    let call = json!({ "timing": { "mode": "async" }, "input": {} });
    let answer = world.post("/v1/capabilities/never_taken/invoke", call).send().await;
    let handle: Value = serde_json::from_str(&answer.body).unwrap();
    let job = handle["extensions"]["job_id"].as_str().unwrap().to_owned();
    let mut ledger = world.daemon.ledger();
    while world.status(&job).await["runner"]["attempt_count"] != 1
        || world.status(&job).await["state"] != "queued"
    {
        ledger.changed().await.expect("the daemon lives");
    }
    let status = world.get(handle["status_href"].as_str().unwrap()).send().await.ok();
    assert_eq!(status["status"], "pending", "{status}");
    assert!(status["retry_after_seconds"].is_u64(), "{status}");
}

#[tokio::test]
async fn a_misspelt_executor_is_accepted_and_why_says_what_was_probably_meant() {
    let world = world().await;
    let created = world.post("/jobs", json!({ "title": "t", "executor": "ecko" })).send().await.ok();
    let why = world.get(&format!("/jobs/{}/why", created["job_id"].as_str().unwrap())).send().await.ok();
    let told = why["reasons"][0]["detail"].as_str().unwrap();
    assert_eq!(why["reasons"][0]["code"], "executor_missing");
    assert!(told.ends_with(r#"; did you mean "echo"?"#), "{told}");
}

// conforms: O59
#[tokio::test]
async fn running_external_work_holds_no_request() {
    let world = working_world_with(ServerLimits { requests: 1, ..ServerLimits::default() }).await;
    let input = json!({ "ends": "never" });
    let handle = accepted(&invoke(&world, "defers_only", "async", input).send().await);
    world.until(handle["audit/outcome-ref"].as_str().unwrap(), "awaiting_external").await;
    // The only place is free for whoever waits for a result.
    invoke(&world, "echo", "sync", json!(1)).send().await.ok();
}

// conforms: O39 O42
#[tokio::test]
async fn deadline_of_the_caller_bounds_the_handle_and_one_that_has_passed_is_refused() {
    let world = world().await;
    let call = |deadline: &str| {
        let body = json!({ "timing": { "mode": "async" }, "deadline_at": deadline });
        world.post("/v1/capabilities/defers/invoke", body)
    };
    let handle = accepted(&call("2026-01-01T00:02:00Z").send().await);
    assert_eq!(handle["expires_at"], "2026-01-01T00:02:00.000000+00:00");
    let handle = accepted(&call("2026-01-02T00:00:00Z").send().await);
    assert_eq!(handle["expires_at"], "2026-01-01T00:15:00.000000+00:00");
    call("2026-01-01T00:00:00Z").send().await.problem(422, "deadline_elapsed");
    assert_eq!(jobs(&world).await, 2);
}

// conforms: O12 O15 O16 O17
#[tokio::test]
async fn mode_that_the_executor_does_not_allow_is_refused_before_anything_is_written() {
    let world = working_world().await;
    invoke(&world, "echo", "async", json!(1)).send().await.problem(422, "sync_only");
    invoke(&world, "defers_only", "sync", json!(1)).send().await.problem(422, "async_only");
    world.post("/v1/capabilities/defers_only/invoke", json!({})).send().await.problem(422, "async_only");
    assert_eq!(jobs(&world).await, 0);
}

// conforms: O43
#[tokio::test]
async fn call_that_cannot_be_understood_is_refused_and_writes_nothing() {
    let world = working_world().await;
    let path = "/v1/capabilities/defers/invoke";
    for body in [
        json!({ "inputs": 1 }),
        json!({ "timing": { "mode": "later" } }),
        json!({ "timing": { "mode": "async", "every_seconds": 1 } }),
        json!({ "timing": { "mode": "async" }, "retry_after_seconds": 1 }),
        json!({ "timing": { "mode": "async", "timeout_ms": 0 } }),
        json!({ "timing": { "mode": "async" }, "deadline_at": "soon" }),
        json!({ "timing": { "mode": "async" }, "causal/context": { "schema": "causal-context.v1" } }),
        json!([]),
    ] {
        world.post(path, body).send().await.problem(422, "invalid_request");
    }
    invoke(&world, "nobody", "async", json!(1)).send().await.problem(404, "not_found");
    invoke(&world, "Shouts", "async", json!(1)).send().await.problem(422, "invalid_request");
    assert_eq!(jobs(&world).await, 0);
}

#[tokio::test]
async fn causal_context_is_kept_and_comes_back_with_the_handle_and_every_status() {
    // No worker runs here: a status is a read.
    let world = world().await;
    let context = json!({
        "schema": "causal-context.v1", "schema/v": 1, "context/id": "causal-context:1", "correlation/id": "c",
        "operation/id": "operation:1", "causation/refs": ["event-1"], "origin/actor-ref": "ada",
        "created/at": "2026-01-01T00:00:00Z",
    });
    let body = json!({ "timing": { "mode": "async" }, "causal/context": context });
    for key in ["a", "b"] {
        let handle =
            accepted(&world.post("/v1/capabilities/defers/invoke", body.clone()).key(key).send().await);
        assert_eq!(handle["causal/context"], context);
        let status = world.status(handle["audit/outcome-ref"].as_str().unwrap()).await;
        assert_eq!(status["provenance"]["causal_context"], context);
        let status = world.get(handle["status_href"].as_str().unwrap()).send().await.ok();
        assert_eq!(status["causal/context"], context);
    }
}

// conforms: O5 O10 O11
#[tokio::test]
async fn call_that_is_waited_for_is_completed_or_failed() {
    let world = working_world().await;
    let input = json!({ "big": 18_446_744_073_709_551_615_u64 });
    let answer = world.post("/v1/capabilities/echo/invoke", json!({ "input": input })).send().await;
    let done = answer.ok();
    assert_eq!((&done["status"], &done["result"]), (&json!("completed"), &input));
    assert_eq!(world.status(done["outcome/id"].as_str().unwrap()).await["state"], "completed");
    let failed = invoke(&world, "fails", "sync", json!(null)).send().await.ok();
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("out_of_paper")));
    assert_eq!(failed["error"]["message"], "\"fails\" failed: there is no paper (out_of_paper)");
    assert!(failed.get("result").is_none());
    // Nor is a handle given where one may be had, unless the call asks for it.
    let call = world.post("/v1/capabilities/echo_either/invoke", json!({ "input": 7 }));
    let either = call.send().await.ok();
    assert_eq!((&either["status"], &either["result"]), (&json!("completed"), &json!(7)));
    // It was waited for: there is no handle on it.
    let hex = done["outcome/id"].as_str().unwrap().strip_prefix("work-").unwrap();
    let path = format!("/v1/deferred-operations/deferred:echo:{hex}/status");
    world.get(&path).send().await.problem(404, "not_found");
}

// conforms: O1 O2 O11 O44
#[tokio::test]
async fn call_that_takes_too_long_is_stopped_and_has_failed() {
    let world = working_world().await;
    let body = json!({ "timing": { "timeout_ms": 100 } });
    let answer = world.post("/v1/capabilities/stays/invoke", body).send().await.ok();
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!("failed"), &json!("action-timeout")));
    let status = world.until(answer["outcome/id"].as_str().unwrap(), "cancelled").await;
    assert_eq!(status["cancellation_reason"], "action-timeout");
    // Nobody waits longer than the host grants, whatever the call asks for.
    let defaults = KindOverride { invoke_timeout_ms: Some(100), ..KindOverride::default() };
    let world = world_with_policy(HostPolicy { defaults, ..HostPolicy::default() }).await;
    let body = json!({ "timing": { "timeout_ms": 60_000 } });
    let call = world.post("/v1/capabilities/stays/invoke", body).send();
    let answer = tokio::time::timeout(std::time::Duration::from_secs(30), call).await;
    assert_eq!(answer.expect("it is answered in time").ok()["error"]["code"], "action-timeout");
}

// conforms: O11
#[tokio::test]
async fn call_whose_job_is_cancelled_or_expires_meanwhile_has_failed() {
    for (end, code) in [("cancelled", "enough"), ("expired", "expired")] {
        let world = working_world().await;
        let body = json!({ "deadline_at": "2026-01-01T00:00:02Z" });
        let call = world.post("/v1/capabilities/stays/invoke", body).send();
        let interrupt = async {
            BEGUN.acquire().await.expect("it is never closed").forget();
            let list = world.get("/jobs?view=summary").send().await.ok();
            let job = list["work"][0]["job_id"].as_str().expect("it was accepted").to_owned();
            if end == "expired" {
                world.clock.advance_seconds(2);
            } else {
                let path = format!("/jobs/{job}/cancel");
                world.post(&path, json!({ "reason": "enough" })).send().await.ok();
            }
            job
        };
        let (answer, job) = tokio::join!(call, interrupt);
        let answer = answer.ok();
        assert_eq!((&answer["status"], &answer["outcome/id"]), (&json!("failed"), &json!(job)));
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer.get("result").is_none(), "{answer}");
        assert_eq!(world.status(&job).await["state"], end);
    }
}

#[tokio::test]
async fn call_whose_caller_goes_away_is_stopped_all_the_same() {
    let world = working_world().await;
    let body = json!({ "timing": { "timeout_ms": 2_000 } }).to_string();
    let call = world.call("POST", "/v1/capabilities/stays/invoke").text(&body);
    let mut ledger = world.daemon.ledger();
    // The first that is written down here is that it was accepted: then its caller goes.
    tokio::select! {
        biased;
        changed = ledger.changed() => changed.expect("the daemon lives"),
        answer = call.send() => panic!("it was answered before its time: {}", answer.body),
    }
    let list = world.get("/jobs?view=summary").send().await.ok();
    let id = list["work"][0]["job_id"].as_str().expect("it was accepted").to_owned();
    let status = world.until(&id, "cancelled").await;
    assert_eq!(status["cancellation_reason"], "action-timeout");
}

// conforms: O1 O4 O12
#[tokio::test]
async fn executor_that_defers_although_its_caller_waits_has_broken_its_contract() {
    let world = working_world().await;
    let input = json!({ "ends": "never", "cancel": "cancelled" });
    let answer = invoke(&world, "defers_by_mistake", "sync", input).send().await.ok();
    let code = &answer["error"]["code"];
    assert_eq!((&answer["status"], code), (&json!("failed"), &json!("deferred-not-allowed")));
    let status = world.until(answer["outcome/id"].as_str().unwrap(), "cancelled").await;
    assert_eq!(status["cancellation_reason"], "deferred-not-allowed");
}

// conforms: O76 O109
#[tokio::test]
async fn same_key_is_the_same_handle_however_often_and_another_request_a_conflict() {
    let world = working_world().await;
    let input = json!({ "polls": 0 });
    let first = invoke(&world, "defers", "async", input.clone()).key("k").send().await;
    let id = accepted(&first)["operation/id"].clone();
    let (a, b) = tokio::join!(
        invoke(&world, "defers", "async", input.clone()).key("k").send(),
        invoke(&world, "defers", "async", input.clone()).key("k").send(),
    );
    for again in [a, b] {
        assert_eq!((again.status, &again.body), (202, &first.body));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        assert_eq!(again.headers["location"], first.headers["location"]);
    }
    invoke(&world, "defers", "async", json!(2)).key("k").send().await.problem(409, "idempotency_key_reused");
    let in_body = json!({ "input": input, "timing": { "mode": "async" }, "idempotency/key": "k2" });
    let other = accepted(&world.post("/v1/capabilities/defers/invoke", in_body).send().await);
    assert_ne!(other["operation/id"], id);
    assert_eq!(jobs(&world).await, 2);
    // A call that is waited for is waited for again, not made again.
    let echoed = invoke(&world, "echo", "sync", json!("x")).key("s").send().await.ok();
    assert_eq!(invoke(&world, "echo", "sync", json!("x")).key("s").send().await.ok(), echoed);
    assert_eq!(jobs(&world).await, 3);
}

#[tokio::test]
async fn many_calls_at_once_under_one_key_are_one_job() {
    let world = working_world().await;
    let calls = (0..16).map(|_| invoke(&world, "defers", "async", json!({ "polls": 9 })).key("k").send());
    let answers = futures::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.status == 202 && answer.body == answers[0].body));
    assert_eq!(jobs(&world).await, 1);
}

// conforms: O26
#[tokio::test]
async fn what_is_over_the_host_s_limits_is_sent_away_and_never_accepted() {
    let defaults = KindOverride { max_open_per_module: Some(2), ..KindOverride::default() };
    let policy = HostPolicy { defaults, max_open_total: domain::policy::Limit(3), ..HostPolicy::default() };
    let world = world_with_policy(policy).await;
    let input = json!({ "ends": "never", "cancel": "cancelled" });
    let first = invoke(&world, "defers", "async", input.clone()).key("a").send().await;
    accepted(&first);
    accepted(&invoke(&world, "defers", "async", input.clone()).send().await);
    let over = invoke(&world, "defers", "async", input.clone()).send().await;
    over.problem(429, "too_many_open");
    assert_eq!(over.headers["retry-after"], "5");
    assert!(over.value().get("operation/id").is_none());
    accepted(&invoke(&world, "defers_only", "async", input.clone()).send().await);
    invoke(&world, "defers_only", "async", input.clone()).send().await.problem(429, "too_many_open");
    assert_eq!(jobs(&world).await, 3);
    // What was accepted stays so, and what ends makes room.
    let again = invoke(&world, "defers", "async", input.clone()).key("a").send().await;
    assert_eq!(accepted(&again), accepted(&first));
    let cancel = first.value()["cancel_href"].as_str().unwrap().to_owned();
    world.call("POST", &cancel).send().await;
    world.until(first.value()["audit/outcome-ref"].as_str().unwrap(), "cancelled").await;
    accepted(&invoke(&world, "defers", "async", input).send().await);
}

// conforms: O19 O36 O38 O39 O40 O41 O91
#[tokio::test]
async fn what_an_executor_wishes_counts_only_within_what_the_host_grants() {
    let world = world().await;
    for (executor, retry_after, expires_at) in [
        ("boasts", 300, "2026-01-01T00:15:00.000000+00:00"),
        ("modest", 15, "2026-01-01T00:01:00.000000+00:00"),
    ] {
        let handle = accepted(&invoke(&world, executor, "async", json!({})).send().await);
        assert_eq!(
            (&handle["retry_after_seconds"], &handle["expires_at"]),
            (&json!(retry_after), &json!(expires_at))
        );
    }
}

// conforms: O23
#[tokio::test]
async fn handle_on_what_the_host_does_not_stop_says_why() {
    let defaults = KindOverride { cancel_policy: Some(CancelPolicy::Deny), ..KindOverride::default() };
    let world = world_with_policy(HostPolicy { defaults, ..HostPolicy::default() }).await;
    let handle = accepted(&invoke(&world, "defers", "async", json!({})).send().await);
    assert_eq!(handle["cancel/unavailable-reason"], "denied by the host's policy");
    assert!(handle.get("cancel_href").is_none());
}

// conforms: O92
#[tokio::test]
async fn handle_that_does_not_fit_its_schema_does_not_leave() {
    let world = world().await;
    // Its executor says that it cannot be stopped, and gives an empty reason.
    let answer = invoke(&world, "brakeless_without_a_reason", "async", json!({})).send().await;
    answer.problem(500, "internal");
    assert!(!answer.body.contains("deferred-operation.v1"), "{}", answer.body);
}

#[tokio::test]
async fn caller_who_would_like_to_wait_gets_the_end_if_it_comes_in_time() {
    let world = working_world().await;
    let done = invoke(&world, "echo_either", "async", json!(7)).header("prefer", "wait=30").send().await;
    assert_eq!(done.headers["preference-applied"], "wait=30");
    let done = done.ok();
    assert_eq!((&done["status"], &done["result"]), (&json!("completed"), &json!(7)));
    let open = invoke(&world, "stays_either", "async", json!(7)).header("prefer", "wait=0").send().await;
    accepted(&open);
}
