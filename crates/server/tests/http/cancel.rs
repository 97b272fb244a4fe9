//! Cancels.

use serde_json::json;

use crate::given::{START_TEXT, working_world, world};

// conforms: R68 R21
#[tokio::test]
async fn queued_job_is_cancelled_at_once_and_nobody_is_told() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let body = json!({ "requested_by_peer_id": "ada", "reason": "changed my mind" });
    let status = world.post(&format!("/work/{id}/cancel"), body).send().await.ok()["status"].clone();
    assert_eq!(status["state"], "cancelled");
    assert_eq!(status["cancel_requested"], true);
    assert_eq!(status["cancel_requested_at"], START_TEXT);
    assert_eq!(status["cancel_requested_by_peer_id"], "ada");
    assert_eq!(status["cancellation_reason"], "changed my mind");
    assert_eq!(status["protocol_cancel"], json!(null));
}

// conforms: R66 R71 R74 R59
#[tokio::test]
async fn cancel_of_dispatched_work_is_pending_until_its_time_is_over() {
    let world = world().await;
    let (id, _) = world.delivered().await;
    let status = world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok()["status"].clone();
    assert_eq!(
        (&status["state"], &status["state_reason"]),
        (&json!("delivered"), &json!("cancel_requested"))
    );
    assert_eq!(status["cancellation_reason"], "cancel_requested");
    assert_eq!(status["protocol_cancel"]["status"], "sent");
    assert_eq!(status["provenance"]["protocol_cancel"], status["protocol_cancel"]);
    world.clock.advance_seconds(30);
    let status = world.until(&id, "cancelled").await;
    assert_eq!(status["state_reason"], "cancel_unconfirmed");
}

// conforms: R69
#[tokio::test]
async fn running_executor_is_told_and_its_word_ends_the_job() {
    let world = working_world().await;
    let id = world.create(json!({ "executor": "stays" })).await;
    world.until(&id, "dispatching").await;
    world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok();
    let status = world.until(&id, "cancelled").await;
    assert_eq!(status["state_reason"], "cancelled");
}

// conforms: R67 R70 R73
#[tokio::test]
async fn unmanaged_work_stays_pending_and_the_record_says_that_nobody_could_be_told() {
    let world = world().await;
    for (body, reason) in [
        (json!({}), "no_assigned_peer"),
        (json!({ "assigned_peer_id": "repow-a-1" }), "no_protocol_cancel_adapter"),
    ] {
        let id = world.create(body).await;
        world.patch(&id, json!({ "state": "running" })).send().await.ok();
        let status = world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok()["status"].clone();
        assert_eq!(status["state"], "running");
        let told = &status["protocol_cancel"];
        assert_eq!((&told["attempted"], &told["status"]), (&json!(false), &json!("unavailable")));
        assert_eq!(told["reason"], reason);
        let done = world.patch(&id, json!({ "state": "completed" })).send().await.ok();
        assert_eq!(done["status"]["state"], "completed", "what completes before it is stopped has completed");
    }
}

// conforms: R72
#[tokio::test]
async fn late_cancel_changes_nothing_and_answers_the_same_every_time() {
    let world = world().await;
    let id = world.create(json!({})).await;
    world.patch(&id, json!({ "state": "completed" })).send().await.ok();
    let before = world.status(&id).await;
    for _ in 0..2 {
        let answer = world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok();
        assert_eq!(answer["status"], before);
        assert_eq!(
            answer["status"]["cancel_requested"], false,
            "the answer tells that nothing was asked of anybody"
        );
    }
}

#[tokio::test]
async fn cancel_needs_a_body_that_is_an_object_and_a_job_that_is_there() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let problem =
        world.call("POST", &format!("/jobs/{id}/cancel")).send().await.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["loc"], json!(["body"]));
    world
        .post(&format!("/jobs/{id}/cancel"), json!({ "why": 1 }))
        .send()
        .await
        .problem(422, "invalid_request");
    world.post("/jobs/work-0/cancel", json!({})).send().await.problem(404, "not_found");
    world.post("/jobs/cal-0/cancel", json!({})).send().await.problem(404, "not_found");
    assert_eq!(world.status(&id).await["state"], "queued");
}
