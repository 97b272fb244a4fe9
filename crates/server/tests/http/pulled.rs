//! Work that is pulled with nothing but HTTP.

use std::collections::BTreeSet;

use api::Role;
use domain::RecordId;
use serde_json::{Value, json};
use store::Store;
use tokio::task::JoinSet;

use crate::given::{World, working_world, world};

/// More than the lease of a worker.
const LEASE_AND_MORE: u32 = 61;

impl World {
    /// Asks for a job and gets one.
    pub(crate) async fn pulled(&self, asked: Value) -> (String, String) {
        let job = self.pull(asked).await;
        let text = |key: &str| job[key].as_str().expect("it is text").to_owned();
        (text("job_id"), text("attempt_id"))
    }

    pub(crate) async fn pull(&self, asked: Value) -> Value {
        self.post("/jobs/next", asked).send().await.ok()["job"].clone()
    }

    pub(crate) async fn tell(&self, id: &str, what: &str, body: Value) -> crate::given::Answer {
        self.post(&format!("/jobs/{id}/{what}"), body).send().await
    }

    pub(crate) async fn beat(&self, id: &str, attempt: &str) -> Value {
        self.tell(id, "heartbeat", json!({ "attempt_id": attempt })).await.ok()
    }
}

// conforms: R39 R49
#[tokio::test]
async fn job_is_handed_out_with_what_its_doer_needs_started_by_a_heartbeat_and_completed() {
    let world = world().await;
    let asked = json!({ "title": "cover", "prompt": "print it", "input": { "pages": 12_345_678_901_234_567_890_u64 } });
    let id = world.create(asked).await;
    let job = world.pull(json!({ "worker_id": "press-1" })).await;
    assert_eq!(
        (&job["job_id"], &job["title"], &job["prompt"]),
        (&json!(id), &json!("cover"), &json!("print it"))
    );
    assert_eq!(job["input"], json!({ "pages": 12_345_678_901_234_567_890_u64 }));
    assert_eq!((&job["attempt_number"], &job["heartbeat_every_seconds"]), (&json!(1), &json!(20)));
    assert_eq!(job["lease_expires_at"], "2026-01-01T00:01:00.000000+00:00");
    assert_eq!(job["status"]["state"], "delivered");
    let attempt = job["attempt_id"].as_str().unwrap();
    let beat = world.beat(&id, attempt).await;
    assert_eq!((&beat["state"], &beat["cancel_requested"]), (&json!("running"), &json!(false)));
    let told = json!({ "attempt_id": attempt, "progress": { "page": 6 }, "progress_note": "half of it" });
    world.tell(&id, "heartbeat", told).await.ok();
    let status = world.status(&id).await;
    assert_eq!(
        (&status["progress"], &status["progress_events"][0]["note"]),
        (&json!({ "page": 6 }), &json!("half of it"))
    );
    let done = json!({ "attempt_id": attempt, "summary": "12 pages", "result": [1, "two"] });
    assert_eq!(world.tell(&id, "complete", done).await.ok()["status"]["state"], "completed");
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
    assert_eq!((&result["data"], &result["summary"]), (&json!([1, "two"]), &json!("12 pages")));
    assert_eq!(world.pull(json!({ "wait_seconds": 0 })).await, json!(null), "nothing is left");
}

#[tokio::test]
async fn whoever_waits_is_handed_the_job_that_comes() {
    let world = world().await;
    let waiting = world.post("/jobs/next", json!({ "lanes": ["print"], "wait_seconds": 60 })).send();
    let comes = async {
        while world.daemon.pulls().count() == 0 {
            tokio::task::yield_now().await;
        }
        world.create(json!({ "lane": "print" })).await
    };
    let (answer, id) = tokio::join!(waiting, comes);
    assert_eq!(answer.ok()["job"]["job_id"], id);
    assert_eq!(world.daemon.pulls().count(), 0);
}

