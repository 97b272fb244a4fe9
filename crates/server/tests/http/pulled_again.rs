//! Pulled work that is handed out more than once: asked for again, gone on with after an answer, taken too long for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::given::{AuditLog, World, working_world, world};

const PRINT: &str = "print";

async fn created_in_lane(world: &World, more: Value) -> String {
    let mut asked = more;
    asked["lane"] = json!(PRINT);
    world.create(asked).await
}

fn from_lane() -> Value {
    json!({ "lanes": [PRINT] })
}

fn now_from_lane() -> Value {
    json!({ "lanes": [PRINT], "wait_seconds": 0 })
}

/// Somebody waits on this node.
async fn until_somebody_waits(world: &World) {
    while world.daemon.pulls().count() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn pulled_job_that_is_run_or_tried_again_is_handed_to_whoever_pulls_next() {
    let world = world().await;
    let id = created_in_lane(&world, json!({})).await;
    for order in ["retry", "run"] {
        let (_, attempt) = world.pulled(from_lane()).await;
        world.tell(&id, "fail", json!({ "attempt_id": attempt })).await.ok();
        assert_eq!(world.pull(now_from_lane()).await, json!(null), "it is over");
        let waiting = world.post("/jobs/next", from_lane()).send();
        let asked_for = async {
            until_somebody_waits(&world).await;
            world.tell(&id, order, json!({})).await.ok()["status"]["state"].clone()
        };
        let (handed, state) = tokio::join!(waiting, asked_for);
        assert_eq!(state, "queued");
        let handed = handed.ok()["job"].clone();
        assert_eq!(handed["job_id"], id);
        let stale = json!({ "attempt_id": attempt, "result": { "late": true } });
        world.tell(&id, "complete", stale).await.problem(409, "stale_attempt");
        let current = json!({ "attempt_id": handed["attempt_id"], "retryable": false });
        world.tell(&id, "fail", current).await.ok();
        world.tell(&id, "retry", json!({})).await.ok();
    }
    assert_eq!(world.status(&id).await["state"], "queued");
}

#[tokio::test]
async fn run_brings_a_pulled_job_forward_and_retry_takes_it_from_whoever_is_silent() {
    let world = world().await;
    let id = created_in_lane(&world, json!({ "due_at": "2026-06-01T00:00:00Z" })).await;
    assert_eq!(world.pull(now_from_lane()).await, json!(null));
    world.tell(&id, "run", json!({})).await.ok();
    let (_, silent) = world.pulled(from_lane()).await;
    assert_eq!(world.tell(&id, "retry", json!({})).await.ok()["status"]["state"], "queued");
    world.tell(&id, "heartbeat", json!({ "attempt_id": silent })).await.problem(409, "stale_attempt");
    let (again, current) = world.pulled(from_lane()).await;
    assert_eq!(again, id);
    world.tell(&id, "complete", json!({ "attempt_id": silent })).await.problem(409, "stale_attempt");
    world.tell(&id, "complete", json!({ "attempt_id": current })).await.ok();
}

#[tokio::test]
async fn claimed_job_is_not_run_by_others_and_says_so_at_once() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let claim = json!({ "resource_type": "WORKORDER", "resource_id": id, "owner_id": "runner-1" });
    world.post("/claims", claim).send().await.ok();
    world.tell(&id, "run", json!({})).await.problem(409, "lease_held");
    let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
    assert_eq!(why["reasons"][0]["code"], "claimed", "{why}");
}

// conforms: R50
#[tokio::test]
async fn question_pauses_the_job_and_its_answer_is_handed_out_with_an_attempt_of_its_own() {
    let world = world().await;
    let id = created_in_lane(&world, json!({})).await;
    let (_, first) = world.pulled(from_lane()).await;
    let asked = json!({ "attempt_id": first, "question": { "text": "glossy?" } });
    assert_eq!(world.tell(&id, "ask", asked).await.ok()["status"]["state"], "awaiting_input");
    let beat = world.beat(&id, &first).await;
    assert_eq!((&beat["state"], &beat["lease_expires_at"]), (&json!("awaiting_input"), &json!(null)));
    world.clock.advance_seconds(86_400);
    assert_eq!(world.get(&format!("/jobs/{id}/why")).send().await.ok()["question"]["text"], "glossy?");
    world.tell(&id, "answer", json!({ "answer": "matt" })).await.ok();
    let job = world.pull(from_lane()).await;
    assert_eq!((&job["job_id"], &job["answers"]), (&json!(id), &json!(["matt"])));
    assert_ne!(job["attempt_id"], first, "whoever asked may still be there");
    for what in ["heartbeat", "complete", "fail"] {
        world.tell(&id, what, json!({ "attempt_id": first })).await.problem(409, "stale_attempt");
    }
    world.tell(&id, "complete", json!({ "attempt_id": job["attempt_id"] })).await.ok();
}

