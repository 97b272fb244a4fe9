//! `/claims`: leases as a protocol of their own.

use api::Role;
use serde_json::{Value, json};

use crate::given::{Answer, World, assert_fits, world};

impl World {
    async fn claim(&self, asked: Value) -> Answer {
        self.post("/claims", asked).send().await
    }

    async fn swap(&self, what: &str, id: &str, owner: &str, version: u64) -> Answer {
        let body = json!({ "owner_id": owner, "claim_version": version });
        self.post(&format!("/claims/WORKORDER/{id}/{what}"), body).send().await
    }
}

fn by(owner: &str) -> Value {
    json!({ "resource_type": "WORKORDER", "owner_id": owner })
}

// conforms: A18 A19 A22 A66
#[tokio::test]
async fn oldest_is_claimed_first_and_every_claim_is_as_its_schema_says() {
    let world = world().await;
    let first = world.create(json!({})).await;
    world.clock.advance_seconds(1);
    let second = world.create(json!({})).await;
    for expected in [&first, &second] {
        let claim = world.claim(by("runner-1")).await.ok()["claim"].clone();
        assert_fits("claim-record", &claim);
        assert_eq!(claim["resource_id"], **expected);
        assert_eq!(
            (&claim["resource_type"], &claim["owner_id"], &claim["claim_version"]),
            (&json!("WORKORDER"), &json!("runner-1"), &json!(0))
        );
        assert_eq!(claim["heartbeat_at"], "2026-01-01T00:00:01.000000+00:00");
        assert_eq!(claim["lease_expires_at"], "2026-01-01T00:01:01.000000+00:00");
    }
    assert_eq!(world.claim(by("runner-1")).await.ok()["claim"], json!(null), "nothing is left");
}

/// A claim of the next job of a lane leads to whatever waits there: its holder must be able to end it.
#[tokio::test]
async fn holder_of_a_claimed_private_job_renews_and_settles_it() {
    let world = world().await;
    let holder = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let private = json!({ "visibility": "private", "circle": "press" });
    let id = world.create(private).await;
    let claim = world.post("/claims", by("runner-1")).bearer(&holder).send().await.ok()["claim"].clone();
    assert_eq!(claim["resource_id"], json!(id));
    let send = async |what: &str, version: u64, owner: &str| {
        let body = json!({ "owner_id": owner, "claim_version": version, "reason": "done" });
        let body =
            if what == "settle" { body } else { json!({ "owner_id": owner, "claim_version": version }) };
        world.post(&format!("/claims/WORKORDER/{id}/{what}"), body).bearer(&holder).send().await
    };
    send("renew", 7, "runner-1").await.problem(404, "not_found");
    send("renew", 0, "runner-2").await.problem(404, "not_found");
    assert_eq!(send("renew", 0, "runner-1").await.ok()["claim"]["claim_version"], 1);
    world.get(&format!("/jobs/{id}")).bearer(&holder).send().await.problem(404, "not_found");
    send("settle", 1, "runner-1").await.ok();
    assert_eq!(world.status(&id).await["state"], "completed");
    send("release", 2, "runner-1").await.problem(404, "not_found");
}

// conforms: A18 A24 A28
#[tokio::test]
async fn claim_is_renewed_by_compare_and_swap_and_taken_over_when_its_lease_has_ended() {
    let world = world().await;
    let id = world.create(json!({})).await;
    world.claim(by("runner-1")).await.ok();
    let mut named = by("runner-2");
    named["resource_id"] = json!(id);
    world.claim(named.clone()).await.problem(409, "lease_held");
    let renewed = world.swap("renew", &id, "runner-1", 0).await.ok();
    assert_eq!(renewed["claim"]["claim_version"], 1);
    assert_fits("claim-record", &renewed["claim"]);
    for (owner, version) in [("runner-1", 0), ("runner-2", 1), ("runner-1", 2), ("runner-1", u64::MAX)] {
        world.swap("renew", &id, owner, version).await.problem(409, "claim_lost");
        world.swap("release", &id, owner, version).await.problem(409, "claim_lost");
    }
    world.clock.advance_seconds(59);
    world.claim(named.clone()).await.problem(409, "lease_held");
    world.clock.advance_seconds(1);
    // The node itself may be looking at it just now: whoever waits gets it.
    let mut waits = by("runner-2");
    waits["wait_seconds"] = json!(60);
    let taken = world.claim(waits).await.ok()["claim"].clone();
    assert_fits("claim-record", &taken);
    assert_eq!((&taken["resource_id"], &taken["owner_id"]), (&json!(id), &json!("runner-2")));
    assert!(taken["claim_version"].as_u64().unwrap() > 1, "{taken}");
    world.swap("renew", &id, "runner-1", 1).await.problem(409, "claim_lost");
    let version = taken["claim_version"].as_u64().expect("it is a number");
    let released = world.swap("release", &id, "runner-2", version).await.ok();
    assert_fits("claim-record", &released["claim"]);
}

// conforms: A29 A35
#[tokio::test]
async fn only_the_holder_ends_what_it_has_claimed_and_what_is_over_is_claimed_by_nobody() {
    let world = world().await;
    let id = world.create(json!({})).await;
    world.claim(by("runner-1")).await.ok();
    let done = |owner: &str, version: u64| json!({ "state": "completed", "result_summary": owner, "claim": { "owner_id": owner, "claim_version": version } });
    for (owner, version) in [("runner-1", 7), ("runner-2", 0)] {
        world.patch(&id, done(owner, version)).send().await.problem(409, "lease_held");
    }
    assert_eq!(world.status(&id).await["state"], "queued");
    world.patch(&id, done("runner-1", 0)).send().await.ok();
    assert_eq!(world.swap("release", &id, "runner-1", 0).await.ok()["claim"]["claim_version"], 0);
    let mut named = by("runner-2");
    named["resource_id"] = json!(id);
    world.claim(named).await.problem(409, "refused");
    assert_eq!(world.claim(by("runner-2")).await.ok()["claim"], json!(null));
    assert_eq!(world.status(&id).await["result_summary"], "runner-1");
}

