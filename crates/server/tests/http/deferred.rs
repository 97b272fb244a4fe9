//! The handle afterwards: its status, what operators see, and how it is asked about and stopped.

use std::time::Duration;

use api::Role;
use domain::{BodyName, JobId, RecordId};
use serde_json::{Value, json};
use store::Store;

use crate::given::{World, assert_fits, working_world};

/// Invokes an executor and takes the handle.
async fn deferred(world: &World, executor: &str, input: Value) -> Value {
    let body = json!({ "input": input, "timing": { "mode": "async" } });
    let answer = world.post(&format!("/v1/capabilities/{executor}/invoke"), body).send().await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.value()
}

async fn status(world: &World, handle: &Value) -> Value {
    let status = world.get(handle["status_href"].as_str().expect("it has one")).send().await.ok();
    assert_fits("deferred-operation-status.v1", &status);
    status
}

fn job_of(handle: &Value) -> &str {
    handle["audit/outcome-ref"].as_str().expect("it has one")
}

/// Lets time pass until the status is this one.
async fn until(world: &World, handle: &Value, word: &str) -> Value {
    let mut ledger = world.daemon.ledger();
    for _ in 0..200 {
        ledger.borrow_and_update();
        let status = status(world, handle).await;
        if status["status"] == word {
            return status;
        }
        if tokio::time::timeout(Duration::from_millis(100), ledger.changed()).await.is_err() {
            world.clock.advance_seconds(3);
        }
    }
    panic!("it never became {word}: {}", status(world, handle).await);
}

// conforms: O28 O30 O31 O77
#[tokio::test]
async fn status_goes_from_pending_over_running_to_the_result_and_stays_there() {
    let world = working_world().await;
    let handle = deferred(&world, "defers", json!({ "polls": 1 })).await;
    world.until(job_of(&handle), "awaiting_external").await;
    let answer = world.get(handle["status_href"].as_str().unwrap()).send().await;
    let running = answer.ok();
    assert_eq!(running["status"], "running");
    assert_eq!(answer.headers["retry-after"], running["retry_after_seconds"].to_string());
    assert!(running.get("result").is_none());
    let done = until(&world, &handle, "completed").await;
    assert_eq!(done["result"], json!({ "pages": 12 }));
    assert!(done.get("retry_after_seconds").is_none());
    assert_eq!(status(&world, &handle).await, done);
}

#[tokio::test]
async fn handle_is_found_raw_and_encoded_and_under_its_alias_and_nothing_else_is() {
    let world = working_world().await;
    let handle = deferred(&world, "defers", json!({ "polls": 9 })).await;
    world.until(job_of(&handle), "awaiting_external").await;
    let id = handle["operation/id"].as_str().unwrap();
    let encoded = id.replace(':', "%3A");
    let plain = world.get(&format!("/v1/deferred-operations/{id}/status")).send().await.ok();
    for path in [format!("/v1/deferred-operations/{encoded}"), format!("/v1/deferred/{encoded}")] {
        assert_eq!(world.get(&format!("{path}/status")).send().await.ok(), plain);
        assert_eq!(world.get(&path).send().await.ok()["operation"]["operation/id"], id);
    }
    assert_eq!(world.get(&format!("/v1/deferred/{id}/status")).send().await.ok(), plain);
    let other_kind = id.replace("defers", "echo");
    for unknown in [other_kind.as_str(), job_of(&handle), "deferred:defers:00", "deferred:defers", "x"] {
        let path = format!("/v1/deferred-operations/{unknown}/status");
        world.get(&path).send().await.problem(404, "not_found");
    }
}

// conforms: O29 O31 O32 O33 O34 O35 O44 O69 O72 O92 O103
#[tokio::test]
async fn every_end_has_its_own_word() {
    let world = working_world().await;
    for (ends, word) in [
        ("completed", "completed"),
        ("failed", "failed"),
        ("timed_out", "timed-out"),
        ("unknown", "unknown"),
        ("expired", "expired"),
        ("never", "expired"),
        ("cancelled", "cancelled"),
    ] {
        let handle = deferred(&world, "defers", json!({ "ends": ends, "cancel": "cancelled" })).await;
        world.until(job_of(&handle), "awaiting_external").await;
        match ends {
            "never" => world.clock.advance_seconds(900),
            "cancelled" => {
                let asked = world.call("POST", handle["cancel_href"].as_str().unwrap()).send().await;
                assert_eq!(asked.status, 202, "{}", asked.body);
            }
            _ => {}
        }
        let ended = until(&world, &handle, word).await;
        assert_eq!(ended.get("result").is_some(), word == "completed", "{ended}");
        assert_eq!(ended["diagnostics"][0]["code"].is_string(), word != "completed", "{ended}");
        let view = handle["status_href"].as_str().unwrap().strip_suffix("/status").unwrap();
        let view = world.get(view).send().await.ok()["operation"].clone();
        assert_eq!(view["last_diagnostic"], ended["diagnostics"][0], "{view}");
        world.clock.advance_seconds(3_600);
        assert_eq!(status(&world, &handle).await["status"], word, "it stays");
    }
    // Work that runs here has no service that says so: the time limit of the call does.
    let body = json!({ "timing": { "mode": "async", "timeout_ms": 1_000 } });
    let answer = world.post("/v1/capabilities/stays_either/invoke", body).send().await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    until(&world, &answer.value(), "timed-out").await;
}