#[tokio::test]
async fn attempt_that_takes_longer_than_the_job_allows_goes_to_the_next_however_alive_it_is() {
    let world = world().await;
    let asked = json!({ "timeout_seconds": 90, "retry": { "max_attempts": 2, "backoff_seconds": 0 } });
    let id = created_in_lane(&world, asked).await;
    let (_, slow) = world.pulled(from_lane()).await;
    for seconds in [50, 39] {
        world.clock.advance_seconds(seconds);
        assert_eq!(world.beat(&id, &slow).await["state"], "running");
    }
    world.clock.advance_seconds(2);
    let (_, next) = world.pulled(from_lane()).await;
    assert_ne!(next, slow);
    world.tell(&id, "complete", json!({ "attempt_id": slow })).await.problem(409, "stale_attempt");
    let attempts = world.status(&id).await["runner"]["attempts"].clone();
    assert_eq!(attempts[0]["phase"], "timed_out", "{attempts}");
}

#[tokio::test]
async fn result_that_was_reported_stays_whatever_its_doer_says_later() {
    let world = world().await;
    let id = created_in_lane(&world, json!({})).await;
    let (_, attempt) = world.pulled(from_lane()).await;
    let done = json!({ "attempt_id": attempt, "summary": "12 pages", "result": { "pages": 12 } });
    world.tell(&id, "complete", done.clone()).await.ok();
    world.tell(&id, "complete", done).await.ok();
    let other = json!({ "attempt_id": attempt, "result": { "pages": 13 } });
    world.tell(&id, "complete", other).await.problem(400, "terminal");
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
    assert_eq!((&result["data"], &result["summary"]), (&json!({ "pages": 12 }), &json!("12 pages")));
    let facts = world.get(&format!("/jobs/{id}/facts")).send().await.ok();
    let count = |kind: &str| {
        let facts = facts["facts"].as_array().expect("a list");
        facts.iter().filter(|fact| fact["kind"] == kind).count()
    };
    assert_eq!((count("job.noted/1"), count("job.stale_report_kept/1")), (0, 1));
    world.tell(&id, "purge", json!({})).await.ok();
    let again = json!({ "attempt_id": attempt, "result": { "pages": 12 } });
    world.tell(&id, "complete", again).await.problem(409, "purged");
}

#[tokio::test]
async fn token_that_is_revoked_while_it_waits_is_handed_nothing() {
    let claim = json!({ "resource_type": "WORKORDER", "owner_id": "one", "wait_seconds": 60 });
    for (path, asked) in [("/jobs/next", json!({ "anything": true, "wait_seconds": 60 })), ("/claims", claim)]
    {
        let world = world().await;
        let made = world
            .post("/tokens", json!({ "role": "peer", "peer_id": "one", "circle": "press" }))
            .send()
            .await
            .ok();
        let (secret, token) = (made["secret"].as_str().unwrap(), made["token"]["id"].as_str().unwrap());
        let waiting = world.post(path, asked).bearer(secret).send();
        let revoked = async {
            until_somebody_waits(&world).await;
            world.call("DELETE", &format!("/tokens/{token}")).send().await.ok();
            world.create(json!({ "circle": "press" })).await
        };
        let (refused, id) = tokio::join!(waiting, revoked);
        refused.problem(401, "unauthenticated");
        assert_eq!(
            world.pulled(json!({ "circle": "press", "wait_seconds": 60 })).await.0,
            id,
            "it goes to the next"
        );
    }
}

#[tokio::test]
async fn job_with_a_lane_and_a_label_is_refused() {
    let world = world().await;
    let both = world.post("/jobs", json!({ "lane": PRINT, "label": "gpu" })).send().await;
    both.problem(422, "invalid_request");
    world.post("/jobs", json!({ "lane": PRINT, "label": "gpu", "executor": "noop" })).send().await.ok();
}

