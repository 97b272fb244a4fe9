//! Answers to jobs that wait.

use serde_json::json;

use crate::given::working_world;

#[tokio::test]
async fn answered_job_goes_on_with_the_answer_under_the_same_attempt() {
    let world = working_world().await;
    let id = world.create(json!({ "executor": "asks" })).await;
    let waiting = world.until(&id, "awaiting_input").await;
    let path = format!("/jobs/{id}/answer");
    world.post(&path, json!({})).send().await.problem(422, "invalid_request");
    world
        .post(&path, json!({ "answer": { "approved": true, "n": 9_007_199_254_740_993_u64 } }))
        .send()
        .await
        .ok();
    let done = world.until(&id, "completed").await;
    assert_eq!(done["runner"]["current_attempt_id"], waiting["runner"]["current_attempt_id"]);
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok();
    assert_eq!(result["result"]["data"], json!({ "approved": true, "n": 9_007_199_254_740_993_u64 }));
    world.post(&path, json!({ "answer": 1 })).send().await.problem(409, "not_awaiting_input");
}
