//! Results.

use std::collections::BTreeSet;

use serde_json::json;

use crate::given::{working_world, world};

// conforms: R20 R63
#[tokio::test]
async fn job_that_is_not_over_has_no_result_but_its_status() {
    let world = world().await;
    let id = world.create(json!({})).await;
    for route in ["jobs", "work"] {
        let result = world.get(&format!("/{route}/{id}/result")).send().await.ok()["result"].clone();
        assert_eq!(result["result_state"], "not_ready");
        assert_eq!(result["job_id"], id.as_str());
        assert_eq!(result["status"], world.status(&id).await);
        assert_eq!(result.as_object().unwrap().len(), 4);
    }
}

// conforms: R64 R80
#[tokio::test]
async fn result_has_its_nine_keys() {
    let world = working_world().await;
    let id =
        world.create(json!({ "executor": "echo", "input": { "n": 18_446_744_073_709_551_615_u64 } })).await;
    world.until(&id, "completed").await;
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
    let keys: BTreeSet<&str> = result.as_object().unwrap().keys().map(String::as_str).collect();
    let expected =
        ["job_id", "work_id", "state", "summary", "data", "error", "artifacts", "completed_at", "provenance"];
    assert_eq!(keys, expected.into());
    assert_eq!(result["state"], "completed");
    assert_eq!(result["summary"], "echoed");
    assert_eq!(result["data"], json!({ "n": 18_446_744_073_709_551_615_u64 }));
    assert_eq!(result["artifacts"], json!([]));
    assert_eq!(result["completed_at"], crate::given::START_TEXT);
    assert_eq!(result["provenance"]["runner"]["attempts"][0]["status"], "completed");
}

#[tokio::test]
async fn failure_has_its_error_and_reason() {
    let world = working_world().await;
    let id = world.create(json!({ "executor": "fails" })).await;
    let status = world.until(&id, "failed").await;
    assert_eq!(status["state_reason"], "out_of_paper");
    assert_eq!(status["runner"]["last_error"], "out_of_paper");
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
    assert_eq!(result["error"]["message"], "there is no paper");
    assert_eq!(result["data"], json!(null));
}

#[tokio::test]
async fn result_of_what_is_not_there_is_not_found() {
    let world = world().await;
    world.get("/jobs/work-0/result").send().await.problem(404, "not_found");
    let problem = world.get("/jobs/cal-0/result").send().await.problem(404, "not_found");
    assert_eq!(problem["detail"], "No recurring job: cal-0");
}
