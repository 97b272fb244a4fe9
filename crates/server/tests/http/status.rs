//! The status of a job.

use std::collections::BTreeSet;

use serde_json::json;

use crate::given::{START_TEXT, working_world, world};

const KEYS: &str = "job_id work_id title kind state state_reason phase progress progress_events owner_peer_id \
    assigned_peer_id repowire_session_id correlation_id circle created_by_peer_id source_kind source_id scope \
    visibility created_at updated_at deadline_at expires_at result_summary cancel_requested cancel_requested_at \
    cancel_requested_by_peer_id cancellation_reason protocol_cancel request provenance execution runner due_at links";

// conforms: R14 R58
#[tokio::test]
async fn status_has_its_35_keys_always_and_no_others() {
    let world = world().await;
    let expected: BTreeSet<&str> = KEYS.split_whitespace().collect();
    assert_eq!(expected.len(), 35);
    let plain = world.create(json!({})).await;
    let (dispatched, attempt) = world.delivered().await;
    let over =
        json!({ "state": "completed", "attempt_id": attempt, "result_data": {}, "progress_note": "n" });
    world.patch(&dispatched, over).send().await.ok();
    for id in [plain, dispatched] {
        for route in [
            format!("/jobs/{id}"),
            format!("/jobs/{id}/status"),
            format!("/work/{id}/status"),
            format!("/work/{id}"),
        ] {
            let answer = world.get(&route).send().await.ok();
            let keys: BTreeSet<&str> =
                answer["status"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, expected, "{route}");
            assert_eq!(answer.as_object().unwrap().len(), 1);
        }
    }
}

// conforms: R9
#[tokio::test]
async fn record_needs_and_names_no_persona_orchestrator_or_backend() {
    let world = world().await;
    for foreign in ["persona", "orchestrator", "agent", "model", "runtime"] {
        let problem =
            world.post("/jobs", json!({ foreign: "x" })).send().await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["type"], "extra_forbidden", "{foreign}");
    }
    // Where it should run is a wish beside the record: an unknown executor's name does as well as none.
    let id = world.create(json!({ "executor": "echo" })).await;
    let done = world.call("POST", &format!("/jobs/{id}/run")).send().await.ok();
    assert_eq!(done["status"]["state"], "completed");
    let text = done.to_string();
    for word in ["persona", "orchestrator", "backend", "profile"] {
        assert!(!text.contains(word) && !KEYS.contains(word), "{word}: {text}");
    }
    let wished = world.create(json!({ "backend": "codex", "path": "/srv" })).await;
    let mut status = world.status(&wished).await;
    for place in ["execution", "request"] {
        status.as_object_mut().unwrap().remove(place);
    }
    assert!(!status.to_string().contains("codex"), "a wish stays with the request: {status}");
}