// conforms: O68 O69 O89 O105 O96
#[tokio::test]
async fn operators_see_where_it_is_and_digests_in_place_of_what_is_private() {
    let world = working_world().await;
    let handle =
        deferred(&world, "defers", json!({ "polls": 9, "cancel": "cancelled", "s": "sesame" })).await;
    let other = deferred(&world, "echo_either", json!("sesame")).await;
    world.until(job_of(&handle), "awaiting_external").await;
    world.until(job_of(&other), "completed").await;
    world.create(json!({ "executor": "echo", "input": "no handle" })).await;
    let list = world.get("/v1/deferred-operations").send().await;
    assert!(!list.body.contains("sesame"), "{}", list.body);
    let list = list.ok();
    assert_eq!(list["operations"].as_array().unwrap().len(), 2);
    for (filter, found) in [
        ("status=running", 1),
        ("status=completed", 1),
        ("status=failed", 0),
        ("kind=defers", 1),
        ("kind=echo-either&status=completed", 1),
        ("owner=builtin", 2),
        ("owner=nobody", 0),
        ("limit=1", 1),
    ] {
        let page = world.get(&format!("/v1/deferred-operations?{filter}")).send().await.ok();
        assert_eq!(page["operations"].as_array().unwrap().len(), found, "{filter}: {page}");
    }
    world.get("/v1/deferred-operations?status=timed_out").send().await.problem(422, "invalid_request");
    let id = handle["operation/id"].as_str().unwrap();
    let detail = world.get(&format!("/v1/deferred-operations/{id}")).send().await;
    assert!(!detail.body.contains("sesame"), "{}", detail.body);
    let detail = detail.ok();
    let shown = &detail["operation"];
    assert_eq!(shown["operation/id"], id);
    assert_eq!((&shown["status"], &shown["attempts"]), (&json!("running"), &json!(0)));
    assert_eq!(shown["allowed_actions"], json!(["poll", "cancel"]));
    assert_eq!((&shown["owner_module_id"], &shown["capability_id"]), (&json!("builtin"), &json!("defers")));
    assert_eq!((&shown["created_at"], &shown["expires_at"]), (&handle["created_at"], &handle["expires_at"]));
    assert!(shown["next_retry_at"].as_str() > shown["created_at"].as_str(), "{shown}");
    assert_eq!(shown["last_diagnostic"], json!({ "code": "awaiting_external" }));
    // What is shown is the digest of what is kept.
    let job = JobId::new(job_of(&handle));
    let of_job = world.store.load(&job.clone().into()).await.unwrap().unwrap().record;
    let operation = world.store.operations_of(&job, 1).await.unwrap().remove(0);
    let input = of_job.as_job().unwrap().bodies.iter().find(|body| body.name == BodyName::Input).copied();
    let kept = [
        ("input_digest", RecordId::from(job), input),
        ("continuation_digest", operation.id(), operation.as_operation().unwrap().handle),
    ];
    for (digest, record, body) in kept {
        let bytes = world.store.body(&record, body.unwrap()).await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains("sesame"), "{digest}");
        assert_eq!(shown[digest], format!("sha256:{}", store::sha256(&bytes)));
    }
    assert!(shown["updated_at"].is_string(), "{shown}");
    let history = detail["history"].as_array().unwrap();
    assert!(history.len() >= 3, "{detail}");
    for line in history {
        let keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["actor", "at", "kind", "payload_digest", "position"]);
        let digest = line["payload_digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
    }
}

