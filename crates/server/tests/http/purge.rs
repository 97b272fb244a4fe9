//! Purges.

use serde_json::json;

use crate::given::world;

#[tokio::test]
async fn purged_job_keeps_its_record_and_loses_its_bodies() {
    let world = world().await;
    let id = world.create(json!({ "title": "t", "prompt": "private", "request": { "x": 1 } })).await;
    let path = format!("/jobs/{id}/purge");
    world.call("POST", &path).send().await.problem(409, "not_terminal");
    let report = json!({ "state": "completed", "result_summary": "s", "result_data": { "secret": 1 } });
    world.patch(&id, report).send().await.ok();
    world.call("POST", &path).send().await.ok();
    world.call("POST", &path).send().await.ok();
    let status = world.get(&format!("/jobs/{id}")).send().await;
    assert_eq!(status.ok()["status"]["state"], "completed");
    assert!(!status.body.contains("private"));
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok();
    assert_eq!((&result["result"]["data"], &result["result"]["summary"]), (&json!(null), &json!("s")));
}
