//! Bad input: a clear code, and nothing changes.

use serde_json::json;
use server::{Dialect, Verb, routes};

use crate::given::world;

#[tokio::test]
async fn what_is_not_json_is_400_and_what_cannot_be_kept_is_422() {
    let world = world().await;
    let deep = format!(r#"{{"request":{{"x":{}{}}}}}"#, "[".repeat(100), "]".repeat(100));
    for (body, status, code) in [
        (&b"{"[..], 400, "malformed_json"),
        (b"{\"title\":\"x\"", 400, "malformed_json"),
        (b"{\"title\":\"\xff\xfe\"}", 400, "invalid_utf8"),
        (b"{\"title\":\"\x00\"}", 400, "malformed_json"),
        (b"{\"title\":\"a\",\"title\":\"b\"}", 422, "duplicate_key"),
        (b"{\"request\":{\"a\":1,\"\\u0061\":2}}", 422, "duplicate_key"),
        (b"{\"title\":\"a\\u0000b\"}", 422, "invalid_text"),
        (b"{\"title\":\"\\ud800\"}", 422, "invalid_text"),
        (deep.as_bytes(), 422, "too_deep"),
    ] {
        let call = world.call("POST", "/jobs").bytes(body).header("content-type", "application/json");
        call.send().await.problem(status, code);
    }
    assert_eq!(world.get("/jobs").send().await.ok()["work"], json!([]));
}

#[tokio::test]
async fn no_route_takes_in_what_cannot_be_kept() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let before = world.get("/jobs").send().await.body;
    let deep = "[".repeat(100_000);
    let mut walked = 0;
    // What a service sends with a callback is not read at all.
    let reads = |route: &&server::Route| {
        route.operation.name != "take_callback" && route.operation.dialect == Dialect::Own
    };
    let writes = |route: &&server::Route| matches!(route.verb, Verb::Post | Verb::Patch);
    for route in routes().iter().filter(writes).filter(reads) {
        let method = if route.verb == Verb::Post { "POST" } else { "PATCH" };
        let path = route.path.replace("{id}", &id);
        for (body, status, code) in [
            (&b"{"[..], 400, "malformed_json"),
            (b"{} {}", 400, "malformed_json"),
            (b"{\"x\":01}", 400, "malformed_json"),
            (b"\xff", 400, "invalid_utf8"),
            (b"{\"x\":1,\"x\":1}", 422, "duplicate_key"),
            (b"{\"x\":\"\\u0000\"}", 422, "invalid_text"),
            (deep.as_bytes(), 422, "too_deep"),
            (b"{\"no_such_field\":1}", 422, "invalid_request"),
            (b"[]", 422, "invalid_request"),
        ] {
            // What is asked for by its path alone looks at a body only to see that it is fit.
            let by_path = [
                "purge_job",
                "poll_deferred_operation",
                "drain_node",
                "undrain_node",
                "set_clock_right",
                "reload_pipelines",
                "reset_plugin",
                "retry_run",
                "retry_deferred_operation",
                // Its body is the input itself.
                "invoke_host_capability",
            ];
            if by_path.contains(&route.operation.name) && code == "invalid_request" {
                continue;
            }
            let call = world.call(method, &path).bytes(body).header("content-type", "application/json");
            // The largest of these is over what a small order may have.
            let answer = call.send().await;
            if answer.status == 413 {
                assert_eq!(body.len(), deep.len(), "{path}");
                continue;
            }
            answer.problem(status, code);
        }
        let call = world.call(method, &path).bytes(b"{}").header("content-type", "text/plain");
        call.send().await.problem(415, "unsupported_media_type");
        walked += 1;
    }
    assert!(walked > 10);
    assert_eq!(world.get("/jobs").send().await.body, before);
}

#[tokio::test]
async fn numbers_outside_their_field_are_refused_by_name() {
    let world = world().await;
    for (field, value) in [
        ("priority", "99999999999999999999"),
        ("priority", "1.5"),
        ("priority", "1e3"),
        ("timeout_seconds", "-1"),
        ("timeout_seconds", "18446744073709551616"),
    ] {
        let body = format!(r#"{{"{field}":{value}}}"#);
        let problem = world.call("POST", "/jobs").text(&body).send().await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["loc"], json!(["body", field]), "{body}");
    }
    assert_eq!(world.get("/jobs").send().await.ok()["work"], json!([]));
}

#[tokio::test]
async fn integers_of_64_bits_and_long_fractions_come_back_word_for_word() {
    let world = world().await;
    let numbers =
        "[18446744073709551615,-9223372036854775808,1.10,1e400,0.1000000000000000055511151231257827]";
    let body = format!(r#"{{ "request" : {{ "n" : {numbers} }}, "provenance": {{"p":{numbers}}} }}"#);
    let answer = world.call("POST", "/jobs").text(&body).send().await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.contains(&format!(r#""n":{numbers}"#)), "{}", answer.body);
    let created: api::JobCreated<'_> = serde_json::from_str(&answer.body).unwrap();
    let id = created.job_id;
    let report = format!(r#"{{"state":"completed","result_data":{{"n":{numbers}}}}}"#);
    let answer = world.call("PATCH", &format!("/jobs/{id}")).text(&report).send().await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let result = world.get(&format!("/jobs/{id}/result")).send().await;
    assert!(result.body.contains(&format!(r#""data":{{"n":{numbers}}}"#)), "{}", result.body);
    let status = world.get(&format!("/jobs/{id}")).send().await;
    assert!(status.body.contains(&format!(r#""p":{numbers}"#)), "{}", status.body);
}

#[tokio::test]
async fn body_that_is_not_said_to_be_json_is_415() {
    let world = world().await;
    for content_type in ["application/x-www-form-urlencoded", "text/plain", "application/jsonish"] {
        let call = world.post("/jobs", json!({})).header("content-type", content_type);
        call.send().await.problem(415, "unsupported_media_type");
    }
    world.call("POST", "/jobs").bytes(b"{}").send().await.problem(415, "unsupported_media_type");
    for content_type in
        ["application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"]
    {
        let call = world.post("/jobs", json!({})).header("content-type", content_type);
        call.send().await.ok();
    }
}

#[tokio::test]
async fn missing_body_is_422() {
    let world = world().await;
    let problem = world.call("POST", "/jobs").send().await.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["type"], "missing");
}

#[tokio::test]
async fn strange_ids_and_queries_are_no_harm() {
    let world = world().await;
    for id in ["work-%00", "work-%2e%2e", "work-%ff", "work-'--", "%20", "work-\u{201e}"] {
        let answer = world.get(&format!("/jobs/{id}")).send().await;
        assert!(matches!(answer.status, 400 | 404), "{id}: {answer:?}");
    }
    let long = "work-".to_owned() + &"f".repeat(4_000);
    let answer = world.get(&format!("/jobs/{long}")).send().await;
    answer.problem(404, "not_found");
    assert!(answer.body.len() < 400);
    world.get("/jobs?circle=%FF&owner_peer_id=%27%3B--").send().await.ok();
    // PostgreSQL would not take it, whatever it is compared with.
    for list in ["jobs", "events", "runs", "peers", "orphans", "v1/deferred-operations"] {
        world.get(&format!("/{list}?circle=%00")).send().await.problem(422, "invalid_text");
    }
    for path in
        ["jobs/work-%00", "events/event-%00", "runs/run-%00", "peers/%00", "asks/%00", "plugin/%00/state"]
    {
        world.get(&format!("/{path}")).send().await.problem(404, "not_found");
    }
    world.get("/jobs?limit=%ff").send().await.problem(422, "invalid_request");
}