// conforms: R31 R99 R101
#[tokio::test]
async fn job_is_handed_only_to_whoever_asks_for_its_peer_lane_label_or_folder() {
    let world = world().await;
    let cases = [
        (json!({ "assigned_peer_id": "repow-press-1" }), json!({ "peer_id": "repow-press-1" })),
        (json!({ "lane": "print" }), json!({ "lanes": ["fold", "print"] })),
        (json!({ "label": "gpu" }), json!({ "labels": ["gpu", "big"] })),
        (json!({ "path": "/srv/press" }), json!({ "paths": ["/srv/press"] })),
        (json!({}), json!({})),
    ];
    let foreign = [
        json!({ "peer_id": "repow-press-11", "wait_seconds": 0 }),
        json!({ "peer_id": "repow-press", "wait_seconds": 0 }),
        json!({ "lanes": ["gpu", "prin", "repow-press-1"], "wait_seconds": 0 }),
        json!({ "labels": ["print"], "wait_seconds": 0 }),
        json!({ "paths": ["/srv/press/", "/srv"], "wait_seconds": 0 }),
    ];
    for (created, asked) in &cases {
        let id = world.create(created.clone()).await;
        for other in &foreign {
            assert_eq!(world.pull(other.clone()).await, json!(null), "{created} {other}");
        }
        for (_, others) in cases.iter().filter(|(other, _)| other != created) {
            let mut now = others.clone();
            now["wait_seconds"] = json!(0);
            assert_eq!(world.pull(now).await, json!(null), "{created} {others}");
        }
        assert_eq!(world.pulled(asked.clone()).await.0, id);
    }
    // Whoever is named gets it: nobody who works in the same folder, or is called the same.
    let twin = json!({ "peer_id": "twin", "display_name": "repow-press-1", "path": "/srv/press" });
    world.post("/peers", twin).send().await.ok();
    let id = world.create(json!({ "assigned_peer_id": "repow-press-1", "path": "/srv/press" })).await;
    for other in [
        json!({ "peer_id": "twin", "wait_seconds": 0 }),
        json!({ "peer_id": "twin", "paths": ["/srv/press"], "wait_seconds": 0 }),
        json!({ "paths": ["/srv/press"], "wait_seconds": 0 }),
    ] {
        assert_eq!(world.pull(other.clone()).await, json!(null), "{other}");
    }
    assert_eq!(world.pulled(json!({ "peer_id": "repow-press-1" })).await.0, id);
}

// conforms: R96 R98 R108
#[tokio::test]
async fn nobody_is_handed_what_another_circle_asked_for() {
    let world = world().await;
    let of = async |circle: &str| {
        world.token(Role::Peer, json!({ "circle": circle, "peer_id": "peer-one" })).await
    };
    let (press, kitchen) = (of("press").await, of("kitchen").await);
    for created in [json!({}), json!({ "lane": "print" }), json!({ "assigned_peer_id": "peer-one" })] {
        let made = world.post("/jobs", created).bearer(&press).send().await.ok();
        let all = json!({ "peer_id": "peer-one", "lanes": ["print"], "anything": true, "wait_seconds": 0 });
        let next = async |token: &str| world.post("/jobs/next", all.clone()).bearer(token).send().await.ok();
        assert_eq!(next(&kitchen).await["job"], json!(null));
        assert_eq!(world.pull(all.clone()).await, json!(null), "work of no circle is another matter");
        let handed = next(&press).await["job"].clone();
        assert_eq!(handed["job_id"], made["job_id"]);
        assert_eq!(handed["status"]["owner_peer_id"], "peer-one", "whoever has it, assigned or not");
    }
    let foreign = world.post("/jobs/next", json!({ "circle": "press" })).bearer(&kitchen).send().await;
    foreign.problem(403, "circle_forbidden");
    let unbound = world.token(Role::Agent, json!({ "circle": "press" })).await;
    for token in [&press, &unbound] {
        let other = world.post("/jobs/next", json!({ "peer_id": "two" })).bearer(token).send().await;
        other.problem(403, "forbidden");
    }
}

// conforms: R108
#[tokio::test]
async fn owner_is_the_peer_that_has_the_job_or_had_it_last() {
    let world = world().await;
    let of = async |peer: &str| world.token(Role::Peer, json!({ "circle": "press", "peer_id": peer })).await;
    let (one, two) = (of("peer-one").await, of("peer-two").await);
    let nobody = world.token(Role::Agent, json!({ "circle": "press" })).await;
    let retry = json!({ "max_attempts": 3, "backoff_seconds": 0 });
    let id = world.create(json!({ "circle": "press", "owner_peer_id": "peer-zero", "retry": retry })).await;
    let owner = async || world.status(&id).await["owner_peer_id"].clone();
    let pull = async |token: &str| {
        let asked = json!({ "anything": true, "wait_seconds": 0 });
        let handed = world.post("/jobs/next", asked).bearer(token).send().await.ok();
        assert_eq!(handed["job"]["job_id"], json!(id));
        handed["job"]["attempt_id"].clone()
    };
    assert_eq!(owner().await, "peer-zero", "nobody has it yet");
    let attempt = pull(&one).await;
    assert_eq!(owner().await, "peer-one");
    let failed = world.post(&format!("/jobs/{id}/fail"), json!({ "attempt_id": attempt })).bearer(&one);
    failed.send().await.ok();
    assert_eq!((&world.status(&id).await["state"], owner().await), (&json!("queued"), json!("peer-one")));
    let attempt = pull(&two).await;
    assert_eq!(owner().await, "peer-two");
    let failed = world.post(&format!("/jobs/{id}/fail"), json!({ "attempt_id": attempt })).bearer(&two);
    failed.send().await.ok();
    let attempt = pull(&nobody).await;
    assert_eq!(owner().await, "peer-two", "whoever has it now has no name");
    let completed =
        world.post(&format!("/jobs/{id}/complete"), json!({ "attempt_id": attempt })).bearer(&nobody);
    completed.send().await.ok();
    assert_eq!(owner().await, "peer-two");
}

