//! Callbacks: a service that has news is heard at once, and nobody else.

use domain::OperationId;
use serde_json::{Value, json};

use crate::given::{Answer, START, World, callback_key, working_world};

fn path(operation: &str, seconds: u64) -> String {
    callback_key().url_for("", &OperationId::new(operation), START.plus_seconds(seconds))
}

async fn call_back(world: &World, path: &str, body: Value) -> Answer {
    world.post(path, body).anonymous().send().await
}

/// A job that goes on outside, and its operation.
async fn outside(world: &World, executor: &str, input: Value) -> (String, String) {
    let id = world.create(json!({ "executor": executor, "input": input })).await;
    world.until(&id, "awaiting_external").await;
    let operation = world.store_operation(&id).await;
    (id, operation)
}

#[tokio::test]
async fn callback_makes_its_service_be_asked_at_once_and_is_not_believed_itself() {
    let world = working_world().await;
    let (id, operation) = outside(&world, "defers", json!({ "polls": 0 })).await;
    // The clock stands: without the callback nobody would ask.
    let answer = call_back(&world, &path(&operation, 60), json!({ "result": "forged" })).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    world.until(&id, "completed").await;
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok();
    assert_eq!(result["result"]["data"], json!({ "pages": 12 }));
    // What comes after the end changes nothing.
    assert_eq!(call_back(&world, &path(&operation, 60), json!({})).await.status, 202);
    assert_eq!(world.status(&id).await["state"], "completed");
}

#[tokio::test]
async fn executor_whose_callbacks_carry_the_answer_is_taken_at_its_word_once() {
    let world = working_world().await;
    let (id, operation) = outside(&world, "called", json!({})).await;
    call_back(&world, &path(&operation, 60), json!({ "n": 1 })).await;
    world.until(&id, "completed").await;
    world.clock.advance_seconds(5);
    let mut ledger = world.daemon.ledger();
    ledger.borrow_and_update();
    call_back(&world, &path(&operation, 60), json!({ "late": true })).await;
    // It is on the ledger as evidence, and the result stays.
    ledger.changed().await.expect("the daemon lives");
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok();
    assert_eq!(result["result"]["data"], json!({ "n": 1 }));
}

#[tokio::test]
async fn callback_that_was_not_signed_for_this_operation_and_this_time_is_not_there() {
    let world = working_world().await;
    let (id, operation) = outside(&world, "defers", json!({ "polls": 0 })).await;
    let other = path("op-other", 60).rsplit('/').next().unwrap().to_owned();
    for bad in [
        path(&operation, 0),
        format!("/callbacks/{operation}/{other}"),
        format!("/callbacks/{operation}/x"),
        path(&id, 60),
    ] {
        call_back(&world, &bad, json!({})).await.problem(404, "not_found");
    }
    let large = "x".repeat(70_000);
    call_back(&world, &path(&operation, 60), json!(large)).await.problem(413, "body_too_large");
    assert_eq!(world.status(&id).await["state"], "awaiting_external");
}

#[tokio::test]
async fn callback_before_its_operation_is_taken_and_does_no_harm() {
    let world = working_world().await;
    let answer = call_back(&world, &path("op-00000000000000000000000000000000", 60), json!({})).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
}
