//! Directives: actions of the catalog and nothing else, one outcome record each, and the same handles as every other call.

use std::time::Duration;

use api::Role;
use domain::policy::{HostPolicy, KindOverride};
use serde_json::{Value, json};

use crate::given::{Answer, Call, World, assert_fits, working_world, world, world_with_policy};

fn directive(id: &str, action: &str, mode: &str, parameters: Value) -> Value {
    json!({
        "schema": "sensorium-directive.v1",
        "schema/v": 1,
        "directive/id": id,
        "directive/issued_at": "2026-01-01T00:00:00Z",
        "issuer": { "module_id": "whisper-intake", "node_id": "node-1" },
        "action_id": action,
        "parameters": parameters,
        "timing": { "timeout_ms": 2_000, "mode": mode },
    })
}

fn named<'a>(world: &'a World, capability: &str, body: Value) -> Call<'a> {
    world.post(&format!("/v1/capabilities/sensorium.{capability}/invoke"), body)
}

async fn invoke(world: &World, directive: &Value) -> Answer {
    named(world, "directive.invoke", directive.clone()).send().await
}

async fn outcome(world: &World, id: &Value) -> Value {
    world.get(&format!("/v1/sensorium/outcomes/{}", id.as_str().expect("it has one"))).send().await.ok()
}

async fn jobs(world: &World) -> Vec<Value> {
    world.get("/jobs?view=summary").send().await.ok()["work"].as_array().expect("a list").clone()
}

/// The rejection of a directive, with this status and code.
#[track_caller]
fn rejected(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!(answer.status, status, "{}", answer.body);
    let result = answer.value();
    assert_eq!((&result["status"], &result["result"]), (&json!("rejected"), &json!(null)), "{result}");
    assert_eq!(result["diagnostics"][0]["code"], code, "{result}");
    assert!(result["outcome/id"].is_string() && result["observation/ids"] == json!([]), "{result}");
    assert_fits("sensorium-directive-result.v1", &result);
    result
}

/// Asks until the status is this one; time passes meanwhile.
async fn until(world: &World, operation: &Value, word: &str) -> Value {
    let mut ledger = world.daemon.ledger();
    for _ in 0..200 {
        ledger.borrow_and_update();
        let body = json!({ "operation/id": operation });
        let status = named(world, "operation.status", body).send().await.ok();
        if status["status"] == word {
            return status;
        }
        if tokio::time::timeout(Duration::from_millis(100), ledger.changed()).await.is_err() {
            world.clock.advance_seconds(3);
        }
    }
    panic!("it never became {word}");
}

// conforms: O13 O15 O18 O20 O73 O107
#[tokio::test]
async fn one_capability_takes_both_modes_and_every_result_names_its_outcome() {
    let world = working_world().await;
    let done = invoke(&world, &directive("d-1", "press", "sync", json!({ "pages": 12 }))).await.ok();
    assert_eq!(
        (&done["schema"], &done["status"]),
        (&json!("sensorium-directive-result.v1"), &json!("completed"))
    );
    assert_eq!((&done["directive/id"], &done["observation/ids"]), (&json!("d-1"), &json!([])));
    assert_eq!(done["result"], json!({ "pages": 12 }));
    let record = outcome(&world, &done["outcome/id"]).await;
    assert_eq!((&record["outcome/status"], &record["directive/id"]), (&json!("completed"), &json!("d-1")));
    assert_eq!(
        (&record["action_id"], &record["policy/decision"]["decision"]),
        (&json!("press"), &json!("admit"))
    );
    assert_eq!(record["issuer"], json!({ "module_id": "whisper-intake", "node_id": "node-1" }));

    let answer = invoke(&world, &directive("d-2", "press", "async", json!({ "pages": 7 }))).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let handle = answer.value();
    assert_eq!(handle["expires_at"], "2026-01-01T00:15:00.000000+00:00", "the clock stands at the start");
    assert_eq!(
        (&handle["schema"], &handle["operation/kind"]),
        (&json!("deferred-operation.v1"), &json!("sensorium.directive.invoke"))
    );
    assert_eq!(
        (&handle["extensions"]["capability_id"], &handle["extensions"]["action_id"]),
        (&json!("sensorium.directive.invoke"), &json!("press"))
    );
    let status = until(&world, &handle["operation/id"], "completed").await;
    let nested = &status["result"];
    assert_eq!(
        (&nested["schema"], &nested["status"]),
        (&json!("sensorium-directive-result.v1"), &json!("completed"))
    );
    assert_eq!((&nested["result"], &nested["observation/ids"]), (&json!({ "pages": 7 }), &json!([])));
    assert_eq!(nested["outcome/id"], handle["audit/outcome-ref"]);
    let record = outcome(&world, &handle["audit/outcome-ref"]).await;
    assert_eq!(record["outcome/status"], "completed");
    // The published schema asks for an object.
    let job = record["outcome/id"].as_str().unwrap();
    assert_eq!(record["audit/store"], json!({ "kind": "ledger", "href": format!("/jobs/{job}/facts") }));
}

