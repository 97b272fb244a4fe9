//! Why a job is not moving.

use serde_json::{Value, json};

use crate::given::{World, working_world, world, world_with_grace};

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
        (json!({ "assigned_peer_id": "peer-p" }), vec!["waits_for_peer", "peer_absent"], json!(null)),
        (json!({ "executor": "echo" }), vec!["not_dispatched"], json!(null)),
        (
            json!({ "executor": "echo", "due_at": "2026-01-01T01:00:00Z" }),
            vec!["not_due", "not_dispatched"],
            json!(null),
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
async fn failure_is_explained_in_its_own_words() {
    let world = world().await;
    let detail = async |id: &str| {
        let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
        why["reasons"][0]["detail"].as_str().unwrap().to_owned()
    };
    let failed = world.create(json!({ "executor": "fails" })).await;
    world.call("POST", &format!("/jobs/{failed}/run")).send().await.ok();
    let told = detail(&failed).await;
    assert!(told.starts_with("it is failed: out_of_paper: there is no paper; run or retry"), "{told}");
    let nobodys = world.create(json!({})).await;
    world.call("POST", &format!("/jobs/{nobodys}/run")).send().await.ok();
    let told = detail(&nobodys).await;
    assert!(told.starts_with("it is unavailable: missing_target: "), "{told}");
    let reported = world.create(json!({})).await;
    world.patch(&reported, json!({ "state": "failed", "error": { "message": "wet ink" } })).send().await.ok();
    assert!(detail(&reported).await.contains("wet ink"));
}

// conforms: R59 R100
#[tokio::test]
async fn executor_that_nobody_has_is_named_at_once_and_until_when_it_is_waited_for() {
    let world = world_with_grace(60).await;
    let made = world.post("/jobs", json!({ "executor": "nobody" })).send().await.ok();
    assert_eq!(made["status"]["state_reason"], "capability_missing");
    let id = made["job_id"].as_str().unwrap();
    assert_eq!(world.status(id).await["state_reason"], "capability_missing");
    let list = world.get("/jobs?view=summary").send().await.ok();
    assert_eq!(list["work"][0]["state_reason"], "capability_missing");
    let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
    let grace_ends = json!("2026-01-01T00:01:00.000000+00:00");
    assert_eq!((&why["reasons"][0]["code"], &why["earliest_at"]), (&json!("executor_missing"), &grace_ends));
    assert_eq!(why["reasons"][0]["until"], grace_ends);
    let told = why["reasons"][0]["detail"].as_str().unwrap();
    assert!(told.contains("\"nobody\"") && told.contains("config"), "{told}");
    world.clock.advance_seconds(60);
    let status = world.until(id, "failed").await;
    assert_eq!(status["state_reason"], "specialist_unregistered");
    let limit = &status["runner"]["limits"][0];
    assert_eq!(limit["limit"], "missing_executor_grace_seconds", "{status}");
}

#[tokio::test]
async fn lane_that_no_config_names_is_named_until_it_is_asked_all_the_same() {
    let world = world_with_grace(60).await;
    let id = world.create(json!({ "executor": "echo", "lane": "somewhere" })).await;
    let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
    assert_eq!(why["reasons"][0]["code"], "lane_unknown");
    assert_eq!(why["earliest_at"], "2026-01-01T00:01:00.000000+00:00");
    world.clock.advance_seconds(60);
    world.until(&id, "completed").await;
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
    world.patch(&id, json!({ "state": "blocked", "attempt_id": attempt })).send().await.ok();
    assert_eq!(why(&world, &id).await.0, ["blocked"]);
    let (asks, asking) = world.delivered().await;
    world.patch(&asks, json!({ "state": "awaiting_input", "attempt_id": asking })).send().await.ok();
    assert_eq!(why(&world, &asks).await.0, ["awaiting_input"]);
    world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok();
    let until = json!("2026-01-01T00:00:30.000000+00:00");
    assert_eq!(why(&world, &id).await, (vec!["cancel_pending".to_owned(), "blocked".to_owned()], until));
    world.patch(&id, json!({ "state": "failed", "attempt_id": attempt })).send().await.ok();
    assert_eq!(why(&world, &id).await, (vec!["over".to_owned()], json!(null)));
    let unmanaged = world.create(json!({})).await;
    world.patch(&unmanaged, json!({ "state": "running" })).send().await.ok();
    assert_eq!(why(&world, &unmanaged).await.0, ["kept_by_its_doer"]);
    world.patch(&unmanaged, json!({ "state": "completed" })).send().await.ok();
    let told = world.get(&format!("/jobs/{unmanaged}/why")).send().await.ok();
    assert_eq!(told["reasons"][0]["detail"], "it is completed");
}