// conforms: A27 A32
#[tokio::test]
async fn heartbeats_keep_a_job_and_silence_loses_it_to_the_next() {
    let world = world().await;
    let id = world.create(json!({ "retry": { "max_attempts": 2, "backoff_seconds": 0 } })).await;
    let (_, first) = world.pulled(json!({ "worker_id": "one" })).await;
    for _ in 0..5 {
        world.clock.advance_seconds(50);
        assert_eq!(world.beat(&id, &first).await["state"], "running");
    }
    world.clock.advance_seconds(LEASE_AND_MORE);
    let (again, second) = world.pulled(json!({ "worker_id": "two" })).await;
    assert_eq!(again, id);
    assert_ne!(second, first);
    for (what, more) in [("heartbeat", json!({})), ("complete", json!({})), ("fail", json!({}))] {
        let mut body = more;
        body["attempt_id"] = json!(first);
        let refused = world.tell(&id, what, body).await;
        refused.problem(409, "stale_attempt");
    }
    world.tell(&id, "complete", json!({ "attempt_id": second })).await.ok();
    assert_eq!(world.status(&id).await["state"], "completed");
}

// conforms: R40
#[tokio::test]
async fn late_report_of_the_current_attempt_lands() {
    let world = world().await;
    let id = world.create(json!({ "repeatable": false })).await;
    let (_, attempt) = world.pulled(json!({})).await;
    world.clock.advance_seconds(LEASE_AND_MORE);
    world.until(&id, "unavailable").await;
    let refused = world.tell(&id, "heartbeat", json!({ "attempt_id": attempt })).await;
    refused.problem(400, "terminal");
    world.tell(&id, "complete", json!({ "attempt_id": attempt, "summary": "late" })).await.ok();
    assert_eq!(world.status(&id).await["state"], "completed");
}

#[tokio::test]
async fn a_hundred_workers_that_come_back_too_late_change_nothing_and_their_word_is_kept() {
    let world = world().await;
    for _ in 0..100 {
        let id = world.create(json!({ "retry": { "max_attempts": 2, "backoff_seconds": 0 } })).await;
        let (_, zombie) = world.pulled(json!({})).await;
        world.clock.advance_seconds(LEASE_AND_MORE);
        let (_, current) = world.pulled(json!({})).await;
        let before = world.status(&id).await;
        let said =
            json!({ "attempt_id": zombie, "summary": "done by a zombie", "result": { "zombie": true } });
        let refused = world.tell(&id, "complete", said).await;
        refused.problem(409, "stale_attempt");
        let mut after = world.status(&id).await;
        after["updated_at"] = before["updated_at"].clone();
        assert_eq!(after["state"], before["state"]);
        assert_eq!(after["result_summary"], json!(null));
        let facts = world.get(&format!("/jobs/{id}/facts")).send().await.ok();
        let kept = facts["facts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|fact| fact["kind"] == "job.stale_report_kept/1");
        assert_eq!(kept.count(), 1);
        world.tell(&id, "complete", json!({ "attempt_id": current })).await.ok();
    }
}

#[tokio::test]
async fn cancel_comes_back_with_the_heartbeat_and_ends_with_the_workers_word() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let (_, attempt) = world.pulled(json!({})).await;
    world.beat(&id, &attempt).await;
    world.tell(&id, "cancel", json!({ "reason": "too_dear" })).await.ok();
    let beat = world.beat(&id, &attempt).await;
    assert_eq!((&beat["cancel_requested"], &beat["cancellation_reason"]), (&json!(true), &json!("too_dear")));
    assert_eq!(beat["cancel_limit_at"], "2026-01-01T00:00:30.000000+00:00");
    world.patch(&id, json!({ "state": "cancelled", "attempt_id": attempt })).send().await.ok();
    assert_eq!(world.status(&id).await["state"], "cancelled");
}