#[tokio::test]
async fn what_its_holder_says_of_work_meanwhile_keeps_the_claim() {
    let world = world().await;
    let id = world.create(json!({})).await;
    world.claim(by("runner-1")).await.ok();
    for (version, state) in [(0, "queued"), (1, "running"), (2, "blocked"), (3, "running")] {
        let said = json!({ "state": state, "progress_note": "on it",
            "claim": { "owner_id": "runner-1", "claim_version": version } });
        world.patch(&id, said).send().await.ok();
        let mut other = by("runner-2");
        other["resource_id"] = json!(id);
        world.claim(other).await.problem(409, "lease_held");
        let pulled = world.post("/jobs/next", json!({ "wait_seconds": 0 })).send().await.ok();
        assert_eq!(pulled["job"], json!(null), "{state}");
        world.patch(&id, json!({ "state": "completed" })).send().await.problem(409, "lease_held");
        assert_eq!(
            world.swap("renew", &id, "runner-1", version).await.ok()["claim"]["claim_version"],
            version + 1
        );
    }
}

#[tokio::test]
async fn what_is_released_can_be_claimed_at_once_and_who_waits_gets_it() {
    let world = world().await;
    let id = world.create(json!({})).await;
    world.claim(by("runner-1")).await.ok();
    let mut waits = by("runner-2");
    waits["wait_seconds"] = json!(60);
    let released = async {
        while world.daemon.pulls().count() == 0 {
            tokio::task::yield_now().await;
        }
        world.swap("release", &id, "runner-1", 0).await.ok();
    };
    let (claimed, ()) = tokio::join!(world.claim(waits), released);
    let claim = claimed.ok()["claim"].clone();
    assert_eq!((&claim["resource_id"], &claim["owner_id"]), (&json!(id), &json!("runner-2")));
}

// conforms: A26 A66
#[tokio::test]
async fn what_cannot_be_claimed_is_refused_with_a_reason() {
    let world = world().await;
    let id = world.create(json!({ "circle": "press" })).await;
    let kitchen = world.token(Role::Peer, json!({ "circle": "kitchen" })).await;
    let mut named = by("runner-1");
    named["resource_id"] = json!(id);
    world.post("/claims", named.clone()).bearer(&kitchen).send().await.problem(404, "not_found");
    for (key, value) in [
        ("resource_type", json!("GIANT")),
        ("owner_id", json!("")),
        ("owner_id", json!("x".repeat(65))),
        ("lease_seconds", json!(29)),
        ("lease_seconds", json!(121)),
        ("lease_seconds", json!(-1)),
        ("unknown", json!(1)),
    ] {
        let mut asked = named.clone();
        asked[key] = value.clone();
        assert_eq!(world.claim(asked).await.status, 422, "{key}: {value}");
    }
    named["resource_id"] = json!("work-none");
    world.claim(named).await.problem(404, "not_found");
    let event = json!({ "resource_type": "EVENT", "resource_id": "e-1", "owner_id": "runner-1" });
    world.claim(event).await.problem(404, "not_found");
    let oldest = json!({ "resource_type": "EVENT", "owner_id": "runner-1" });
    assert_eq!(world.claim(oldest).await.ok()["claim"], json!(null));
}

#[tokio::test]
async fn claim_by_id_whose_holder_is_never_heard_of_ends_with_its_lease() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let mut named = by("runner-1");
    named["resource_id"] = json!(id);
    named["lease_seconds"] = json!(30);
    world.claim(named).await.ok();
    let mut waits = by("runner-2");
    waits["wait_seconds"] = json!(60);
    world.clock.advance_seconds(30);
    assert_eq!(world.claim(waits).await.ok()["claim"]["resource_id"], json!(id));
}

#[tokio::test]
async fn nobody_reports_beside_a_claim_and_work_of_an_executor_is_not_claimed() {
    let world = world().await;
    let id = world.create(json!({})).await;
    world.claim(by("runner-1")).await.ok();
    for report in [json!({ "state": "completed" }), json!({ "state": "queued", "progress_note": "mine?" })] {
        world.patch(&id, report).send().await.problem(409, "lease_held");
    }
    assert_eq!(world.swap("renew", &id, "runner-1", 0).await.ok()["claim"]["claim_version"], 1);
    for created in [json!({ "executor": "echo" }), json!({ "due_at": "2026-01-01T01:00:00Z" })] {
        let mut named = by("runner-1");
        named["resource_id"] = json!(world.create(created.clone()).await);
        world.claim(named).await.problem(409, "refused");
    }
}

#[tokio::test]
async fn claim_by_id_waits_until_its_holder_gives_it_back() {
    let world = world().await;
    let id = world.create(json!({})).await;
    world.claim(by("runner-1")).await.ok();
    let mut waits = by("runner-2");
    waits["resource_id"] = json!(id);
    waits["wait_seconds"] = json!(30);
    let (taken, released) = tokio::join!(world.claim(waits), world.swap("release", &id, "runner-1", 0));
    released.ok();
    assert_eq!(taken.ok()["claim"]["owner_id"], "runner-2");
}
