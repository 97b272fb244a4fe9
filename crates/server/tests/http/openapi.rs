//! The API document.

mod schema;

use std::collections::BTreeSet;

use domain::{Digest, OperationId};
use executors::mac::hmac_sha256;
use serde_json::{Value, json};
use server::{Access, CallbackTarget, Verb, routes};

use crate::given::{HOOK_KEY, START, World, callback_key, working_world, world};
use schema::{check, mistakes};

async fn document(world: &World) -> Value {
    world.get("/openapi.json").anonymous().send().await.ok()
}

#[tokio::test]
async fn document_names_every_route_and_nothing_else() {
    let world = world().await;
    let document = document(&world).await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut described = BTreeSet::new();
    let mut names = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            described.insert((path.clone(), method.clone()));
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{operation}");
        }
    }
    let routes: BTreeSet<_> = routes()
        .iter()
        .map(|route| {
            let method = match route.verb {
                Verb::Get => "get",
                Verb::Post => "post",
                Verb::Patch => "patch",
                Verb::Delete => "delete",
            };
            let open = document["paths"][route.path][method]["security"] == json!([]);
            assert_eq!(open, route.operation.access == Access::Open, "{}", route.path);
            (route.path.to_owned(), method.to_owned())
        })
        .collect();
    // The host's own capabilities are names of one route that take and answer something else each.
    let own = ["directive.invoke", "directive.list", "operation.status", "operation.cancel"];
    let post = |path: String| (path, "post".to_owned());
    let under_v1 = own.map(|name| post(format!("/v1/capabilities/sensorium.{name}/invoke")));
    let of_host = own.map(|name| post(format!("/v1/host/capabilities/sensorium.{name}")));
    let expected: BTreeSet<_> = routes.into_iter().chain(under_v1).chain(of_host).collect();
    assert_eq!(described, expected);
}

#[tokio::test]
async fn every_reference_of_the_document_leads_somewhere() {
    let world = world().await;
    let document = document(&world).await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut waiting = vec![&document];
    let mut references = 0;
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                    let name = reference.strip_prefix("#/components/schemas/").unwrap();
                    assert!(schemas.contains_key(name), "{reference}");
                    references += 1;
                }
                waiting.extend(members.values());
            }
            Value::Array(items) => waiting.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    assert!(references > 30);
}

#[tokio::test]
async fn answers_are_as_their_schemas_say() {
    let world = world().await;
    let document = document(&world).await;
    let plain = world.post("/jobs", json!({ "title": "t", "provenance": { "links": {} } })).send().await.ok();
    check(&document, "JobCreated", &plain);
    let (id, attempt) = world.delivered().await;
    check(&document, "StatusAnswer", &world.get(&format!("/jobs/{id}")).send().await.ok());
    check(&document, "ResultAnswer", &world.get(&format!("/jobs/{id}/result")).send().await.ok());
    check(&document, "Why", &world.get(&format!("/jobs/{id}/why")).send().await.ok());
    check(&document, "FactList", &world.get(&format!("/jobs/{id}/facts")).send().await.ok());
    let report = json!({ "state": "completed", "attempt_id": attempt, "result_data": { "n": 1 }, "progress_note": "x" });
    check(&document, "StatusAnswer", &world.patch(&id, report).send().await.ok());
    check(&document, "ResultAnswer", &world.get(&format!("/jobs/{id}/result")).send().await.ok());
    check(&document, "JobList", &world.get("/jobs").send().await.ok());
    check(&document, "JobList", &world.get("/jobs?view=summary").send().await.ok());
    check(&document, "TokenCreated", &world.post("/tokens", json!({ "role": "viewer" })).send().await.ok());
    check(&document, "CapabilityList", &world.get("/v1/capabilities").send().await.ok());
    check(&document, "TokenList", &world.get("/tokens").send().await.ok());
    check(
        &document,
        "BatchAnswer",
        &world.post("/jobs/batch", json!({ "jobs": [{}, { "x": 1 }] })).send().await.ok(),
    );
    check(
        &document,
        "Problem",
        &world.post("/jobs", json!({ "x": 1 })).send().await.problem(422, "invalid_request"),
    );
}

