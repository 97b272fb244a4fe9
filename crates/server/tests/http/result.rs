//! Results.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::given::{START_TEXT, World, working_world, world};

const KEYS: [&str; 9] =
    ["job_id", "work_id", "state", "summary", "data", "error", "artifacts", "completed_at", "provenance"];

/// The result of a job that is over. What every result has is checked here for all.
async fn ended_result(world: &World, id: &str) -> Value {
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
    let keys: BTreeSet<&str> = result.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, KEYS.into());
    assert_eq!((&result["job_id"], &result["work_id"]), (&json!(id), &json!(id)));
    assert_eq!(result["completed_at"], START_TEXT);
    let observed = &result["provenance"]["observed"];
    let end = format!("job.{}/", result["state"].as_str().expect("a state"));
    let event = observed["source_events"][0]["kind"].as_str().expect("a kind");
    assert!(event.starts_with(&end) || event == "job.became_unavailable/1", "{observed}");
    assert_eq!(observed["state"], result["state"]);
    result
}

// conforms: R20 R44 R63
#[tokio::test]
async fn job_that_is_not_over_has_no_result_but_its_status() {
    let world = working_world().await;
    let mut open = vec![("queued", world.create(json!({})).await)];
    for (executor, state) in
        [("stays", "dispatching"), ("hands_over", "delivered"), ("defers", "awaiting_external")]
    {
        let id = world.create(json!({ "executor": executor, "input": { "ends": "never" } })).await;
        world.until(&id, state).await;
        open.push((state, id));
    }
    for state in ["running", "awaiting_input", "blocked"] {
        let id = world.create(json!({})).await;
        let report = json!({ "state": state, "result_data": { "pages": 6 }, "artifacts": ["cover.pdf"] });
        world.patch(&id, report).send().await.ok();
        open.push((state, id));
    }
    for (state, id) in open {
        let status = world.status(&id).await;
        assert_eq!(status["state"], state);
        for route in ["jobs", "work"] {
            let result = world.get(&format!("/{route}/{id}/result")).send().await.ok()["result"].clone();
            assert_eq!(result["result_state"], "not_ready", "{state}");
            assert_eq!((&result["job_id"], &result["work_id"]), (&json!(id), &json!(id)));
            assert_eq!(result["status"], status, "{state}");
            assert_eq!(result.as_object().unwrap().len(), 4, "{state}: {result}");
        }
    }
}

// conforms: R20 R64
#[tokio::test]
async fn result_has_its_nine_keys() {
    let world = working_world().await;
    let id =
        world.create(json!({ "executor": "echo", "input": { "n": 18_446_744_073_709_551_615_u64 } })).await;
    world.until(&id, "completed").await;
    let completed = ended_result(&world, &id).await;
    assert_eq!(completed["state"], "completed");
    assert_eq!(completed["summary"], "echoed");
    assert_eq!(completed["data"], json!({ "n": 18_446_744_073_709_551_615_u64 }));
    assert_eq!((&completed["error"], &completed["artifacts"]), (&json!(null), &json!([])));
    assert_eq!(completed["provenance"]["runner"]["attempts"][0]["status"], "completed");
    // The same of work that its doer reports by itself.
    let id = world.create(json!({})).await;
    let error = json!({ "code": "no_paper", "message": "there is no paper" });
    let report = json!({ "state": "failed", "error": error, "artifacts": ["cover.pdf"] });
    world.patch(&id, report).send().await.ok();
    let failed = ended_result(&world, &id).await;
    assert_eq!((&failed["state"], &failed["data"]), (&json!("failed"), &json!(null)));
    assert_eq!((&failed["artifacts"], &failed["error"]["code"]), (&json!(["cover.pdf"]), &json!("no_paper")));
    assert_eq!(failed["error"]["message"], "there is no paper");
}

