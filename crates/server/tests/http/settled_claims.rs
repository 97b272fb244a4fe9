//! Claims that are settled by their holders: events of types that the operator leaves to claimants, and workorders.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::Role;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::given::{World, world};

const READY: &str = "TICKET_READY";
const MANIFEST: &str = "MANIFEST_REQUESTED";
/// More than a lease.
const LEASE_AND_MORE: u32 = 61;
/// A waiting claimant asks for so long.
const WAIT_SECONDS: u32 = 30;

/// A daemon whose operator leaves two types to claimants. A pipeline listens to one of them all the same.
async fn left_to_claimants() -> World {
    let world = world().await;
    world.router.leave_to_claimants([READY, MANIFEST].map(str::to_owned));
    world.pipelines(
        "pipelines:\n  - name: ready\n    on: TICKET_READY\n    steps: [{ id: go, uses: noop }]\n",
    );
    world
}

impl World {
    async fn published(&self, kind: &str, number: usize) -> String {
        let sent =
            self.post("/events", json!({ "type": kind, "payload": { "number": number } })).send().await;
        sent.value()["event_id"].as_str().expect("it has an id").to_owned()
    }

    async fn shown(&self, id: &str) -> Value {
        self.get(&format!("/events/{id}")).send().await.ok()["event"].clone()
    }

    async fn claimed(&self, owner: &str, more: Value) -> Value {
        let mut asked = more;
        asked["resource_type"] = json!("EVENT");
        asked["owner_id"] = json!(owner);
        self.post("/claims", asked).send().await.ok()["claim"].clone()
    }

    async fn settle(&self, claim: &Value, more: Value) -> crate::given::Answer {
        let mut sent = more;
        sent["owner_id"] = claim["owner_id"].clone();
        sent["claim_version"] = claim["claim_version"].clone();
        let (kind, id) = (
            claim["resource_type"].as_str().expect("what the test needs is there"),
            claim["resource_id"].as_str().expect("what the test needs is there"),
        );
        self.post(&format!("/claims/{kind}/{id}/settle"), sent).send().await
    }
}

// conforms: A6 A22 A65
#[tokio::test]
async fn holder_of_an_event_settles_it_with_a_reason() {
    let world = left_to_claimants().await;
    let (first, second) = (world.published(READY, 1).await, world.published(READY, 2).await);
    let mut unclaimed = json!({ "resource_type": "EVENT", "resource_id": first });
    unclaimed["owner_id"] = json!("scheduler-1");
    unclaimed["claim_version"] = json!(0);
    world.settle(&unclaimed, json!({ "reason": "SCHEDULED" })).await.problem(409, "claim_lost");
    assert_eq!(world.shown(&first).await["status"], "waiting");
    let claim = world.claimed("scheduler-1", json!({})).await;
    assert_eq!(claim["resource_id"], json!(first), "the oldest, and one alone");
    let done = json!({ "reason": "SCHEDULED", "work_order_id": "work-7" });
    world.settle(&claim, done.clone()).await.ok();
    let event = world.shown(&first).await;
    assert_eq!((&event["status"], &event["settled_by"]), (&json!("processed"), &json!("claimants")));
    let processed = json!({ "reason": "SCHEDULED", "owner_id": "scheduler-1", "work_order_id": "work-7" });
    assert_eq!(event["processed"], processed);
    assert_eq!(event["routes"], json!([]), "a pipeline listens, and is not asked");
    world.settle(&claim, done).await.ok();
    world.settle(&claim, json!({ "reason": "BLOCKED" })).await.problem(409, "refused");
    assert_eq!(world.claimed("scheduler-1", json!({})).await["resource_id"], json!(second));
}

// conforms: A65
#[tokio::test]
async fn two_hundred_events_are_each_settled_once_by_eight_who_wait() {
    const EVENTS: usize = 200;
    let world = Arc::new(left_to_claimants().await);
    let mut claimers = JoinSet::new();
    for number in 0..8 {
        let world = world.clone();
        claimers.spawn(async move {
            let owner = format!("scheduler-{number}");
            let mut settled = Vec::new();
            loop {
                let claim = world.claimed(&owner, json!({ "wait_seconds": 2 })).await;
                if claim.is_null() {
                    return settled;
                }
                world.settle(&claim, json!({ "reason": "SCHEDULED" })).await.ok();
                settled.push(claim["resource_id"].as_str().expect("it has an id").to_owned());
            }
        });
    }
    for number in 0..EVENTS {
        world.published(READY, number).await;
    }
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(settled) = claimers.join_next().await {
        for id in settled.expect("no claimer panics") {
            *times.entry(id).or_default() += 1;
        }
    }
    assert_eq!((times.len(), times.values().max()), (EVENTS, Some(&1)));
    let page = world.get("/events?status=processed&limit=500").send().await.ok();
    assert_eq!(page["events"].as_array().expect("a list").len(), EVENTS);
}