#[tokio::test]
async fn answers_about_work_outside_are_as_their_schemas_say() {
    let world = working_world().await;
    let document = document(&world).await;
    let invoke = |executor: &str, mode: &str, input: Value| {
        let body = json!({ "input": input, "timing": { "mode": mode } });
        world.post(&format!("/v1/capabilities/{executor}/invoke"), body)
    };
    for (executor, input) in [("echo", json!(1)), ("fails", json!(1))] {
        check(&document, "InvokeOutcome", &invoke(executor, "sync", input).send().await.ok());
    }
    let handle = invoke("defers", "async", json!({ "ends": "never" })).send().await.value();
    check(&document, "DeferredOperation", &handle);
    let job = handle["audit/outcome-ref"].as_str().unwrap();
    world.until(job, "awaiting_external").await;
    let href = handle["status_href"].as_str().unwrap();
    check(&document, "DeferredStatus", &world.get(href).send().await.ok());
    let detail = world.get(href.strip_suffix("/status").unwrap()).send().await.ok();
    check(&document, "DeferredDetail", &detail);
    check(&document, "DeferredList", &world.get("/v1/deferred-operations").send().await.ok());
    let early = world.call("POST", &href.replace("/status", "/poll")).send().await;
    check(&document, "Problem", &early.problem(429, "too_soon"));
    world.clock.advance_seconds(900);
    world.until(job, "expired").await;
    check(&document, "OrphanList", &world.get("/orphans").send().await.ok());
    let settle = format!("/orphans/{}/settle", world.store_operation(job).await);
    check(&document, "OrphanAnswer", &world.post(&settle, json!({ "note": "cold" })).send().await.ok());
}

#[tokio::test]
async fn answers_to_directives_are_as_their_schemas_say() {
    let world = working_world().await;
    let document = document(&world).await;
    let named =
        |name: &str, body: Value| world.post(&format!("/v1/capabilities/sensorium.{name}/invoke"), body);
    let directive = |id: &str, action: &str, mode: &str| {
        json!({
            "schema": "sensorium-directive.v1", "schema/v": 1, "directive/id": id, "action_id": action,
            "directive/issued_at": "2026-01-01T00:00:00Z", "issuer": { "module_id": "intake" },
            "parameters": {}, "timing": { "timeout_ms": 2_000, "mode": mode },
        })
    };
    check(&document, "Directive", &directive("d-1", "press", "sync"));
    let done = named("directive.invoke", directive("d-1", "press", "sync")).send().await.ok();
    check(&document, "DirectiveResult", &done);
    let rejected = named("directive.invoke", directive("d-2", "nobody", "sync")).send().await.value();
    check(&document, "DirectiveResult", &rejected);
    for result in [&done, &rejected] {
        let path = format!("/v1/sensorium/outcomes/{}", result["outcome/id"].as_str().unwrap());
        check(&document, "DirectiveOutcome", &world.get(&path).send().await.ok());
    }
    let handle = named("directive.invoke", directive("d-3", "press", "async")).send().await.value();
    check(&document, "DeferredOperation", &handle);
    let status = named("operation.status", json!({ "operation/id": handle["operation/id"] })).send().await;
    check(&document, "DeferredStatus", &status.ok());
    check(&document, "ActionCatalog", &named("directive.list", json!({})).send().await.ok());
}

#[tokio::test]
async fn every_example_is_accepted_as_it_stands_and_fits_its_schema() {
    let world = world().await;
    let document = document(&world).await;
    for path in ["/jobs", "/jobs/batch", "/tokens"] {
        let content = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"];
        let name = content["schema"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        check(&document, name, &content["example"]);
        world.post(path, content["example"].clone()).send().await.ok();
    }
    let id = world.create(json!({})).await;
    let example = |path: &str, method: &str| {
        document["paths"][path][method]["requestBody"]["content"]["application/json"]["example"].clone()
    };
    world.patch(&id, example("/jobs/{id}", "patch")).send().await.ok();
    let id = world.create(json!({})).await;
    world.patch(&id, json!({ "state": "blocked" })).send().await.ok();
    world.post(&format!("/jobs/{id}/answer"), example("/jobs/{id}/answer", "post")).send().await.ok();
    world.post(&format!("/jobs/{id}/cancel"), example("/jobs/{id}/cancel", "post")).send().await.ok();
    let why = &document["paths"]["/jobs/{id}/why"]["get"]["responses"]["200"]["content"]["application/json"]
        ["example"];
    check(&document, "Why", why);
}

#[tokio::test]
async fn every_answer_has_an_example_and_every_example_fits() {
    let world = world().await;
    let document = document(&world).await;
    let mut examples = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let responses = operation["responses"].as_object().unwrap();
            let answers = responses.iter().map(|(status, answer)| (status.starts_with('2'), answer));
            for (is_success, described) in answers.chain([(false, &operation["requestBody"])]) {
                let contents = described["content"].as_object();
                for content in contents.into_iter().flat_map(serde_json::Map::values) {
                    let Some(example) = content.get("example") else {
                        assert!(!is_success, "{path}: an answer has no example");
                        continue;
                    };
                    let found = mistakes(&document, &content["schema"], example);
                    assert!(found.is_empty(), "{path}: {found:?}\n{example}");
                    examples += 1;
                }
            }
        }
    }
    assert!(examples > 120, "{examples}");
}

