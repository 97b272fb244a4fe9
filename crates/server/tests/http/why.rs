//! Why a job is not moving.

use serde_json::{Value, json};

use crate::given::{World, working_world, world};

async fn why(world: &World, id: &str) -> (Vec<String>, Value) {
    let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
    assert_eq!((why["job_id"].as_str(), why["work_id"].as_str()), (Some(id), Some(id)));
    let codes = why["reasons"].as_array().expect("a list").iter();
    (
        codes.map(|reason| reason["code"].as_str().expect("a code").to_owned()).collect(),
        why["earliest_at"].clone(),
    )
}

#[tokio::test]
async fn queued_jobs_say_what_they_wait_for() {
    let world = world().await;
    for (body, reasons, earliest) in [
        (json!({}), vec!["names_nobody"], json!(null)),
        (json!({ "assigned_peer_id": "p" }), vec!["waits_for_peer"], json!(null)),
        (json!({ "executor": "echo" }), vec!["ready"], json!("2026-01-01T00:00:00.000000+00:00")),
        (
            json!({ "executor": "echo", "due_at": "2026-01-01T01:00:00Z" }),
            vec!["not_due"],
            json!("2026-01-01T01:00:00.000000+00:00"),
        ),
        (
            json!({ "executor": "nobody", "due_at": "2026-01-01T01:00:00Z", "expires_at": "2026-01-01T00:30:00Z" }),
            vec!["not_due", "executor_missing", "expires"],
            json!("2026-01-01T00:30:00.000000+00:00"),
        ),
    ] {
        let id = world.create(body.clone()).await;
        assert_eq!(
            why(&world, &id).await,
            (reasons.into_iter().map(str::to_owned).collect(), earliest),
            "{body}"
        );
    }
}

#[tokio::test]
async fn full_lane_is_named() {
    let world = working_world().await;
    let first = world.create(json!({ "executor": "stays", "lane": "narrow" })).await;
    world.until(&first, "dispatching").await;
    let second = world.create(json!({ "executor": "stays", "lane": "narrow" })).await;
    assert_eq!(why(&world, &second).await.0, ["lane_full"]);
    assert_eq!(why(&world, &first).await.0, ["attempt_holds_it"]);
}

#[tokio::test]
async fn every_pause_and_end_is_explained() {
    let world = world().await;
    let (id, attempt) = world.delivered().await;
    let lease_ends = json!("2026-01-01T00:01:00.000000+00:00");
    assert_eq!(why(&world, &id).await, (vec!["attempt_holds_it".to_owned()], lease_ends));
    world.patch(&id, json!({ "state": "awaiting_input", "attempt_id": attempt })).send().await.ok();
    assert_eq!(why(&world, &id).await.0, ["awaiting_input"]);
    world.patch(&id, json!({ "state": "blocked", "attempt_id": attempt })).send().await.ok();
    assert_eq!(why(&world, &id).await.0, ["blocked"]);
    world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok();
    let until = json!("2026-01-01T00:00:30.000000+00:00");
    assert_eq!(why(&world, &id).await, (vec!["cancel_pending".to_owned(), "blocked".to_owned()], until));
    world.patch(&id, json!({ "state": "failed", "attempt_id": attempt })).send().await.ok();
    assert_eq!(why(&world, &id).await, (vec!["over".to_owned()], json!(null)));
    let unmanaged = world.create(json!({})).await;
    world.patch(&unmanaged, json!({ "state": "running" })).send().await.ok();
    assert_eq!(why(&world, &unmanaged).await.0, ["kept_by_its_doer"]);
}