#[tokio::test]
async fn job_with_an_executor_and_a_peer_is_refused() {
    let world = world().await;
    let both =
        world.post("/jobs", json!({ "executor": "noop", "assigned_peer_id": "peer-joan" })).send().await;
    let problem = both.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["loc"], json!(["body", "assigned_peer_id"]), "{problem}");
    assert_eq!(world.get("/jobs").send().await.ok()["work"], json!([]));
    world.post("/jobs", json!({ "assigned_peer_id": "peer-joan" })).send().await.ok();
}

#[tokio::test]
async fn every_stale_report_is_counted_and_few_are_kept() {
    const STALE: usize = 60;
    let world = working_world().await;
    let id = world.create(json!({ "retry": { "max_attempts": 2, "backoff_seconds": 0 } })).await;
    let (_, first) = world.pulled(json!({})).await;
    world.tell(&id, "fail", json!({ "attempt_id": first })).await.ok();
    world.pulled(json!({})).await;
    let figure = async || {
        let page = world.get("/metrics").send().await.body;
        let line = page.lines().find(|line| line.starts_with("longhaul_stale_reports_total"));
        line.expect("the figure is there").rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    for _ in 0..STALE {
        let late = json!({ "attempt_id": first, "summary": "late" });
        world.tell(&id, "complete", late).await.problem(409, "stale_attempt");
    }
    assert_eq!(figure().await, STALE);
    // What is not kept one by one is counted once per second.
    let mut ledger = world.daemon.ledger();
    world.clock.advance_seconds(2);
    while world.status(&id).await["runner"]["stale_reports"] != STALE {
        ledger.changed().await.expect("the daemon lives");
    }
    let page = world.get(&format!("/jobs/{id}/facts?limit=200")).send().await.ok();
    let facts = page["facts"].as_array().unwrap();
    let kinds = |kind: &str| facts.iter().filter(|fact| fact["kind"] == kind).count();
    assert_eq!((kinds("job.stale_report_kept/1"), kinds("job.stale_reports_counted/1")), (20, 1));
}

#[tokio::test]
async fn stale_report_is_in_the_audit_log() {
    let log = AuditLog::install();
    let world = working_world().await;
    let id = world.create(json!({ "retry": { "max_attempts": 2, "backoff_seconds": 0 } })).await;
    let (_, first) = world.pulled(json!({})).await;
    world.tell(&id, "fail", json!({ "attempt_id": first })).await.ok();
    let (_, second) = world.pulled(json!({})).await;
    let told = || log.lines().iter().filter(|line| line.contains("stale_attempt")).count();
    for (what, reports) in [("complete", 1), ("fail", 2), ("heartbeat", 3)] {
        world.tell(&id, what, json!({ "attempt_id": first })).await.problem(409, "stale_attempt");
        let lines = log.lines();
        assert_eq!(told(), reports, "{what}: {lines:?}");
        let last = lines.last().expect("there is a line");
        assert!(last.contains(&id) && last.contains(what), "{last}");
    }
    world.tell(&id, "complete", json!({ "attempt_id": second })).await.ok();
    assert_eq!(told(), 3);
}

/// Reports that come at once see the same job, and only so many of them can be kept.
#[tokio::test]
async fn stale_reports_at_once_are_all_counted() {
    const STALE: usize = 48;
    let world = working_world().await;
    let id = world.create(json!({ "retry": { "max_attempts": 2, "backoff_seconds": 0 } })).await;
    let (_, first) = world.pulled(json!({})).await;
    world.tell(&id, "fail", json!({ "attempt_id": first })).await.ok();
    world.pulled(json!({})).await;
    let report = async || {
        let late = json!({ "attempt_id": first, "summary": "late" });
        loop {
            let answer = world.tell(&id, "complete", late.clone()).await;
            // One that found the record busy was not taken: its worker comes again.
            if answer.status != 503 {
                answer.problem(409, "stale_attempt");
                return;
            }
        }
    };
    futures::future::join_all((0..STALE).map(|_| report())).await;
    let mut ledger = world.daemon.ledger();
    world.clock.advance_seconds(2);
    let counted = async {
        while world.status(&id).await["runner"]["stale_reports"] != STALE {
            ledger.changed().await.expect("the daemon lives");
        }
    };
    tokio::time::timeout(Duration::from_secs(30), counted).await.expect("every one is counted");
}
