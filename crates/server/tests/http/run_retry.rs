//! Run and retry.

use serde_json::json;

use crate::given::{working_world, world};

// conforms: R15
#[tokio::test]
async fn run_ignores_the_due_time_and_answers_when_the_attempt_has_left_dispatching() {
    let world = world().await;
    let id = world.create(json!({ "executor": "echo", "due_at": "2027-01-01T00:00:00Z" })).await;
    let answer = world.call("POST", &format!("/jobs/{id}/run")).send().await.ok();
    assert_eq!(answer["status"]["state"], "completed");
    let id = world.create(json!({ "executor": "fails" })).await;
    for attempt in 1..=2 {
        let answer = world
            .post(&format!("/work/{id}/run"), json!({ "requested_by_peer_id": "ada" }))
            .send()
            .await
            .ok();
        assert_eq!(answer["status"]["state"], "failed");
        assert_eq!(answer["status"]["runner"]["attempt_count"], attempt);
    }
}

#[tokio::test]
async fn paused_job_keeps_its_place_and_nobody_begins_it() {
    let world = working_world().await;
    let order =
        async |id: &str, verb: &str, body| world.post(&format!("/jobs/{id}/{verb}"), body).send().await;
    let later = json!({ "executor": "echo", "due_at": "2026-01-01T00:00:10Z" });
    let (paused, pulled) = (world.create(later).await, world.create(json!({ "lane": "fold" })).await);
    for id in [&paused, &pulled] {
        let body = json!({ "reason": "cleaning", "requested_by_peer_id": "ada" });
        let first = order(id, "pause", body.clone()).await.ok();
        assert_eq!(order(id, "pause", body).await.ok(), first, "again changes nothing");
        order(id, "run", json!({})).await.problem(409, "paused");
        let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
        let reason = why["reasons"].as_array().unwrap().iter().find(|reason| reason["code"] == "paused");
        let (detail, since) = (&reason.unwrap()["detail"], &reason.unwrap()["until"]);
        assert_eq!(*since, "2026-01-01T00:00:00.000000+00:00");
        assert!(detail.as_str().unwrap().contains("ada") && detail.as_str().unwrap().contains("cleaning"));
    }
    world.clock.advance_seconds(60);
    let next = async || {
        let pull = json!({ "lanes": ["fold"], "wait_seconds": 0 });
        world.post("/jobs/next", pull).send().await.ok()["job"]["job_id"].clone()
    };
    assert_eq!((next().await, world.status(&paused).await["state"].clone()), (json!(null), json!("queued")));
    let younger = world.create(json!({ "lane": "fold" })).await;
    order(&pulled, "resume", json!({})).await.ok();
    assert_eq!((next().await, next().await), (json!(pulled), json!(younger)), "it kept its place");
    order(&pulled, "pause", json!({})).await.problem(409, "not_pausable");
    let long = json!({ "reason": "x".repeat(4_097) });
    order(&paused, "resume", long).await.problem(422, "too_large");
    order(&paused, "resume", json!({})).await.ok();
    world.until(&paused, "completed").await;
    let mut nameless = world.create(json!({ "lane": "glue" })).await;
    order(&nameless, "pause", json!({})).await.ok();
    nameless = world.get(&format!("/jobs/{nameless}/why")).send().await.body;
    assert!(nameless.contains("token:"), "who paused it is said of every caller: {nameless}");
    order(&paused, "pause", json!({})).await.problem(409, "not_pausable");
    assert_eq!(order(&paused, "resume", json!({})).await.ok()["status"]["state"], "completed");
}

// conforms: R48 R49
#[tokio::test]
async fn work_that_was_handed_over_is_delivered() {
    let world = world().await;
    let (id, attempt) = world.delivered().await;
    let status = world.status(&id).await;
    assert_eq!(status["state_reason"], "delivered");
    let shown = &status["runner"]["attempts"][0];
    assert_eq!((&shown["status"], &shown["delivery_state"]), (&json!("delivered"), &json!("delivered")));
    // Only the executor's own word makes it running.
    world.clock.advance_seconds(5);
    assert_eq!(world.status(&id).await["state"], "delivered");
    assert_eq!(world.beat(&id, &attempt).await["state"], "running");
    assert_eq!(world.status(&id).await["state"], "running");
}

