//! The paths of the host's own clients, beside ours: they lead to the same work.

use api::Role;
use serde_json::json;

use crate::given::{World, working_world};

async fn until(world: &World, handle: &serde_json::Value, word: &str) -> serde_json::Value {
    let job = handle["audit/outcome-ref"].as_str().expect("it has one");
    world.until(job, word).await;
    world.get(handle["status_href"].as_str().expect("what the test needs is there")).send().await.ok()
}

// conforms: R115 O16 O17
#[tokio::test]
async fn host_route_takes_the_input_as_its_body_and_a_mode() {
    let world = working_world().await;
    let envelope = json!({ "component/id": "press", "idempotency/key": "d-1" });
    let path = "/v1/host/capabilities/echo_either?mode=deferred";
    let answer = world.post(path, envelope.clone()).send().await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let handle = answer.value();
    assert_eq!(handle["schema"], "deferred-operation.v1");
    assert_eq!(handle["operation/kind"], "echo-either");
    assert_eq!(until(&world, &handle, "completed").await["result"], envelope);
    // The envelope names the call: the same one again is the same work.
    assert_eq!(world.post(path, envelope).send().await.value()["operation/id"], handle["operation/id"]);
    let waited = world.post("/v1/host/capabilities/echo", json!({ "pages": 3 })).send().await.ok();
    assert_eq!(waited["result"], json!({ "pages": 3 }));
    world
        .post("/v1/host/capabilities/echo?mode=later", json!({}))
        .send()
        .await
        .problem(422, "invalid_request");
    world.post("/v1/host/capabilities/nobody", json!({})).send().await.problem(404, "not_found");
    let jobs = || async { world.get("/jobs").send().await.ok()["work"].as_array().unwrap().len() };
    let before = jobs().await;
    world.post("/v1/host/capabilities/echo?mode=deferred", json!({})).send().await.problem(422, "sync_only");
    world.post("/v1/host/capabilities/defers_only", json!({})).send().await.problem(422, "async_only");
    assert_eq!(jobs().await, before);
}

// conforms: R115
#[tokio::test]
async fn short_path_lists_the_same_operations() {
    let world = working_world().await;
    let path = "/v1/host/capabilities/echo_either?mode=deferred";
    let handle = world.post(path, json!({ "pages": 1 })).send().await.value();
    until(&world, &handle, "completed").await;
    let list = world.get("/v1/deferred").send().await.ok();
    assert_eq!(list["operations"].as_array().unwrap().len(), 1);
    assert_eq!(list, world.get("/v1/deferred-operations").send().await.ok());
}

// conforms: O131
#[tokio::test]
async fn handle_and_status_always_have_diagnostics() {
    let world = working_world().await;
    let body = json!({ "input": { "polls": 9 }, "timing": { "mode": "async" } });
    let handle = world.post("/v1/capabilities/defers/invoke", body).send().await.value();
    assert_eq!(handle["diagnostics"], json!([]));
    let status = until(&world, &handle, "awaiting_external").await;
    assert_eq!(status["diagnostics"], json!([{ "code": "awaiting_external" }]));
    let body = json!({ "timing": { "mode": "async" } });
    let handle = world.post("/v1/capabilities/echo_either/invoke", body).send().await.value();
    let status = until(&world, &handle, "completed").await;
    assert_eq!(status["diagnostics"], json!([]), "nothing to say is an empty list");
}

// conforms: O131
#[tokio::test]
async fn status_tells_the_code_of_what_it_waits_for_or_failed_with() {
    let world = working_world().await;
    let body = json!({ "input": {}, "timing": { "mode": "async" } });
    let handle = world.post("/v1/capabilities/asks_operators/invoke", body).send().await.value();
    let status = until(&world, &handle, "awaiting_input").await;
    assert_eq!(status["diagnostics"], json!([{ "code": "awaiting_input" }]));
    let body = json!({ "input": { "ends": "failed" }, "timing": { "mode": "async" } });
    let handle = world.post("/v1/capabilities/defers/invoke", body).send().await.value();
    until(&world, &handle, "awaiting_external").await;
    world.clock.advance_seconds(6);
    let status = until(&world, &handle, "failed").await;
    let failed = world.status(handle["audit/outcome-ref"].as_str().unwrap()).await;
    assert!(failed["state_reason"].is_string(), "{failed}");
    assert_eq!(status["diagnostics"], json!([{ "code": failed["state_reason"] }]));
}

