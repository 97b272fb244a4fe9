//! Workers that pulled a job and are not heard of any more; runs of jobs that wait for one.

use api::Role;
use domain::RetryPolicy;
use serde_json::{Value, json};
use store::Store;

use crate::given::{World, world};

/// More than the lease of a worker.
const LEASE_AND_MORE: u32 = 61;
/// More than the longest wait before the next attempt.
const BACKOFF_AND_MORE: u32 = 61;

impl World {
    /// A worker pulls the job and is never heard of again.
    async fn lost(&self, worker: &str) -> String {
        let (_, attempt) = self.pulled(json!({ "worker_id": worker, "lanes": ["print"] })).await;
        self.clock.advance_seconds(LEASE_AND_MORE);
        attempt
    }

    async fn reasons(&self, id: &str) -> Vec<(String, String)> {
        let why = self.get(&format!("/jobs/{id}/why")).send().await.ok();
        let text = |reason: &Value, key: &str| reason[key].as_str().expect("it is text").to_owned();
        let reasons = why["reasons"].as_array().expect("a list");
        reasons.iter().map(|reason| (text(reason, "code"), text(reason, "detail"))).collect()
    }

    async fn store_facts(&self) -> usize {
        self.store.facts_after(0, 1_000).await.expect("they can be read").len()
    }

    async fn error(&self, id: &str) -> Value {
        self.get(&format!("/jobs/{id}/result")).send().await.ok()["result"]["error"].clone()
    }
}

#[tokio::test]
async fn pulled_job_is_handed_out_again_after_a_lost_worker() {
    let world = world().await;
    let id = world.create(json!({ "lane": "print" })).await;
    for (worker, state) in [("one", "queued"), ("two", "queued"), ("three", "unavailable")] {
        world.lost(worker).await;
        world.until(&id, state).await;
        world.clock.advance_seconds(BACKOFF_AND_MORE);
    }
    assert_eq!(world.status(&id).await["runner"]["attempt_count"], 3);
    assert_eq!(world.pull(json!({ "lanes": ["print"], "wait_seconds": 0 })).await, json!(null));
}

#[tokio::test]
async fn failure_that_a_worker_reports_is_final_by_default() {
    let world = world().await;
    let id = world.create(json!({ "lane": "print" })).await;
    let (_, attempt) = world.pulled(json!({ "lanes": ["print"] })).await;
    world.tell(&id, "fail", json!({ "attempt_id": attempt, "retryable": true })).await.ok();
    assert_eq!(world.status(&id).await["state"], "failed");
}

#[tokio::test]
async fn job_that_is_begun_once_is_not_handed_out_again() {
    let world = world().await;
    for once in [json!({ "repeatable": false }), json!({ "retry": { "max_attempts": 1 } })] {
        let mut asked = once;
        asked["lane"] = json!("print");
        let id = world.create(asked).await;
        world.lost("one").await;
        world.until(&id, "unavailable").await;
    }
    let both = json!({ "repeatable": false, "retry": { "max_attempts": 2 } });
    world.post("/jobs", both).send().await.problem(422, "invalid_request");
}

#[tokio::test]
async fn wait_between_attempts_may_be_given_without_their_number() {
    let world = world().await;
    assert_eq!(RetryPolicy::ONCE.backoff_seconds, 1, "else the next line shows nothing");
    let waits = json!({ "lane": "print", "retry": { "backoff_seconds": 3600, "max_backoff_seconds": 3600 } });
    let id = world.create(waits).await;
    world.lost("one").await;
    world.until(&id, "queued").await;
    world.clock.advance_seconds(BACKOFF_AND_MORE);
    assert_eq!(world.pull(json!({ "lanes": ["print"], "wait_seconds": 0 })).await, json!(null));
    assert_eq!(world.reasons(&id).await[0].0, "backing_off");
}