#[tokio::test]
async fn failure_is_tried_again_while_attempts_are_left_and_the_worker_does_not_object() {
    let world = world().await;
    let twice = json!({ "retry": { "max_attempts": 2, "backoff_seconds": 5 } });
    let id = world.create(twice.clone()).await;
    let (_, first) = world.pulled(json!({})).await;
    world
        .tell(
            &id,
            "fail",
            json!({ "attempt_id": first, "reason": "no_paper", "error": { "message": "empty" } }),
        )
        .await
        .ok();
    assert_eq!(world.status(&id).await["state"], "queued");
    assert_eq!(world.pull(json!({ "wait_seconds": 0 })).await, json!(null), "it backs off");
    let why = world.get(&format!("/jobs/{id}/why")).send().await.ok()["reasons"][0].clone();
    assert_eq!(
        (&why["code"], &why["detail"]),
        (&json!("backing_off"), &json!("attempt 1 of 2 did not succeed: empty; the next one waits"))
    );
    world.clock.advance_seconds(10);
    let (_, second) = world.pulled(json!({})).await;
    world.tell(&id, "fail", json!({ "attempt_id": second, "reason": "no_paper" })).await.ok();
    assert_eq!(
        (world.status(&id).await["state"].as_str(), world.status(&id).await["state_reason"].as_str()),
        (Some("failed"), Some("no_paper"))
    );
    let never = world.create(twice).await;
    let (_, attempt) = world.pulled(json!({})).await;
    world.tell(&never, "fail", json!({ "attempt_id": attempt, "retryable": false })).await.ok();
    assert_eq!(world.status(&never).await["state"], "failed");
}

#[tokio::test]
async fn limit_of_a_lane_holds_for_those_who_pull_and_its_slot_goes_to_the_next_who_waits() {
    let world = world().await;
    for _ in 0..2 {
        world.create(json!({ "lane": "narrow" })).await;
    }
    let (first, attempt) = world.pulled(json!({ "lanes": ["narrow"] })).await;
    assert_eq!(world.pull(json!({ "lanes": ["narrow"], "wait_seconds": 0 })).await, json!(null));
    let waiting = world.post("/jobs/next", json!({ "lanes": ["narrow"], "wait_seconds": 60 })).send();
    let done = async {
        while world.daemon.pulls().count() == 0 {
            tokio::task::yield_now().await;
        }
        world.tell(&first, "complete", json!({ "attempt_id": attempt })).await.ok();
    };
    let (next, ()) = tokio::join!(waiting, done);
    assert_ne!(next.ok()["job"]["job_id"], json!(first));
}

#[tokio::test]
async fn lane_that_was_full_when_it_was_asked_is_asked_again_whoever_waited_for_it() {
    let world = world().await;
    let narrow = |seconds: u64| json!({ "lanes": ["narrow"], "wait_seconds": seconds });
    let twice = json!({ "lane": "narrow", "retry": { "max_attempts": 2, "backoff_seconds": 3600, "max_backoff_seconds": 3600 } });
    let first = world.create(twice).await;
    let second = world.create(json!({ "lane": "narrow" })).await;
    let (_, attempt) = world.pulled(narrow(0)).await;
    assert_eq!(world.pull(narrow(1)).await, json!(null), "it is full, and nobody waits any more");
    // It backs off: not over, but out of its slot.
    world.tell(&first, "fail", json!({ "attempt_id": attempt })).await.ok();
    assert_eq!(world.pulled(narrow(0)).await.0, second);
}

#[tokio::test]
async fn slot_of_work_that_was_handed_over_goes_on_when_its_doer_reports() {
    let world = working_world().await;
    let handed = json!({ "executor": "hands_over", "lane": "narrow" });
    let (first, second) = (world.create(handed.clone()).await, world.create(handed).await);
    world.until(&first, "delivered").await;
    assert_eq!(world.status(&second).await["state"], "queued");
    let attempt = world.attempt_of(&first).await;
    world.patch(&first, json!({ "state": "completed", "attempt_id": attempt })).send().await.ok();
    world.until(&second, "delivered").await;
}

