//! Whoever pulled a job gives it to a service and hands that over: the daemon asks the service from then on, also after kill -9.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{create, ended, expect, longhaul, until};
use crate::outside::Outside;

pub fn call(dir: &Path, path: &str, body: &Value) -> (u16, Value) {
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("it is there");
    call_as(dir, token.trim(), path, body)
}

/// The same, with this token.
pub fn call_as(dir: &Path, token: &str, path: &str, body: &Value) -> (u16, Value) {
    call_with(dir, token, &[], path, body)
}

fn call_with(dir: &Path, token: &str, headers: &[(&str, &str)], path: &str, body: &Value) -> (u16, Value) {
    let file = std::fs::read_to_string(dir.join("daemon.json")).expect("the daemon runs");
    let file: Value = serde_json::from_str(&file).expect("it is JSON");
    let config = ureq::Agent::config_builder().http_status_as_error(false).build();
    let url = format!("{}{path}", file["url"].as_str().expect("it has an address"));
    let mut request = ureq::Agent::new_with_config(config)
        .post(url)
        .header("Authorization", format!("Bearer {token}"))
        .header("Content-Type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = request.send(body.to_string()).expect("it answers");
    let text = answer.body_mut().read_to_string().expect("it is text");
    (answer.status().as_u16(), serde_json::from_str(&text).expect("it is JSON"))
}

/// The id of a job's current attempt, as the holder of this token is shown it.
pub fn attempt_shown_to(dir: &Path, token: &str, id: &str) -> Value {
    let file = std::fs::read_to_string(dir.join("daemon.json")).expect("the daemon runs");
    let file: Value = serde_json::from_str(&file).expect("it is JSON");
    let url = format!("{}/jobs/{id}", file["url"].as_str().expect("it has an address"));
    let request = ureq::get(url).header("Authorization", format!("Bearer {token}"));
    let mut answer = request.call().expect("it answers");
    let text = answer.body_mut().read_to_string().expect("it is text");
    let status: Value = serde_json::from_str(&text).expect("it is JSON");
    status["status"]["runner"]["current_attempt_id"].clone()
}

pub fn ok(dir: &Path, path: &str, body: &Value) -> Value {
    let (status, answer) = call(dir, path, body);
    assert_eq!(status, 200, "{answer}");
    answer
}

#[test]
fn worker_that_hands_its_operation_over_need_not_be_heard_of_again() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let daemon = outside.daemon(dir.path());
    let id = create(dir.path(), &["print it", "--lane", "print"]);
    let handed = ok(dir.path(), "/jobs/next", &json!({ "lanes": ["print"] }))["job"].clone();
    assert_eq!(handed["job_id"], id);
    // The worker gives the work to the service by itself.
    let given = outside.give(&json!({ "seconds": 2, "result": { "pages": 12 } }));
    let mut left =
        json!({ "attempt_id": handed["attempt_id"], "executor": "slow-service", "id": given["id"] });
    let defer = format!("/jobs/{id}/defer");
    for (wrong, why) in [("executor", "slow-servic"), ("attempt_id", "attempt-9")] {
        let mut body = left.clone();
        body[wrong] = json!(why);
        let (status, answer) = call(dir.path(), &defer, &body);
        assert!(matches!(status, 409 | 422), "{status} {answer}");
    }
    let mut elsewhere = left.clone();
    elsewhere["location"] = json!("http://127.0.0.1:1/steal");
    assert_eq!(call(dir.path(), &defer, &elsewhere).0, 422, "our credentials go to the service alone");
    assert_eq!(ok(dir.path(), &defer, &left)["status"]["state"], "awaiting_external");
    assert_eq!(
        ok(dir.path(), &defer, &left)["status"]["state"],
        "awaiting_external",
        "said twice, it is the same"
    );
    daemon.kill();
    let daemon = outside.daemon(dir.path());
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["pages"], 12);
    assert_eq!(outside.starts(), 1);

    // The worker goes on with what comes.
    let id = create(dir.path(), &["bind it", "--lane", "print"]);
    let handed = ok(dir.path(), "/jobs/next", &json!({ "lanes": ["print"] }))["job"].clone();
    let given = outside.give(&json!({ "seconds": 1, "result": { "pages": 7 } }));
    left["attempt_id"] = handed["attempt_id"].clone();
    left["id"] = given["id"].clone();
    left["then"] = json!("resume");
    ok(dir.path(), &format!("/jobs/{id}/defer"), &left);
    let again =
        ok(dir.path(), "/jobs/next", &json!({ "lanes": ["print"], "wait_seconds": 60 }))["job"].clone();
    assert_eq!((&again["job_id"], &again["arrived"]["pages"]), (&json!(id), &json!(7)));
    ok(dir.path(), &format!("/jobs/{id}/complete"), &json!({ "attempt_id": again["attempt_id"] }));
    until(dir.path(), &id, "completed");
    drop(daemon);
    outside.stop();
}