// conforms: R64 R113
#[tokio::test]
async fn failure_has_its_error_and_reason() {
    let world = working_world().await;
    let id = world.create(json!({ "executor": "fails" })).await;
    let status = world.until(&id, "failed").await;
    assert_eq!(status["state_reason"], "out_of_paper");
    let (runner, attempt) = (&status["runner"], &status["runner"]["attempts"][0]);
    let reason = |error: &serde_json::Value| (error["reason"].clone(), error["state"].clone());
    let told = (json!("out_of_paper"), json!("failed"));
    assert_eq!((reason(&runner["last_error"]), reason(&attempt["error"])), (told.clone(), told));
    assert!(attempt["error"]["digest"].as_str().unwrap().starts_with("sha256:"), "{attempt}");
    assert_eq!((&attempt["executor"], &attempt["status"]), (&json!("fails"), &json!("failed")));
    let failed = ended_result(&world, &id).await;
    assert_eq!(failed["error"]["message"], "there is no paper");
    assert_eq!(failed["data"], json!(null));
}

// conforms: R112 R113
#[tokio::test]
async fn result_says_how_the_daemon_observed_the_end() {
    let world = working_world().await;
    let id = world.create(json!({ "executor": "echo", "input": 1 })).await;
    let status = world.until(&id, "completed").await;
    let attempt = &status["runner"]["attempts"][0];
    assert_eq!((&attempt["executor"], &attempt["delivery_state"]), (&json!("echo"), &json!("delivered")));
    assert_eq!((&attempt["error"], &attempt["status"]), (&json!({}), &json!("completed")));
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
    let observed = &result["provenance"]["observed"];
    assert_eq!(
        (&observed["state"], &observed["executor"]["executor"]),
        (&json!("completed"), &json!("echo"))
    );
    assert_eq!(observed["executor"]["runner_owner_id"], attempt["runner_owner_id"]);
    let event = &observed["source_events"][0];
    let facts = world.get(&format!("/jobs/{id}/facts")).send().await.ok();
    let end = facts["facts"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&event["kind"], &event["position"]), (&json!("job.completed/1"), &end["position"]));
    assert_eq!(observed["release_result"]["status"], "released");
    assert_eq!(status["runner"]["release_result"], observed["release_result"]);
    assert!(observed["transport_receipt"]["delivered_at"].is_string(), "{observed}");
    // Done by a peer that stays.
    world.create(json!({ "assigned_peer_id": "peer-joan" })).await;
    let (pulled, attempt) = world.pulled(json!({ "peer_id": "peer-joan" })).await;
    world.post(&format!("/jobs/{pulled}/complete"), json!({ "attempt_id": attempt })).send().await.ok();
    let result = world.get(&format!("/jobs/{pulled}/result")).send().await.ok()["result"].clone();
    let observed = &result["provenance"]["observed"];
    assert_eq!(observed["release_result"]["status"], "skipped", "{observed}");
    assert_eq!(observed["executor"]["peer_id"], "peer-joan", "{observed}");
    assert!(observed["transport_receipt"]["delivered_at"].is_string(), "{observed}");
    // Over without ever having begun.
    let id = world.create(json!({ "due_at": "2027-01-01T00:00:00Z" })).await;
    world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok();
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
    let observed = &result["provenance"]["observed"];
    assert_eq!(observed["source_events"][0]["kind"], "job.cancelled/1");
    assert_eq!((&observed["executor"], &observed["transport_receipt"]), (&json!(null), &json!(null)));
    // However much is noted afterwards.
    for number in 0..120 {
        let report = json!({ "state": "cancelled", "progress_note": format!("note {number}") });
        world.patch(&id, report).send().await.ok();
    }
    let noted = ended_result(&world, &id).await;
    assert_eq!(noted["provenance"]["observed"], *observed);
}

// conforms: R64
#[tokio::test]
async fn unavailable_job_has_an_error_object() {
    let world = world().await;
    let id = world.create(json!({})).await;
    world.patch(&id, json!({ "state": "unavailable", "state_reason": "press_gone" })).send().await.ok();
    let unavailable = ended_result(&world, &id).await;
    assert_eq!(unavailable["error"]["code"], "press_gone");
    assert!(unavailable["error"]["message"].as_str().unwrap().contains("unavailable"), "{unavailable}");
}

#[tokio::test]
async fn result_of_what_is_not_there_is_not_found() {
    let world = world().await;
    world.get("/jobs/work-0/result").send().await.problem(404, "not_found");
    let problem = world.get("/jobs/cal-0/result").send().await.problem(404, "not_found");
    assert_eq!(problem["detail"], "No recurring job: cal-0");
}