// conforms: O16 O17 O107 O129
#[tokio::test]
async fn mode_that_the_entry_does_not_allow_is_rejected_and_written_down_once() {
    let world = working_world().await;
    for (id, action, mode, code) in
        [("d-1", "echo", "async", "sync-only"), ("d-2", "render.cover", "sync", "async-only")]
    {
        let mut wish = directive(id, action, mode, json!({}));
        // Nothing that the caller adds changes the entry.
        wish["execution_mode_support"] = json!("either");
        let first = invoke(&world, &wish).await;
        let result = rejected(&first, 422, code);
        let again = invoke(&world, &wish).await;
        assert_eq!((again.status, &again.body), (422, &first.body));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        let record = outcome(&world, &result["outcome/id"]).await;
        assert_eq!((&record["outcome/status"], &record["directive/id"]), (&json!("rejected"), &json!(id)));
        assert_eq!(
            record["policy/decision"],
            json!({ "decision": "reject", "reason": code, "retryable": false })
        );
        let id = result["outcome/id"].as_str().unwrap();
        let facts = world.get(&format!("/jobs/{id}/facts")).send().await.ok();
        let kinds: Vec<&str> =
            facts["facts"].as_array().unwrap().iter().map(|fact| fact["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["job.created/1", "job.failed/1"], "nothing was dispatched");
    }
    assert_eq!(jobs(&world).await.len(), 2);
}

/// One set of codes: a directive spells with hyphens what a problem spells with underscores.
#[tokio::test]
async fn directive_and_invoke_refuse_a_mode_by_the_same_code() {
    let world = working_world().await;
    for (id, action, mode) in [("d-1", "echo", "async"), ("d-2", "render.cover", "sync")] {
        let wish = directive(id, action, mode, json!({}));
        let answer = invoke(&world, &wish).await.body;
        let body = json!({ "input": {}, "timing": { "mode": mode } });
        let refused = world.post(&format!("/v1/capabilities/{action}/invoke"), body).send().await;
        let code = serde_json::from_str::<Value>(&refused.body).unwrap()["code"].as_str().unwrap().to_owned();
        assert!(["sync_only", "async_only"].contains(&&*code), "{}", refused.body);
        assert!(answer.contains(&format!("\"{}\"", code.replace('_', "-"))), "{answer}");
        let page = include_str!("../../../../docs/deferred.md");
        assert!(page.contains(&format!("`{code}`")), "{code} is documented");
    }
}

// conforms: O108
#[tokio::test]
async fn only_actions_of_the_catalog_are_reached_and_only_with_parameters_that_fit() {
    let world = working_world().await;
    // Both are executors; neither has an entry.
    for (id, action) in [("d-1", "command"), ("d-2", "asks"), ("d-3", "nobody")] {
        let wish = directive(id, action, "sync", json!({ "argv": ["sh", "-c", "true"] }));
        rejected(&invoke(&world, &wish).await, 422, "action-not-allowlisted");
    }
    let unfit = directive("d-4", "press", "async", json!({ "pages": "sesame" }));
    let answer = invoke(&world, &unfit).await;
    let result = rejected(&answer, 422, "parameters-schema-invalid");
    assert!(!answer.body.contains("sesame"), "{}", answer.body);
    assert!(result["diagnostics"][0]["message"].as_str().unwrap().contains("/pages"), "{result}");
    let late = {
        let mut late = directive("d-5", "press", "async", json!({}));
        late["deadline_at"] = json!("2025-12-31T00:00:00Z");
        late
    };
    rejected(&invoke(&world, &late).await, 422, "deadline-elapsed");
    let jobs = jobs(&world).await;
    assert_eq!(jobs.len(), 5);
    assert!(
        jobs.iter().all(|job| job["state"] == "failed" && job["execution"]["executor"].is_null()),
        "{jobs:?}"
    );
    // The same input is not let in by another door.
    let body = json!({ "input": { "pages": "sesame" } });
    world.post("/v1/capabilities/press/invoke", body).send().await.problem(422, "invalid_request");
}

// conforms: O43 O108
#[tokio::test]
async fn what_is_no_directive_is_a_bad_request_and_leaves_nothing() {
    let world = working_world().await;
    let breaches: [(&str, Value); 9] = [
        ("schema", json!("sensorium-directive.v2")),
        ("schema/v", json!(2)),
        ("directive/id", json!("")),
        ("directive/issued_at", json!("now")),
        ("issuer", json!({ "node_id": "node-1" })),
        ("action_id", json!("rm -rf /")),
        ("parameters", json!("drop table jobs")),
        ("timing", json!({ "mode": "async" })),
        ("timing", json!({ "mode": "async", "timeout_ms": 1, "every_seconds": 1 })),
    ];
    for (member, value) in breaches {
        let mut broken = directive("d-1", "press", "async", json!({}));
        broken[member] = value;
        invoke(&world, &broken).await.problem(422, "invalid_request");
    }
    let mut late = directive("d-1", "press", "async", json!({}));
    late["causal/context"] = json!({ "schema": "causal-context.v1" });
    invoke(&world, &late).await.problem(422, "invalid_request");
    assert!(jobs(&world).await.is_empty());
    // The root is open: what says how often it is asked there is not heeded.
    let mut wish = directive("d-1", "press", "async", json!({}));
    wish["retry_after_seconds"] = json!(1);
    wish["fail_after_seconds"] = json!(86_400);
    wish["deferred_profile"] = json!({ "preferred_retry_after_seconds": 1, "preferred_max_ttl_seconds": 60 });
    let handle = invoke(&world, &wish).await.value();
    assert_eq!(
        (&handle["retry_after_seconds"], &handle["expires_at"]),
        (&json!(5), &json!("2026-01-01T00:15:00.000000+00:00"))
    );
}

// conforms: O76 O107 O109
#[tokio::test]
async fn same_work_with_other_parameters_is_a_conflict_that_has_its_record() {
    let world = working_world().await;
    let keyed = |id: &str, pages: u32| {
        let mut keyed = directive(id, "press", "async", json!({ "pages": pages }));
        keyed["idempotency/key"] = json!("k");
        keyed
    };
    let first = invoke(&world, &keyed("d-1", 1)).await;
    assert_eq!(first.status, 202, "{}", first.body);
    // The same work under another directive is the same work.
    let again = invoke(&world, &keyed("d-2", 1)).await;
    assert_eq!((again.status, &again.body), (202, &first.body));
    let conflict = rejected(&invoke(&world, &keyed("d-3", 2)).await, 409, "idempotency-conflict");
    assert_eq!(outcome(&world, &conflict["outcome/id"]).await["outcome/status"], "rejected");
    // A directive that says something else than before has its record already.
    invoke(&world, &keyed("d-1", 2)).await.problem(409, "idempotency_key_reused");
    let mut bare = directive("d-1", "press", "async", json!({ "pages": 2 }));
    invoke(&world, &bare).await.problem(409, "idempotency_key_reused");
    bare["parameters"] = json!({ "pages": 1 });
    assert_eq!(invoke(&world, &bare).await.body, first.body);
    assert_eq!(jobs(&world).await.len(), 2);
    // Somebody else's directive of the same name is another one.
    let mut other = directive("d-1", "press", "async", json!({ "pages": 2 }));
    other["issuer"] = json!({ "participant/did:key": "did:key:z6" });
    assert_eq!(invoke(&world, &other).await.status, 202);
}

// conforms: O107
#[tokio::test]
async fn many_at_once_of_one_directive_have_one_outcome() {
    let world = working_world().await;
    for (id, action, status) in [("d-1", "render.cover", 202), ("d-2", "nobody", 422)] {
        let wish = directive(id, action, "async", json!({ "polls": 9 }));
        let answers = futures::future::join_all((0..16).map(|_| invoke(&world, &wish))).await;
        assert!(
            answers.iter().all(|answer| answer.status == status && answer.body == answers[0].body),
            "{id}"
        );
    }
    assert_eq!(jobs(&world).await.len(), 2);
}

// conforms: O107
#[tokio::test]
async fn rejected_stays_rejected_whatever_is_done_with_its_job() {
    let world = working_world().await;
    let result = rejected(
        &invoke(&world, &directive("d-1", "nobody", "async", json!({}))).await,
        422,
        "action-not-allowlisted",
    );
    let id = result["outcome/id"].as_str().unwrap();
    let before = outcome(&world, &result["outcome/id"]).await;
    world.post(&format!("/jobs/{id}/retry"), json!({})).send().await.ok();
    assert_eq!(world.until(id, "unavailable").await["state_reason"], "missing_target");
    world.call("POST", &format!("/jobs/{id}/purge")).send().await.ok();
    let after = outcome(&world, &result["outcome/id"]).await;
    for member in ["outcome/status", "directive/id", "action_id", "issuer", "policy/decision"] {
        assert_eq!(after[member], before[member], "{member}");
    }
}

// conforms: O1 O44 O107
#[tokio::test]
async fn directive_that_is_not_over_in_time_has_timed_out() {
    let world = working_world().await;
    let mut wish = directive("d-1", "stays", "sync", json!({}));
    wish["timing"]["timeout_ms"] = json!(100);
    let over = invoke(&world, &wish).await.ok();
    assert_eq!(
        (&over["status"], &over["diagnostics"][0]["code"]),
        (&json!("timed_out"), &json!("action-timeout"))
    );
    world.until(over["outcome/id"].as_str().unwrap(), "cancelled").await;
    let record = outcome(&world, &over["outcome/id"]).await;
    assert_eq!(
        (&record["outcome/status"], &record["policy/decision"]["decision"]),
        (&json!("timed_out"), &json!("timeout"))
    );
    let failed = invoke(&world, &directive("d-2", "fails", "sync", json!({}))).await.ok();
    assert_eq!(
        (&failed["status"], &failed["diagnostics"][0]["code"]),
        (&json!("failed"), &json!("out_of_paper"))
    );
    let deferred = invoke(
        &world,
        &directive("d-3", "defers", "sync", json!({ "cancel": "cancelled", "ends": "never" })),
    )
    .await
    .ok();
    assert_eq!(
        (&deferred["status"], &deferred["diagnostics"][0]["code"]),
        (&json!("failed"), &json!("deferred-not-allowed"))
    );
    for result in [&over, &failed, &deferred] {
        assert_fits("sensorium-directive-result.v1", result);
        assert_eq!(result["observation/ids"], json!([]));
        outcome(&world, &result["outcome/id"]).await;
    }
    assert_eq!(jobs(&world).await.len(), 3, "one record each");
}

// conforms: O61 O102
#[tokio::test]
async fn operation_is_asked_about_and_stopped_by_its_handle() {
    let world = working_world().await;
    let wish = directive("d-1", "render.cover", "async", json!({ "ends": "never", "cancel": "cancelled" }));
    let handle = invoke(&world, &wish).await.value();
    let running = until(&world, &handle["operation/id"], "running").await;
    let by_path = world.get(handle["status_href"].as_str().unwrap()).send().await.ok();
    assert_eq!(running["operation/id"], by_path["operation/id"]);
    assert_eq!(outcome(&world, &handle["audit/outcome-ref"]).await["outcome/status"], "admitted");
    let cancel = json!({ "operation/id": handle["operation/id"], "reason": "enough" });
    let asked = named(&world, "operation.cancel", cancel.clone()).send().await;
    assert_eq!(asked.status, 202, "{}", asked.body);
    until(&world, &handle["operation/id"], "cancelled").await;
    assert_eq!(named(&world, "operation.cancel", cancel).send().await.ok()["status"], "cancelled");
    assert_eq!(outcome(&world, &handle["audit/outcome-ref"]).await["outcome/status"], "failed");
    for (body, status, code) in [
        (json!({ "operation/id": "deferred:sensorium.directive.invoke:00" }), 404, "not_found"),
        (json!({ "operation": 1 }), 422, "invalid_request"),
    ] {
        named(&world, "operation.status", body.clone()).send().await.problem(status, code);
        named(&world, "operation.cancel", body).send().await.problem(status, code);
    }
    for (ends, word) in [
        ("completed", "completed"),
        ("failed", "failed"),
        ("timed_out", "timed-out"),
        ("expired", "expired"),
        ("unknown", "unknown"),
    ] {
        let wish = directive(ends, "render.cover", "async", json!({ "ends": ends }));
        until(&world, &invoke(&world, &wish).await.value()["operation/id"], word).await;
    }
    // What its service has taken and not begun is running to whoever gave it out: the job waits for it.
    let queued = directive("d-3", "render.cover", "async", json!({ "ends": "never", "pending": 99 }));
    let queued = invoke(&world, &queued).await.value();
    let job = queued["audit/outcome-ref"].as_str().unwrap();
    world.until(job, "awaiting_external").await;
    world.polled(job, 1).await;
    assert_eq!(world.status(job).await["runner"]["outside"]["status"], "pending");
    let asked = json!({ "operation/id": queued["operation/id"] });
    assert_eq!(named(&world, "operation.status", asked).send().await.ok()["status"], "running");
    let stuck =
        invoke(&world, &directive("d-2", "render.cover", "async", json!({ "ends": "never" }))).await.value();
    until(&world, &stuck["operation/id"], "running").await;
    let refused =
        named(&world, "operation.cancel", json!({ "operation/id": stuck["operation/id"] })).send().await;
    assert_eq!(refused.problem(409, "not_cancelable")["detail"], "the press has no brake");
}

#[tokio::test]
async fn catalog_lists_actions_and_not_who_does_them() {
    let world = world().await;
    let answer = world.call("POST", "/v1/capabilities/sensorium.directive.list/invoke").send().await;
    let catalog = answer.ok();
    let actions: Vec<&str> = catalog["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action_id"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["defers", "echo", "fails", "press", "render.cover", "stays"]);
    let cover = &catalog["actions"][4];
    assert_eq!(
        (&cover["execution_mode_support"], &cover["max_ttl_seconds"]),
        (&json!("async-only"), &json!(900))
    );
    assert_eq!(cover["parameters_schema"], json!({}));
    assert!(!answer.body.contains("builtin"), "{}", answer.body);
    // Nothing else is one of the host's own.
    world
        .post("/v1/capabilities/sensorium.directive.forget/invoke", json!({}))
        .send()
        .await
        .problem(404, "not_found");
}

// conforms: O26
#[tokio::test]
async fn directive_that_is_sent_away_for_load_is_neither_accepted_nor_rejected() {
    let defaults = KindOverride { max_open_per_module: Some(1), ..KindOverride::default() };
    let world = world_with_policy(HostPolicy { defaults, ..HostPolicy::default() }).await;
    let wish = |id| directive(id, "render.cover", "async", json!({ "ends": "never", "cancel": "cancelled" }));
    let first = invoke(&world, &wish("d-1")).await;
    assert_eq!(first.status, 202);
    let over = invoke(&world, &wish("d-2")).await;
    over.problem(429, "too_many_open");
    assert_eq!(over.headers["retry-after"], "5");
    assert_eq!(jobs(&world).await.len(), 1);
    let cancel = json!({ "operation/id": first.value()["operation/id"] });
    named(&world, "operation.cancel", cancel).send().await;
    until(&world, &first.value()["operation/id"], "cancelled").await;
    assert_eq!(invoke(&world, &wish("d-2")).await.status, 202, "the same directive may come again");
}

#[tokio::test]
async fn outcomes_of_another_circle_are_not_there_and_jobs_are_none() {
    let world = working_world().await;
    let mine = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let theirs = world.token(Role::Agent, json!({ "circle": "bindery" })).await;
    let wish = directive("d-1", "nobody", "async", json!({}));
    let answer = named(&world, "directive.invoke", wish).bearer(&mine).send().await;
    let path = format!("/v1/sensorium/outcomes/{}", answer.value()["outcome/id"].as_str().unwrap());
    world.get(&path).bearer(&mine).send().await.ok();
    world.get(&path).bearer(&theirs).send().await.problem(404, "not_found");
    let job = world.create(json!({})).await;
    world.get(&format!("/v1/sensorium/outcomes/{job}")).send().await.problem(404, "not_found");
    for source in ["invoke", "directive-async", "directive-rejected"] {
        let forged = json!({ "source_kind": source, "source_id": "async" });
        world.post("/jobs", forged).send().await.problem(422, "invalid_request");
    }
}