// conforms: A32 A65
#[tokio::test]
async fn event_of_a_holder_that_is_gone_is_claimed_by_the_next() {
    let world = left_to_claimants().await;
    let id = world.published(READY, 1).await;
    let dead = world.claimed("scheduler-1", json!({})).await;
    assert_eq!(dead["resource_id"], json!(id));
    assert_eq!(world.claimed("scheduler-2", json!({})).await, json!(null), "it is held");
    world.clock.advance_seconds(LEASE_AND_MORE);
    let next = world.claimed("scheduler-2", json!({ "wait_seconds": WAIT_SECONDS })).await;
    assert_eq!(next["resource_id"], json!(id));
    world.settle(&dead, json!({ "reason": "SCHEDULED" })).await.problem(409, "claim_lost");
    assert_eq!(world.shown(&id).await["status"], "waiting");
    world.settle(&next, json!({ "reason": "BLOCKED" })).await.ok();
    assert_eq!(world.shown(&id).await["processed"]["owner_id"], "scheduler-2");
}

#[tokio::test]
async fn event_that_is_given_back_is_claimed_again_and_not_routed() {
    let world = left_to_claimants().await;
    let id = world.published(READY, 1).await;
    let claim = world.claimed("scheduler-1", json!({})).await;
    let fence = json!({ "owner_id": "scheduler-1", "claim_version": claim["claim_version"] });
    world.post(&format!("/claims/EVENT/{id}/release"), fence).send().await.ok();
    let next = world.claimed("scheduler-2", json!({ "wait_seconds": WAIT_SECONDS })).await;
    assert_eq!(next["resource_id"], json!(id));
    assert_eq!(world.shown(&id).await["status"], "waiting");
}

#[tokio::test]
async fn claimant_is_given_the_types_that_it_names_in_its_circle() {
    let world = left_to_claimants().await;
    let ready = world.published(READY, 1).await;
    let manifest = world.published(MANIFEST, 2).await;
    let elsewhere = json!({ "circle": "press", "event_types": [READY] });
    assert_eq!(world.claimed("one", elsewhere).await, json!(null));
    let claim = world.claimed("one", json!({ "event_types": [MANIFEST] })).await;
    assert_eq!(claim["resource_id"], json!(manifest));
    assert_eq!(world.claimed("one", json!({ "event_types": [MANIFEST] })).await, json!(null));
    assert_eq!(world.claimed("one", json!({})).await["resource_id"], json!(ready));
    let stranger = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let sent = json!({ "owner_id": "one", "claim_version": claim["claim_version"], "reason": "SCHEDULED" });
    let path = format!("/claims/EVENT/{manifest}/settle");
    world.post(&path, sent).bearer(&stranger).send().await.problem(404, "not_found");
}

#[tokio::test]
async fn event_of_another_type_is_still_routed() {
    let world = left_to_claimants().await;
    let id = world.published("tide", 1).await;
    while world.shown(&id).await["status"] == "waiting" {
        tokio::task::yield_now().await;
    }
    let event = world.shown(&id).await;
    assert_eq!((&event["status"], &event["settled_by"]), (&json!("no_route"), &json!("router")));
}

// conforms: A65
#[tokio::test]
async fn holder_of_a_workorder_settles_it_under_its_claim_alone() {
    let world = world().await;
    for (state, comes_to) in [(None, "completed"), (Some("failed"), "failed")] {
        let id = world.create(json!({})).await;
        let asked = json!({ "resource_type": "WORKORDER", "resource_id": id, "owner_id": "runner-1" });
        let claim = world.post("/claims", asked).send().await.ok()["claim"].clone();
        let mut stale = claim.clone();
        stale["claim_version"] = json!(claim["claim_version"].as_u64().unwrap() + 1);
        world.settle(&stale, json!({ "reason": "EXECUTED" })).await.problem(409, "claim_lost");
        assert_eq!(world.status(&id).await["state"], "queued");
        let mut said = json!({ "reason": "EXECUTED" });
        if let Some(state) = state {
            said["state"] = json!(state);
        }
        world.settle(&claim, said).await.ok();
        let status = world.status(&id).await;
        assert_eq!((&status["state"], &status["state_reason"]), (&json!(comes_to), &json!("EXECUTED")));
    }
}

#[tokio::test]
async fn unfit_settlement_of_a_claim_changes_nothing() {
    let world = left_to_claimants().await;
    let id = world.published(READY, 1).await;
    let claim = world.claimed("scheduler-1", json!({})).await;
    for wrong in [
        json!({ "reason": "" }),
        json!({ "reason": "x".repeat(300) }),
        json!({}),
        json!({ "reason": "SCHEDULED", "state": "completed" }),
        json!({ "reason": "SCHEDULED", "later": true }),
    ] {
        let refused = world.settle(&claim, wrong.clone()).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.body);
    }
    assert_eq!(world.shown(&id).await["status"], "waiting");
}