#[tokio::test]
async fn handles_of_another_circle_are_not_there() {
    let world = working_world().await;
    let mine = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let theirs = world.token(Role::Agent, json!({ "circle": "bindery" })).await;
    let body = json!({ "input": { "polls": 9 }, "timing": { "mode": "async" } });
    let answer = world.post("/v1/capabilities/defers/invoke", body).bearer(&mine).send().await;
    let handle = answer.value();
    let href = handle["status_href"].as_str().unwrap();
    world.get(href).bearer(&mine).send().await.ok();
    world.get(href).bearer(&theirs).send().await.problem(404, "not_found");
    world.get(href).bearer(&theirs).header("prefer", "wait=60").send().await.problem(404, "not_found");
    let cancel = handle["cancel_href"].as_str().unwrap();
    world.call("POST", cancel).bearer(&theirs).send().await.problem(404, "not_found");
    for (token, count) in [(&mine, 1), (&theirs, 0)] {
        let list = world.get("/v1/deferred-operations").bearer(token).send().await.ok();
        assert_eq!(list["operations"].as_array().unwrap().len(), count);
    }
}

// conforms: O6 O45 O82
#[tokio::test]
async fn question_that_somebody_forces_keeps_to_the_shortest_interval() {
    let world = working_world().await;
    let handle = deferred(&world, "defers", json!({ "polls": 1 })).await;
    world.until(job_of(&handle), "awaiting_external").await;
    let path = handle["status_href"].as_str().unwrap().replace("/status", "/poll");
    let early = world.call("POST", &path).send().await;
    early.problem(429, "too_soon");
    assert_eq!(early.headers["retry-after"], "1");
    world.clock.advance_seconds(1);
    let asked = world.call("POST", &path).send().await.ok();
    assert_eq!((&asked["status"], &asked["extensions"]["attempt_no"]), (&json!("running"), &json!(1)));
    world.call("POST", &path).send().await.problem(429, "too_soon");
    world.clock.advance_seconds(1);
    assert_eq!(world.call("POST", &path).send().await.ok()["status"], "completed");
    assert_eq!(world.call("POST", &path).send().await.ok()["status"], "completed");
}

// conforms: O69 O78 O106
#[tokio::test]
async fn cancel_reaches_the_service_or_says_why_it_cannot() {
    let world = working_world().await;
    let handle = deferred(&world, "defers", json!({ "ends": "never", "cancel": "cancelled" })).await;
    world.until(job_of(&handle), "awaiting_external").await;
    let cancel = handle["cancel_href"].as_str().unwrap();
    let asked = world.post(cancel, json!({ "reason": "enough" })).send().await;
    assert_eq!(asked.status, 202, "{}", asked.body);
    assert_eq!(asked.value()["status"], "running");
    until(&world, &handle, "cancelled").await;
    let again = world.call("POST", cancel).send().await.ok();
    assert_eq!(again["status"], "cancelled");

    let stuck = deferred(&world, "defers", json!({ "ends": "never" })).await;
    world.until(job_of(&stuck), "awaiting_external").await;
    let refused = world.call("POST", stuck["cancel_href"].as_str().unwrap()).send().await;
    assert_eq!(refused.problem(409, "not_cancelable")["detail"], "the press has no brake");
    assert_eq!(world.status(job_of(&stuck)).await["cancel_requested"], false);
    let view = stuck["status_href"].as_str().unwrap().strip_suffix("/status").unwrap();
    let view = world.get(view).send().await.ok()["operation"].clone();
    assert_eq!((&view["cancelable"], &view["allowed_actions"]), (&json!(false), &json!(["poll"])));
}

#[tokio::test]
async fn whoever_prefers_to_wait_is_answered_by_the_end_of_the_job() {
    let world = working_world().await;
    let handle = deferred(&world, "stays_either", json!(1)).await;
    let job = job_of(&handle).to_owned();
    world.until(&job, "dispatching").await;
    let waits = world.get(handle["status_href"].as_str().unwrap()).header("prefer", "wait=50").send();
    let of_job = format!("/jobs/{job}");
    let waits_for_job = world.get(&of_job).header("prefer", "wait=50").send();
    let cancel = async {
        // Both wait by then, or come to a job that is over: either way the answer is its end.
        tokio::task::yield_now().await;
        world.post(&format!("/jobs/{job}/cancel"), json!({})).send().await.ok();
    };
    let (status, of_job, ()) = tokio::join!(waits, waits_for_job, cancel);
    assert_eq!(status.headers["preference-applied"], "wait=50");
    assert_eq!(status.ok()["status"], "cancelled");
    assert_eq!(of_job.ok()["status"]["state"], "cancelled");
}