// conforms: R47
#[tokio::test]
async fn doer_of_work_that_was_handed_over_is_heard_of_and_a_nodes_own_work_is_not_prolonged_by_others() {
    let world = world().await;
    let (id, attempt) = world.delivered().await;
    for _ in 0..5 {
        world.clock.advance_seconds(50);
        assert_eq!(world.beat(&id, &attempt).await["state"], "running");
    }
    let world = working_world().await;
    let own = world.create(json!({ "executor": "stays" })).await;
    let status = world.until(&own, "dispatching").await;
    assert_eq!(status["runner"]["lease_until"], "2026-01-01T00:01:00.000000+00:00");
    let attempt = world.attempt_of(&own).await;
    world.clock.advance_seconds(5);
    let beat = world.tell(&own, "heartbeat", json!({ "attempt_id": attempt })).await;
    beat.problem(403, "attempt_not_yours");
    let lease = &world.status(&own).await["runner"]["lease_until"];
    assert_eq!(lease, &status["runner"]["lease_until"], "its node renews it, and nobody else");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_sixty_four_that_pull_at_once_gets_a_job_of_its_own() {
    let world = std::sync::Arc::new(world().await);
    let mut pulls = JoinSet::new();
    for number in 0..64 {
        let world = world.clone();
        pulls.spawn(async move {
            world.pulled(json!({ "worker_id": format!("worker-{number}"), "wait_seconds": 60 })).await
        });
    }
    let jobs: Vec<Value> = (0..64).map(|_| json!({})).collect();
    world.post("/jobs/batch", json!({ "jobs": jobs })).send().await.ok();
    let handed = pulls.join_all().await;
    assert_eq!(handed.iter().map(|(job, _)| job).collect::<BTreeSet<_>>().len(), 64);
    for (id, _) in &handed {
        let loaded = world.store.load(&RecordId::parse(id).unwrap()).await.unwrap().unwrap();
        assert!(loaded.claim.expect("it is held").owner.as_str().starts_with("worker:worker-"));
    }
}

#[tokio::test]
async fn whoever_hangs_up_gets_nothing_and_the_job_goes_to_the_next() {
    let world = world().await;
    let gone = tokio::time::timeout(
        std::time::Duration::from_millis(200),
        world.post("/jobs/next", json!({ "wait_seconds": 60 })).send(),
    );
    assert!(gone.await.is_err(), "there is nothing to get");
    while world.daemon.pulls().count() > 0 {
        tokio::task::yield_now().await;
    }
    let id = world.create(json!({})).await;
    assert_eq!(world.pulled(json!({})).await.0, id);
}

#[tokio::test]
async fn what_cannot_be_asked_or_told_is_refused_and_changes_nothing() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let other = world.create(json!({ "lane": "other" })).await;
    let many: Vec<String> = (0..33).map(|number| number.to_string()).collect();
    for asked in [
        json!({ "lanes": many }),
        json!({ "lanes": ["x".repeat(257)] }),
        json!({ "worker_id": "" }),
        json!({ "worker_id": "x".repeat(65) }),
        json!({ "lane": "print" }),
        json!({ "wait_seconds": -1 }),
        json!({ "wait_seconds": 1e300 }),
        json!([]),
    ] {
        let refused = world.post("/jobs/next", asked.clone()).send().await;
        assert_eq!(refused.status, 422, "{asked}: {}", refused.body);
    }
    let (_, attempt) = world.pulled(json!({})).await;
    let (_, foreign) = world.pulled(json!({ "lanes": ["other"] })).await;
    let before = world.status(&id).await;
    for (what, body, status) in [
        ("heartbeat", json!({}), 422),
        ("heartbeat", json!({ "attempt_id": 7 }), 422),
        ("heartbeat", json!({ "attempt_id": foreign }), 409),
        ("heartbeat", json!({ "attempt_id": "attempt-none" }), 409),
        ("complete", json!({ "result": 1 }), 422),
        ("complete", json!({ "attempt_id": foreign }), 409),
        ("complete", json!({ "attempt_id": "x".repeat(10_000) }), 422),
        ("complete", json!({ "attempt_id": attempt, "done": true }), 422),
        ("fail", json!({ "attempt_id": foreign }), 409),
        ("ask", json!({ "attempt_id": attempt }), 422),
        ("ask", json!({ "attempt_id": foreign, "question": 1 }), 409),
    ] {
        let refused = world.tell(&id, what, body.clone()).await;
        assert_eq!(refused.status, status, "{what} {body}: {}", refused.body);
    }
    assert_eq!(world.tell("work-none", "complete", json!({ "attempt_id": attempt })).await.status, 404);
    assert_eq!(world.status(&id).await, before);
    assert_eq!(world.status(&other).await["state"], "delivered");
}