#[tokio::test]
async fn limits_in_the_document_are_those_of_the_server() {
    let world = world().await;
    let document = document(&world).await;
    let long = |count: usize| "x".repeat(count);
    world.post("/peers", json!({ "peer_id": "joan" })).send().await.ok();
    for (path, schema, body, fits) in [
        ("/jobs", "CreateJob", json!({ "title": long(1_024) }), true),
        ("/jobs", "CreateJob", json!({ "title": "\u{1f600}".repeat(1_024) }), true),
        ("/jobs", "CreateJob", json!({ "title": long(1_025) }), false),
        ("/jobs", "CreateJob", json!({ "path": "\u{1f600}".repeat(256) }), true),
        ("/jobs", "CreateJob", json!({ "path": "\u{1f600}".repeat(257) }), false),
        ("/jobs", "CreateJob", json!({ "lane": "pull:any" }), false),
        ("/jobs", "CreateJob", json!({ "lane": "l", "label": "m" }), false),
        ("/jobs", "CreateJob", json!({ "lane": "l", "label": "m", "executor": "echo" }), true),
        ("/jobs", "CreateJob", json!({ "lane": "l" }), true),
        ("/jobs", "CreateJob", json!({ "label": "m" }), true),
        ("/jobs", "CreateJob", json!({ "executor": "echo", "assigned_peer_id": "joan" }), false),
        ("/jobs", "CreateJob", json!({ "executor": "echo" }), true),
        ("/jobs", "CreateJob", json!({ "assigned_peer_id": "joan" }), true),
        ("/jobs", "CreateJob", json!({ "repeatable": false, "retry": { "max_attempts": 2 } }), false),
        ("/jobs", "CreateJob", json!({ "repeatable": false, "retry": { "max_attempts": 1 } }), true),
        ("/jobs", "CreateJob", json!({ "repeatable": true, "retry": { "max_attempts": 2 } }), true),
        ("/jobs", "CreateJob", json!({ "repeatable": false, "retry": { "backoff_seconds": 2 } }), true),
        ("/jobs", "CreateJob", json!({ "repeatable": false }), true),
        ("/jobs", "CreateJob", json!({ "retry": { "max_attempts": 2 } }), true),
        ("/jobs", "CreateJob", json!({ "source_kind": "invoke" }), false),
        ("/jobs", "CreateJob", json!({ "input": { "a": ["\0"] } }), false),
        ("/jobs", "CreateJob", json!({ "due_at": "tomorrow" }), false),
        ("/jobs", "CreateJob", json!({ "retry": { "max_attempts": 0 } }), false),
        ("/jobs", "CreateJob", json!({ "retry": { "attempts": 1 } }), false),
        ("/jobs", "CreateJob", json!({ "request": { "execution": { "target": [] } } }), false),
        ("/jobs", "CreateJob", json!({ "request": { "execution": { "continuity": "never" } } }), false),
        ("/jobs", "CreateJob", json!({ "prompt_file": "x" }), false),
        ("/jobs/batch", "CreateBatch", json!({ "jobs": [] }), false),
        ("/jobs/batch", "CreateBatch", json!({ "jobs": [7] }), true),
        ("/tokens", "CreateToken", json!({ "role": "peer" }), false),
        ("/tokens", "CreateToken", json!({ "role": "peer", "circle": "press" }), true),
        ("/tokens", "CreateToken", json!({ "role": "viewer", "scopes": ["all"] }), false),
        ("/peers", "RegisterPeer", json!({ "peer_id": "a b" }), false),
        ("/peers", "RegisterPeer", json!({ "display_name": "\u{7}" }), false),
        ("/events", "PublishEvent", json!({ "type": "" }), false),
        ("/events", "PublishEvent", json!({ "type": "\u{20ac}".repeat(256) }), true),
        (
            "/jobs/next",
            "PullJob",
            json!({ "wait_seconds": 0, "lanes": vec!["l"; 32], "paths": vec!["p"; 32] }),
            true,
        ),
        ("/jobs/next", "PullJob", json!({ "wait_seconds": 0, "lanes": vec!["l"; 33] }), false),
        ("/jobs/next", "PullJob", json!({ "wait_seconds": 0, "peer_id": long(257) }), false),
        (
            "/claims",
            "AcquireClaim",
            json!({ "resource_type": "EVENT", "owner_id": "o", "lease_seconds": 29 }),
            false,
        ),
    ] {
        let reference = json!({ "$ref": format!("#/components/schemas/{schema}") });
        let found = mistakes(&document, &reference, &body);
        assert_eq!(found.is_empty(), fits, "{schema} {found:?}");
        let answer = world.post(path, body).send().await;
        assert_eq!(answer.status < 300, fits, "{path}: {}", answer.body);
    }
}