// conforms: O69 O131
#[tokio::test]
async fn operator_may_retry_what_failed_while_there_is_time() {
    let world = working_world().await;
    let body = json!({ "input": { "ends": "failed" }, "timing": { "mode": "async" } });
    let handle = world.post("/v1/capabilities/defers/invoke", body).send().await.value();
    let id = handle["operation/id"].as_str().unwrap();
    let retry = format!("/v1/deferred-operations/{id}/retry");
    until(&world, &handle, "awaiting_external").await;
    world.post(&retry, json!({})).send().await.problem(409, "refused");
    world.clock.advance_seconds(6);
    until(&world, &handle, "failed").await;
    let view = world.get(&format!("/v1/deferred-operations/{id}")).send().await.ok();
    assert_eq!(view["operation"]["allowed_actions"], json!(["retry"]));
    let answer = world.post(&retry, json!({})).send().await.ok();
    assert_eq!(answer["operation/id"], id);
    world.clock.advance_seconds(6);
    until(&world, &handle, "failed").await;
    world.clock.advance_seconds(900);
    let view = world.get(&format!("/v1/deferred-operations/{id}")).send().await.ok();
    assert_eq!(view["operation"]["allowed_actions"], json!([]));
    world.post(&retry, json!({})).send().await.problem(409, "refused");
}

// conforms: O127
#[tokio::test]
async fn service_may_end_an_operation_as_expired() {
    let world = working_world().await;
    let body = json!({ "input": { "ends": "expired" }, "timing": { "mode": "async" } });
    let handle = world.post("/v1/capabilities/defers/invoke", body).send().await.value();
    until(&world, &handle, "awaiting_external").await;
    world.clock.advance_seconds(6);
    let status = until(&world, &handle, "expired").await;
    assert_eq!(status["status"], "expired");
    assert!(status["extensions"].get("limits").is_none(), "no limit of ours: {status}");
    assert_eq!(world.get("/orphans").send().await.ok()["orphans"], json!([]));
}

/// The ways in which a caller may ask for work, with what each says besides and where its answer names the job.
fn ways_to_ask(
    input: &serde_json::Value,
    allowed: bool,
) -> [(&'static str, serde_json::Value, &'static str); 3] {
    let timing = json!({ "mode": "async", "timeout_ms": 60_000 });
    let directive = json!({
        "schema": "sensorium-directive.v1", "schema/v": 1, "directive/id": format!("d-{allowed}"),
        "directive/issued_at": "2026-01-01T00:00:00Z", "issuer": { "module_id": "intake", "node_id": "node-1" },
        "action_id": "defers", "parameters": input, "timing": timing, "allow_restart_recovery": allowed,
    });
    let invoke = json!({ "input": input, "timing": timing, "allow_restart_recovery": allowed });
    let job =
        json!({ "title": "t", "executor": "defers", "input": input, "allow_restart_recovery": allowed });
    [
        ("/v1/capabilities/defers/invoke", invoke, "operation/id"),
        ("/v1/capabilities/sensorium.directive.invoke/invoke", directive, "operation/id"),
        ("/jobs", job, "job_id"),
    ]
}

// conforms: O128
#[tokio::test]
async fn caller_may_allow_restart_recovery() {
    for (allowed, state) in [(false, "failed"), (true, "awaiting_external")] {
        for (path, body, named) in ways_to_ask(&json!({ "lost": 1 }), allowed) {
            let world = working_world().await;
            let answer = world.post(path, body).send().await;
            let name = answer.value()[named].as_str().unwrap_or_else(|| panic!("{}", answer.body)).to_owned();
            let job = match name.rsplit_once(':') {
                Some((_, hex)) => format!("work-{hex}"),
                None => name,
            };
            world.until(&job, "awaiting_external").await;
            let mut ledger = world.daemon.ledger();
            world.clock.advance_seconds(6);
            // The service is asked once, and knows nothing of it.
            let status = loop {
                ledger.borrow_and_update();
                let status = world.status(&job).await;
                if status["state"] != "awaiting_external" || status["runner"]["outside"]["polls"] == 1 {
                    break status;
                }
                ledger.changed().await.expect("the daemon lives");
            };
            assert_eq!(status["state"], state, "{path}: {status}");
            if allowed {
                // Its service finds it again.
                world.clock.advance_seconds(60);
                world.until(&job, "completed").await;
            }
        }
    }
}