#[test]
fn hand_over_of_a_stale_attempt_leaves_evidence_and_no_orphan_and_one_under_a_key_is_answered_once() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let daemon = outside.daemon(dir.path());
    let id = create(dir.path(), &["print it", "--lane", "print"]);
    let next = || ok(dir.path(), "/jobs/next", &json!({ "lanes": ["print"] }))["job"]["attempt_id"].clone();
    let (first, path) = (next(), format!("/jobs/{id}/defer"));
    ok(dir.path(), &format!("/jobs/{id}/fail"), &json!({ "attempt_id": first }));
    ok(dir.path(), &format!("/jobs/{id}/retry"), &json!({}));
    let second = next();
    let given = outside.give(&json!({ "seconds": 1, "result": { "pages": 3 } }));
    let left =
        |attempt: &Value| json!({ "attempt_id": attempt, "executor": "slow-service", "id": given["id"] });
    let (status, problem) = call(dir.path(), &path, &left(&first));
    assert_eq!((status, &problem["code"]), (409, &json!("stale_attempt")), "{problem}");
    let orphans = crate::given::json(dir.path(), &["orphans", "list"]);
    assert_eq!(orphans["orphans"], json!([]));
    let facts = expect(0, &longhaul(dir.path(), &["jobs", "facts", &id]));
    assert!(facts.contains("stale_report"), "the late word is kept: {facts}");

    let token = std::fs::read_to_string(dir.path().join("admin.token")).unwrap();
    let keyed = |body: &Value| call_with(dir.path(), token.trim(), &[("Idempotency-Key", "k1")], &path, body);
    let (status, answer) = keyed(&left(&second));
    assert_eq!((status, &answer["status"]["state"]), (200, &json!("awaiting_external")), "{answer}");
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["pages"], 3);
    assert_eq!(keyed(&left(&second)), (200, answer), "the same answer again, whatever has happened since");
    assert_eq!(keyed(&left(&first)).0, 409, "another request under this key");
    drop(daemon);
    outside.stop();
}

#[test]
fn connector_that_does_not_adopt_takes_nothing_over() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let file = std::fs::read_to_string(&outside.connector).unwrap();
    assert!(file.contains("adopts: true"));
    std::fs::write(&outside.connector, file.replace("adopts: true", "adopts: false")).unwrap();
    let daemon = outside.daemon(dir.path());
    let id = create(dir.path(), &["print it", "--lane", "print"]);
    let handed = ok(dir.path(), "/jobs/next", &json!({ "lanes": ["print"] }))["job"].clone();
    let given = outside.give(&json!({ "seconds": 1 }));
    let left = json!({ "attempt_id": handed["attempt_id"], "executor": "slow-service", "id": given["id"] });
    let (status, problem) = call(dir.path(), &format!("/jobs/{id}/defer"), &left);
    assert_eq!((status, &problem["errors"][0]["loc"][1]), (422, &json!("executor")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("adopts: true"), "{problem}");
    assert_eq!(crate::given::show(dir.path(), &id)["state"], json!("delivered"), "nothing has changed");
    drop(daemon);
    outside.stop();
}