/// The statuses of success that the document names for a POST to this path.
fn successes(document: &Value, path: &str) -> Vec<String> {
    let statuses = document["paths"][path]["post"]["responses"].as_object().expect("it is described");
    statuses.keys().filter(|status| status.starts_with('2')).cloned().collect()
}

#[tokio::test]
async fn callbacks_and_webhooks_are_answered_with_202_alone() {
    let world = working_world().await;
    let document = document(&world).await;
    for path in ["/callbacks/{id}/{name}", "/hooks/{id}"] {
        assert_eq!(successes(&document, path), ["202"], "{path}");
    }
    let job = world.create(json!({ "executor": "defers", "input": { "polls": 0 } })).await;
    world.until(&job, "awaiting_external").await;
    let operation = OperationId::new(world.store_operation(&job).await);
    let target = CallbackTarget::common("defers");
    let callback = callback_key().url_for("", &target, &operation, START.plus_seconds(60));
    let called = world.post(&callback, json!({})).anonymous().send().await;
    assert_eq!(called.status, 202, "{}", called.body);
    let signature = Digest(hmac_sha256(HOOK_KEY, b"{}")).to_string();
    let hook = world.post("/hooks/plain", json!({})).anonymous().header("x-signature", &signature);
    let hooked = hook.send().await;
    assert_eq!(hooked.status, 202, "{}", hooked.body);
}

#[tokio::test]
async fn body_for_a_capability_of_the_host_holds_no_nul() {
    let world = world().await;
    let document = document(&world).await;
    let path = &document["paths"]["/v1/host/capabilities/{id}"]["post"];
    let schema = &path["requestBody"]["content"]["application/json"]["schema"];
    for (body, fits) in [
        (json!({}), true),
        (json!({ "pages": [12, { "ink": null }] }), true),
        (json!({ "pages": ["\0"] }), false),
        (json!({ "\0": 12 }), false),
        (json!({ "pages": { "\0": 12 } }), false),
    ] {
        let found = mistakes(&document, schema, &body);
        assert_eq!(found.is_empty(), fits, "{body} {found:?}");
        let answer = world.post("/v1/host/capabilities/nobody", body.clone()).send().await;
        assert_eq!(answer.value()["code"] == "invalid_text", !fits, "{body}: {}", answer.body);
    }
}

#[tokio::test]
async fn every_field_of_a_new_job_in_the_document_is_known_to_the_server() {
    let world = world().await;
    let document = document(&world).await;
    let fields = document["components"]["schemas"]["CreateJob"]["properties"].as_object().unwrap().clone();
    assert!(fields.len() >= 34, "{}", fields.len());
    for field in fields.keys() {
        let answer = world.post("/jobs", json!({ field: null })).send().await;
        assert!(!answer.body.contains("extra_forbidden"), "{field}: {}", answer.body);
    }
}