// conforms: O129
#[tokio::test]
async fn digest_of_the_catalog_entry_is_on_the_record_of_an_invoke() {
    let world = working_world().await;
    let mut digests = Vec::new();
    for executor in ["defers", "defers", "echo_either"] {
        let body = json!({ "input": { "polls": 9 }, "timing": { "mode": "async" } });
        let path = format!("/v1/capabilities/{executor}/invoke");
        let handle = world.post(&path, body).send().await.value();
        let digest = handle["extensions"]["catalog_digest"].as_str().unwrap().to_owned();
        assert!(digest.starts_with("sha256:"), "{digest}");
        let job = handle["audit/outcome-ref"].as_str().unwrap();
        let facts = world.get(&format!("/jobs/{job}/facts")).send().await.ok();
        assert!(facts["facts"][0].to_string().contains(&digest), "{facts}");
        digests.push(digest);
    }
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[0], digests[2]);
    // Whichever way it is invoked.
    let directive = |id: &str, mode: &str| {
        json!({
            "schema": "sensorium-directive.v1", "schema/v": 1, "directive/id": id,
            "directive/issued_at": "2026-01-01T00:00:00Z", "issuer": { "module_id": "intake" },
            "action_id": "press", "parameters": {}, "timing": { "timeout_ms": 2_000, "mode": mode },
        })
    };
    let directed = "/v1/capabilities/sensorium.directive.invoke/invoke";
    for (path, body) in [
        ("/v1/capabilities/press/invoke", json!({})),
        ("/v1/capabilities/press/invoke", json!({ "timing": { "mode": "async" } })),
        ("/v1/host/capabilities/press", json!({})),
        ("/v1/host/capabilities/press?mode=deferred", json!({})),
        (directed, directive("d-1", "sync")),
        (directed, directive("d-2", "async")),
    ] {
        let answer = world.post(path, body).send().await.value();
        let job = answer["outcome/id"].as_str().or_else(|| answer["audit/outcome-ref"].as_str()).unwrap();
        let facts = world.get(&format!("/jobs/{job}/facts")).send().await.ok();
        let digest = &facts["facts"][0]["payload"]["created"]["spec"]["catalog_digest"];
        assert!(digest.as_str().is_some_and(|digest| digest.starts_with("sha256:")), "{path}: {facts}");
        digests.push(digest.as_str().unwrap().to_owned());
        if path == directed {
            let outcome = world.get(&format!("/v1/sensorium/outcomes/{job}")).send().await.ok();
            assert_eq!(outcome["catalog/digest"], *digest);
        }
    }
    assert!(digests[3..].iter().all(|digest| *digest == digests[3]), "{digests:?}");
}

// conforms: L95
#[tokio::test]
async fn work_is_found_by_the_id_that_its_service_gave() {
    let world = working_world().await;
    for name in ["r-1", "r-2"] {
        let input = json!({ "ends": "never", "external_id": name });
        let job = world.create(json!({ "executor": "defers", "input": input })).await;
        world.until(&job, "awaiting_external").await;
        let found = world.get(&format!("/jobs?external_job_id={name}")).send().await.ok();
        assert_eq!(found["work"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found["work"][0]["job_id"], *job);
        let shown = world.status(&job).await;
        assert_eq!(shown["runner"]["outside"]["external_job_id"], name);
    }
    assert_eq!(world.get("/jobs?external_job_id=r-9").send().await.ok()["work"], json!([]));
    let token = world.token(Role::Viewer, json!({ "circle": "elsewhere" })).await;
    let none = world.get("/jobs?external_job_id=r-1").bearer(&token).send().await.ok();
    assert_eq!(none["work"], json!([]));
}

// conforms: L95
#[tokio::test]
async fn id_given_outside_is_found_past_those_of_another_circle() {
    let world = working_world().await;
    let mut mine = Vec::new();
    // Those of the other circle are the newest.
    for (circle, count) in [("press", 3), ("bindery", 4)] {
        let token = world.token(Role::Agent, json!({ "circle": circle })).await;
        for _ in 0..count {
            let input = json!({ "ends": "never", "external_id": "r-1" });
            let body = json!({ "input": input, "timing": { "mode": "async" } });
            let invoke = world.post("/v1/capabilities/defers/invoke", body).bearer(&token);
            let job = invoke.send().await.value()["audit/outcome-ref"].as_str().unwrap().to_owned();
            world.until(&job, "awaiting_external").await;
            world.clock.advance_seconds(1);
            if circle == "press" {
                mine.insert(0, job);
            }
        }
    }
    let token = world.token(Role::Viewer, json!({ "circle": "press" })).await;
    for (path, list, id) in [
        ("/jobs?external_job_id=r-1", "work", "job_id"),
        ("/v1/deferred-operations?external_job_id=r-1", "operations", "audit/outcome-ref"),
    ] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("{path}&limit=2{cursor}")).bearer(&token).send().await.ok();
            for one in page[list].as_array().expect("it is a list") {
                found.push(one[id].as_str().unwrap_or_else(|| panic!("{one}")).to_owned());
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, mine, "{path}");
    }
}
