//! Answers to jobs that wait.

use api::Role;
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

// conforms: O98
#[tokio::test]
async fn what_needs_an_approval_waits_for_an_operator_and_for_nobody_else() {
    let world = working_world().await;
    let agent = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let operator = world.token(Role::Operator, json!({})).await;
    let invoked = |input: serde_json::Value| {
        let body = json!({ "input": input, "timing": { "mode": "async" } });
        world.post("/v1/capabilities/asks_operators/invoke", body).bearer(&agent)
    };
    let handle = invoked(json!({ "draft": "a" })).send().await.value();
    let id = handle["audit/outcome-ref"].as_str().unwrap().to_owned();
    world.until(&id, "awaiting_input").await;
    let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
    assert_eq!(why["question"]["input"], json!({ "draft": "a" }));
    let (path, yes) = (format!("/jobs/{id}/answer"), json!({ "answer": { "approved": true } }));
    world.post(&path, yes.clone()).bearer(&agent).send().await.problem(403, "forbidden");
    // What is no verdict is none.
    for nonsense in [json!("yes"), json!([true]), json!({ "approved": "true" })] {
        world.post(&path, json!({ "answer": nonsense })).bearer(&operator).send().await.ok();
        world.until(&id, "awaiting_input").await;
    }
    world.post(&path, yes).bearer(&operator).send().await.ok();
    world.until(&id, "completed").await;
    let handle = invoked(json!({})).send().await.value();
    let id = handle["audit/outcome-ref"].as_str().unwrap().to_owned();
    world.until(&id, "awaiting_input").await;
    let no = json!({ "answer": { "approved": false } });
    world.post(&format!("/jobs/{id}/answer"), no).bearer(&operator).send().await.ok();
    assert_eq!(world.until(&id, "failed").await["state_reason"], "not-approved");
}