#[tokio::test]
async fn transcripts_and_the_data_of_other_ledgers_have_no_place_in_the_record() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let before = world.get(&format!("/jobs/{id}")).send().await.body;
    for foreign in ["transcript", "messages", "turns", "chat", "issue", "issues", "ticket", "ledger", "log"] {
        let create = json!({ foreign: ["x"] });
        let problem = world.post("/jobs", create).send().await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["type"], "extra_forbidden", "{foreign}");
        let report = json!({ "state": "running", foreign: ["x"] });
        let problem = world.patch(&id, report).send().await.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["type"], "extra_forbidden", "{foreign}");
        assert!(!KEYS.split_whitespace().any(|key| key == foreign));
    }
    // What a transcript could be smuggled in as is short.
    for (key, value) in [
        ("progress_note", json!("x".repeat(2_049))),
        ("progress", json!({ "transcript": "x".repeat(2_049) })),
        ("result_summary", json!("x".repeat(4_097))),
    ] {
        let mut report = json!({ "state": "running" });
        report[key] = value;
        world.patch(&id, report).send().await.problem(422, "too_large");
    }
    assert_eq!(world.get(&format!("/jobs/{id}")).send().await.body, before);
    assert_eq!(world.get("/jobs").send().await.ok()["work"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn input_is_shown_as_it_was_sent_until_it_is_purged() {
    let world = world().await;
    let body = r#"{"executor":"fails","input":{"z":18446744073709551615,"a":1.50}}"#;
    let made = world.call("POST", "/jobs").text(body).send().await;
    let input = r#""input":{"z":18446744073709551615,"a":1.50}"#;
    assert!(made.body.contains(input), "{}", made.body);
    let id = made.ok()["job_id"].as_str().unwrap().to_owned();
    let path = format!("/jobs/{id}");
    assert!(world.get(&path).send().await.body.contains(input));
    world.call("POST", &format!("/jobs/{id}/run")).send().await.ok();
    world.call("POST", &format!("/jobs/{id}/purge")).send().await.ok();
    assert!(!world.get(&path).send().await.body.contains("18446744073709551615"));
}

#[tokio::test]
async fn new_job_has_the_defaults_of_the_contract() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let status = world.status(&id).await;
    assert_eq!(status["created_at"], START_TEXT);
    assert_eq!(status["updated_at"], START_TEXT);
    for (key, value) in [
        ("title", json!("")),
        ("kind", json!("general")),
        ("visibility", json!("circle")),
        ("progress", json!({})),
        ("progress_events", json!([])),
        ("cancel_requested", json!(false)),
        ("protocol_cancel", json!(null)),
        ("provenance", json!({})),
        ("runner", json!({})),
        ("links", json!({})),
        ("due_at", json!(null)),
    ] {
        assert_eq!(status[key], value, "{key}");
    }
}

#[tokio::test]
async fn links_of_the_provenance_are_echoed() {
    let world = world().await;
    let provenance = json!({ "links": { "ask": "ask-1" }, "by": "chat" });
    let id = world.create(json!({ "provenance": provenance })).await;
    let status = world.status(&id).await;
    assert_eq!(status["links"], json!({ "ask": "ask-1" }));
    assert_eq!(status["provenance"], provenance);
}

// conforms: R25
#[tokio::test]
async fn runner_has_the_current_attempt_its_lease_and_the_count() {
    let world = world().await;
    let (id, attempt) = world.delivered().await;
    let status = world.status(&id).await;
    let runner = &status["provenance"]["runner"];
    assert_eq!(runner, &status["runner"]);
    assert_eq!(runner["attempt_count"], 1);
    let alias = server::attempt_alias(&attempt);
    assert_eq!(runner["current_attempt_id"], alias.as_str(), "it is not for the caller to report with");
    assert_eq!(runner["lease_until"], "2026-01-01T00:01:00.000000+00:00");
    assert_eq!(runner["attempts"][0]["attempt_id"], alias.as_str());
    assert_eq!(runner["attempts"][0]["status"], "delivered");
    assert_eq!(runner["attempts"][0]["trigger"], "run");
    assert_eq!(runner["attempts"][0]["started_at"], START_TEXT);
    world.create(json!({})).await;
    let (pulled, attempt) = world.pulled(json!({})).await;
    let runner = world.status(&pulled).await["runner"].clone();
    assert_eq!(runner["current_attempt_id"], attempt.as_str(), "its worker is shown the id");
    assert_eq!(runner["attempts"][0]["attempt_id"], attempt.as_str());
}

#[tokio::test]
async fn what_names_no_job_is_not_there() {
    let world = world().await;
    for id in ["work-0", "nonsense", "op-1", "work-ffffffffffffffffffffffffffffffff"] {
        let problem = world.get(&format!("/jobs/{id}")).send().await.problem(404, "not_found");
        assert_eq!(problem["detail"], format!("No work: {id}"));
    }
    let problem = world.get("/jobs/cal-1").send().await.problem(404, "not_found");
    assert_eq!(problem["detail"], "No recurring job: cal-1");
    world.get("/nowhere").send().await.problem(404, "no_such_route");
    let answer = world.call("PUT", "/jobs").send().await;
    answer.problem(405, "method_not_allowed");
    assert!(answer.headers["allow"].contains("POST"), "{answer:?}");
}

#[tokio::test]
async fn work_outside_shows_its_progress_in_the_job_and_no_poll_writes_to_the_job() {
    let world = working_world().await;
    let script = json!({ "polls": 9, "hint": true, "progress": { "done": 3, "of": 9 } });
    let id = world.create(json!({ "executor": "defers", "input": script })).await;
    let fresh = world.until(&id, "awaiting_external").await;
    let before = &fresh["runner"]["outside"];
    assert_eq!((&before["polls"], &before["last_polled_at"]), (&json!(0), &json!(null)));
    let facts =
        async || world.get(&format!("/jobs/{id}/facts")).send().await.ok()["facts"].as_array().unwrap().len();
    let written = facts().await;
    world.polled(&id, 1).await;
    world.polled(&id, 2).await;
    let status = world.status(&id).await;
    let outside = &status["runner"]["outside"];
    assert_eq!((&outside["service"], &outside["status"]), (&json!("defers"), &json!("running")));
    assert_eq!((&outside["polls"], &outside["progress_hint"]), (&json!(2), &json!("page 2")));
    assert!(outside["next_poll_at"].as_str() > outside["last_polled_at"].as_str(), "{outside}");
    assert_eq!((outside.get("last_error"), &status["provenance"]["runner"]["outside"]), (None, outside));
    assert_eq!(
        (&status["progress"], &status["phase"]),
        (&json!({ "done": 3, "of": 9 }), &json!("running outside"))
    );
    let note = status["progress_events"].as_array().unwrap().last().unwrap();
    assert_eq!((&note["note"], &note["at"]), (&json!("page 2"), &outside["last_polled_at"]));
    assert_eq!(facts().await, written, "a poll is a fact of its operation alone");
    let listed = world.get("/jobs?view=full").send().await.ok();
    assert_eq!(listed["work"][0]["runner"]["outside"], *outside, "{listed}");
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok();
    assert_eq!(result["result"]["status"]["runner"]["outside"], *outside);
}

#[tokio::test]
async fn service_that_cannot_be_asked_is_told_in_the_job_and_in_its_why() {
    let world = working_world().await;
    let id = world
        .create(json!({ "executor": "defers", "input": { "error": "come back when it is light" } }))
        .await;
    world.until(&id, "awaiting_external").await;
    let why = async || {
        let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
        let reason = why["reasons"][0].clone();
        assert_eq!(
            (&reason["code"], &reason["until"]),
            (&json!("awaiting_external"), &why["earliest_at"]),
            "{why}"
        );
        reason
    };
    let before = why().await;
    assert!(before["detail"].as_str().unwrap().contains("it was not polled yet"), "{before}");
    world.polled(&id, 1).await;
    world.polled(&id, 2).await;
    let status = world.status(&id).await;
    let outside = &status["runner"]["outside"];
    let error = json!({ "code": "press_asleep", "message": "come back when it is light", "in_row": 2 });
    assert_eq!((&outside["last_error"], &status["state"]), (&error, &json!("awaiting_external")));
    let told = why().await;
    assert_eq!(told["until"], outside["next_poll_at"]);
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.starts_with("it waits for defers, "), "{detail}");
    assert!(
        detail.contains("polled 2 times, the last 2 without a usable status: press_asleep: come back"),
        "{detail}"
    );
}