// conforms: R53
#[tokio::test]
async fn lost_worker_is_named_with_the_time_when_it_was_last_heard_of() {
    let world = world().await;
    let id = world.create(json!({ "lane": "print", "circle": "shop", "repeatable": false })).await;
    let token = world.token(Role::Peer, json!({ "peer_id": "peer-shop", "circle": "shop" })).await;
    let asked = json!({ "worker_id": "press-1", "lanes": ["print"] });
    let job = world.post("/jobs/next", asked).bearer(&token).send().await.ok()["job"].clone();
    world.clock.advance_seconds(20);
    let beat = json!({ "attempt_id": job["attempt_id"] });
    world.post(&format!("/jobs/{id}/heartbeat"), beat).bearer(&token).send().await.ok();
    world.clock.advance_seconds(LEASE_AND_MORE);
    world.until(&id, "unavailable").await;
    let told =
        "the worker press-1 of the peer peer-shop was lost; it was last heard of at 2026-01-01T00:00:20Z";
    let error = world.error(&id).await;
    assert_eq!((&error["code"], &error["message"]), (&json!("lease_lost"), &json!(told)));
    assert_eq!(error["limits"][0]["value"], "1 attempt", "{error}");
    let (code, why) = world.reasons(&id).await.remove(0);
    assert_eq!(code, "over");
    assert!(why.contains(told), "{why}");
    assert!(!why.contains("daemon"), "{why}");
}

#[tokio::test]
async fn lost_worker_is_named_also_while_a_cancel_is_pending() {
    let world = world().await;
    let id = world.create(json!({ "lane": "print" })).await;
    world.pulled(json!({ "worker_id": "press-1", "lanes": ["print"] })).await;
    world.clock.advance_seconds(LEASE_AND_MORE - 2);
    // Its own time limit is longer than what is left of the lease.
    world.tell(&id, "cancel", json!({})).await.ok();
    world.clock.advance_seconds(2);
    let status = world.until(&id, "cancelled").await;
    assert_eq!(status["state_reason"], "cancel_unconfirmed_lease_lost");
    let told = "the worker press-1 was lost; it was last heard of at 2026-01-01T00:00:00Z";
    let error = world.error(&id).await;
    assert_eq!((&error["code"], &error["message"]), (&json!("lease_lost"), &json!(told)));
    let reasons = world.reasons(&id).await;
    assert!(reasons.iter().any(|(code, why)| code == "over" && why.contains(told)), "{reasons:?}");
}

#[tokio::test]
async fn why_names_the_lost_worker_while_the_job_waits_for_the_next() {
    let world = world().await;
    let id = world.create(json!({ "lane": "print" })).await;
    world.lost("press-1").await;
    world.until(&id, "queued").await;
    world.clock.advance_seconds(BACKOFF_AND_MORE);
    let told = "the worker press-1 was lost; it was last heard of at 2026-01-01T00:00:00Z";
    // The daemon holds it for a moment while it makes it ready again.
    let mut reasons = world.reasons(&id).await;
    while reasons.iter().any(|(code, _)| code == "claimed") {
        tokio::task::yield_now().await;
        reasons = world.reasons(&id).await;
    }
    assert!(reasons.iter().any(|(code, why)| code == "worker_lost" && why.contains(told)), "{reasons:?}");
}

#[tokio::test]
async fn error_of_a_lost_worker_goes_when_its_late_report_lands() {
    let world = world().await;
    let id = world.create(json!({ "lane": "print", "repeatable": false })).await;
    let attempt = world.lost("press-1").await;
    world.until(&id, "unavailable").await;
    assert_ne!(world.error(&id).await, json!(null));
    world.tell(&id, "complete", json!({ "attempt_id": attempt, "result": 12 })).await.ok();
    assert_eq!(world.status(&id).await["state"], "completed");
    assert_eq!(world.error(&id).await, json!(null));
}

#[tokio::test]
async fn run_of_a_job_that_waits_for_a_puller_changes_nothing() {
    let world = world().await;
    let named = json!([{ "lane": "print" }, { "label": "gpu" }, { "path": "/srv/press" }, { "assigned_peer_id": "peer-one" }]);
    for asked in named.as_array().expect("a list") {
        let id = world.create(asked.clone()).await;
        let (before, facts) = (world.status(&id).await, world.store_facts().await);
        let refused = world.tell(&id, "run", json!({})).await.problem(409, "waits_for_puller");
        let told = refused["detail"].as_str().expect("it is text");
        assert!(told.contains("start a worker that pulls it"), "{told}");
        assert_eq!(world.status(&id).await, before);
        assert_eq!(world.store_facts().await, facts);
    }
}