// conforms: R16 R17 R19
#[tokio::test]
async fn retry_makes_a_new_attempt_of_failed_or_delivered_work_and_keeps_the_earlier_ones() {
    let world = world().await;
    let (id, first) = world.delivered().await;
    // Only who asks for a retry takes it from whoever has it.
    world.call("POST", &format!("/jobs/{id}/run")).send().await.problem(409, "not_runnable");
    assert_eq!(world.status(&id).await["runner"]["attempt_count"], 1);
    let answer = world.call("POST", &format!("/jobs/{id}/retry")).send().await.ok();
    let runner = &answer["status"]["runner"];
    assert_eq!(runner["attempt_count"], 2);
    let alias = server::attempt_alias(&first);
    assert_eq!(runner["attempts"][0]["attempt_id"], alias.as_str());
    assert_eq!(runner["attempts"][1]["trigger"], "retry");
    assert_ne!(runner["current_attempt_id"], alias.as_str());
    let late = json!({ "state": "completed", "attempt_id": first });
    world.patch(&id, late).send().await.problem(409, "stale_attempt");

    let id = world.create(json!({ "executor": "fails" })).await;
    world.call("POST", &format!("/jobs/{id}/run")).send().await.ok();
    let answer = world.call("POST", &format!("/work/{id}/retry")).send().await.ok();
    let runner = &answer["status"]["runner"];
    assert_eq!(runner["attempt_count"], 2);
    for attempt in 0..2 {
        assert_eq!(runner["attempts"][attempt]["status"], "failed");
    }
}

// conforms: R15 R16
#[tokio::test]
async fn unavailable_work_runs_again_when_somebody_asks() {
    let world = world().await;
    for how in ["run", "retry"] {
        let body = json!({ "executor": "hands_over", "retry": { "max_attempts": 1 } });
        let id = world.create(body).await;
        world.call("POST", &format!("/jobs/{id}/run")).send().await.ok();
        world.clock.advance_seconds(61);
        world.until(&id, "unavailable").await;
        let answer = world.call("POST", &format!("/jobs/{id}/{how}")).send().await.ok();
        let runner = &answer["status"]["runner"];
        assert_eq!((&answer["status"]["state"], &runner["attempt_count"]), (&json!("delivered"), &json!(2)));
        assert_eq!(runner["attempts"][0]["status"], "unavailable");
    }
}

// conforms: R53
#[tokio::test]
async fn job_that_names_nobody_is_unavailable_once_it_is_run() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let answer = world.call("POST", &format!("/jobs/{id}/run")).send().await.ok();
    assert_eq!(answer["status"]["state"], "unavailable");
    assert_eq!(answer["status"]["state_reason"], "missing_target");
}

#[tokio::test]
async fn states_that_cannot_be_run_or_retried_are_a_conflict() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let problem = world.call("POST", &format!("/jobs/{id}/retry")).send().await.problem(409, "not_retryable");
    assert_eq!(problem["detail"], "Job cannot be retried from state queued");
    world.patch(&id, json!({ "state": "completed" })).send().await.ok();
    let problem = world.call("POST", &format!("/jobs/{id}/run")).send().await.problem(409, "not_runnable");
    assert_eq!(problem["detail"], "Job cannot be run from state completed");
    world.call("POST", &format!("/jobs/{id}/retry")).send().await.problem(409, "not_retryable");
    world.call("POST", "/jobs/work-0/run").send().await.problem(404, "not_found");
    let problem = world.call("POST", "/jobs/cal-0/run").send().await.problem(409, "recurring_template");
    assert_eq!(problem["detail"], "Recurring job templates cannot be run");
    let problem = world.call("POST", "/jobs/cal-0/retry").send().await.problem(409, "recurring_template");
    assert_eq!(problem["detail"], "Recurring job templates cannot be retried");
}

#[tokio::test]
async fn job_whose_cancel_is_pending_is_not_retried() {
    let world = world().await;
    let (id, _) = world.delivered().await;
    world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok();
    world.call("POST", &format!("/jobs/{id}/retry")).send().await.problem(409, "cancel_pending");
}

// conforms: R107
#[tokio::test]
async fn exactly_one_of_many_who_run_a_job_at_once_gets_it() {
    let world = world().await;
    let id = world.create(json!({ "executor": "hands_over" })).await;
    let path = format!("/jobs/{id}/run");
    let runs = (0..8).map(|_| world.call("POST", &path).send());
    let answers = futures::future::join_all(runs).await;
    let won = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(won, 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    assert_eq!(world.status(&id).await["runner"]["attempt_count"], 1);
}