#[tokio::test]
async fn job_for_anyone_is_not_run_while_a_puller_is_in_sight() {
    let world = world().await;
    assert_eq!(world.pull(json!({ "wait_seconds": 0 })).await, json!(null));
    let id = world.create(json!({ "circle": "press" })).await;
    let ours = world.create(json!({})).await;
    world.tell(&ours, "run", json!({})).await.problem(409, "waits_for_puller");
    // Nobody pulls in this circle, and a worker that was there long ago is not in sight.
    assert_eq!(world.tell(&id, "run", json!({})).await.ok()["status"]["state"], "unavailable");
    assert_eq!(world.pulled(json!({ "wait_seconds": 0 })).await.0, ours);
    let later = world.create(json!({})).await;
    world.clock.advance_seconds(91);
    let status = world.tell(&later, "run", json!({})).await.ok()["status"].clone();
    assert_eq!(
        (&status["state"], &status["state_reason"]),
        (&json!("unavailable"), &json!("missing_target"))
    );
}

#[tokio::test]
async fn registered_peer_that_is_there_is_in_sight() {
    let world = world().await;
    let asked = json!({ "peer_id": "peer-one", "display_name": "one" });
    world.post("/peers", asked).send().await.ok();
    let waiting = world.post("/jobs/next", json!({ "peer_id": "peer-one", "wait_seconds": 60 })).send();
    let refused = async {
        while world.daemon.pulls().count() == 0 {
            tokio::task::yield_now().await;
        }
        let id = world.create(json!({})).await;
        world.tell(&id, "run", json!({})).await.problem(409, "waits_for_puller");
        world.create(json!({ "assigned_peer_id": "peer-one" })).await
    };
    let (handed, id) = tokio::join!(waiting, refused);
    assert_eq!(handed.ok()["job"]["job_id"], id);
}

#[tokio::test]
async fn job_that_was_run_without_a_target_is_not_lost() {
    let world = world().await;
    let id = world.create(json!({})).await;
    assert_eq!(world.tell(&id, "run", json!({})).await.ok()["status"]["state"], "unavailable");
    assert_eq!(world.tell(&id, "retry", json!({})).await.ok()["status"]["state"], "queued");
    assert_eq!(world.pulled(json!({ "wait_seconds": 0 })).await.0, id);
}

#[tokio::test]
async fn why_names_the_circle_whose_workers_are_given_the_job() {
    let world = world().await;
    let id = world.create(json!({ "lane": "print", "circle": "press" })).await;
    let elsewhere = world.token(Role::Peer, json!({ "circle": "kitchen", "peer_id": "peer-cook" })).await;
    let ours = world.token(Role::Viewer, json!({ "circle": "press" })).await;
    let asked = json!({ "lanes": ["print"], "wait_seconds": 5 });
    let waiting = world.post("/jobs/next", asked).bearer(&elsewhere).send();
    let told = async |token: &str| {
        let why = world.get(&format!("/jobs/{id}/why")).bearer(token).send().await.ok();
        let reasons = why["reasons"].as_array().expect("a list").clone();
        let circle = reasons.iter().find(|reason| reason["code"] == "circle").expect("it is told");
        circle["detail"].as_str().expect("it is text").to_owned()
    };
    let explained = async {
        while world.daemon.pulls().count() == 0 {
            tokio::task::yield_now().await;
        }
        (told(&world.admin).await, told(&ours).await)
    };
    let (handed, (all, own)) = tokio::join!(waiting, explained);
    assert_eq!(handed.ok()["job"], json!(null));
    let only = "only workers of the circle \"press\" are given this job";
    assert_eq!(own, only, "who sees one circle hears of no other");
    assert_eq!(all, format!("{only}; 1 that asks for such work is waiting in another circle"));
}
