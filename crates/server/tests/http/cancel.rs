//! Cancels.

use domain::policy::{CancelPolicy, HostPolicy, KindOverride};
use serde_json::{Value, json};

use crate::given::{START, START_TEXT, TAKEN, UNDER_WAY, World, working_world, world, world_with_policy};

/// Whether anything was sent, and the two words for it.
fn told(status: &Value) -> (bool, &str, &str) {
    let told = &status["protocol_cancel"];
    let word = |key: &str| told[key].as_str().unwrap_or_default();
    (told["attempted"] == true, word("status"), word("reason"))
}

/// The status once the reason is another than this one.
async fn told_otherwise(world: &World, id: &str, than: &str) -> Value {
    let mut ledger = world.daemon.ledger();
    loop {
        ledger.borrow_and_update();
        let status = world.status(id).await;
        if status["protocol_cancel"]["reason"] != than {
            return status;
        }
        ledger.changed().await.expect("what the test needs is there");
    }
}

/// Lets the time limit of a cancel pass, and waits until the daemon has attended to whatever was due by then.
async fn pass_the_time_limit(world: &World) {
    let other = world.create(json!({ "executor": "hands_over" })).await;
    // A worker may have taken it first.
    world.call("POST", &format!("/jobs/{other}/run")).send().await;
    world.until(&other, "delivered").await;
    world.post(&format!("/jobs/{other}/cancel"), json!({})).send().await.ok();
    world.clock.advance_seconds(31);
    world.until(&other, "cancelled").await;
}

/// The kinds of a job's facts.
async fn kinds(world: &World, id: &str) -> Vec<String> {
    let facts = world.get(&format!("/jobs/{id}/facts")).send().await.ok()["facts"].clone();
    let kind = |fact: &Value| fact["kind"].as_str().expect("what the test needs is there").to_owned();
    facts.as_array().expect("what the test needs is there").iter().map(kind).collect()
}

/// Who asked a job to stop, and why, as its facts say.
async fn requests(world: &World, id: &str) -> Vec<Value> {
    let facts = world.get(&format!("/jobs/{id}/facts")).send().await.ok()["facts"].clone();
    let facts = facts.as_array().expect("what the test needs is there").iter();
    let requests = facts.filter(|fact| fact["kind"] == "job.cancel_requested/1");
    requests
        .map(|fact| {
            let request = &fact["payload"]["cancel_requested"];
            json!({ "by": request["by"], "reason": request["reason"] })
        })
        .collect()
}

fn requested(by: &str, reason: &str) -> Value {
    json!({ "by": by, "reason": reason })
}

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
    assert_eq!(status["runner"], json!({}), "no executor had it");
    assert_eq!(requests(&world, &id).await, [requested("ada", "changed my mind")]);
}

// conforms: R66 R71 R59 R21
#[tokio::test]
async fn cancel_of_dispatched_work_is_pending_until_its_time_is_over() {
    let world = world().await;
    let (id, _) = world.delivered().await;
    let body = json!({ "requested_by_peer_id": "ada" });
    let status = world.post(&format!("/jobs/{id}/cancel"), body).send().await.ok()["status"].clone();
    assert_eq!(requests(&world, &id).await, [requested("ada", "cancel_requested")]);
    assert_eq!(
        (&status["state"], &status["state_reason"]),
        (&json!("delivered"), &json!("cancel_requested"))
    );
    assert_eq!(status["cancellation_reason"], "cancel_requested");
    assert_eq!(told(&status), (false, "unavailable", "no_heartbeat_yet"), "nobody was told yet");
    assert_eq!(status["provenance"]["protocol_cancel"], status["protocol_cancel"]);
    world.clock.advance_seconds(29);
    // A job that is due now is attended to: whatever would have ended the other one had its turn.
    let due = world.create(json!({ "expires_at": "2026-01-01T00:00:29.500000Z" })).await;
    world.clock.set(START.plus_micros(29_500_000));
    world.until(&due, "expired").await;
    let status = world.status(&id).await;
    assert_eq!(
        (&status["state"], &status["state_reason"]),
        (&json!("delivered"), &json!("cancel_requested"))
    );
    world.clock.set(START.plus_seconds(30));
    let status = world.until(&id, "cancelled").await;
    assert_eq!(status["state_reason"], "cancel_unconfirmed");
    assert_eq!(told(&status), (false, "unavailable", "no_heartbeat"));
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
    assert_eq!(told(&status), (true, "sent", "cancel_confirmed"));
    assert_eq!(kinds(&world, &id).await.iter().filter(|kind| *kind == "job.cancel_tried/1").count(), 1);
}

// conforms: R71 R73 R74 R114
#[tokio::test]
async fn protocol_cancel_says_sent_only_of_what_was_sent() {
    let world = working_world().await;
    let cancel = async |id: &str| {
        let body = json!({ "requested_by_peer_id": "ada", "reason": "too_dear" });
        let answer = world.post(&format!("/jobs/{id}/cancel"), body).send().await.ok();
        answer["status"].clone()
    };
    let outside = async |executor: &str, input: Value| {
        let id = world.create(json!({ "executor": executor, "input": input })).await;
        world.until(&id, "awaiting_external").await;
        id
    };
    // A service without a cancel is never asked: the reason stands there, and no time limit ends the job.
    let id = outside("brakeless", json!({ "ends": "never" })).await;
    let status = cancel(&id).await;
    assert_eq!(told(&status), (false, "unavailable", "not_cancelable"));
    assert_eq!(status["protocol_cancel"]["detail"], "the press has no brake");
    // One that refuses was asked.
    let id = outside("submits", json!({ "ends": "never", "cancel": "refused" })).await;
    cancel(&id).await;
    let status = told_otherwise(&world, &id, "not_sent_yet").await;
    assert_eq!(told(&status), (true, "failed", "protocol_cancel_failed"));
    assert_eq!(status["state_reason"], "cancel_requested");
    assert_eq!(requests(&world, &id).await, [requested("ada", "too_dear")]);
    // One that stops has confirmed it.
    let id = outside("submits", json!({ "ends": "never" })).await;
    cancel(&id).await;
    let status = world.until(&id, "cancelled").await;
    assert_eq!(told(&status), (true, "sent", "cancel_confirmed"));
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
    assert_eq!(result["provenance"]["protocol_cancel"], status["protocol_cancel"]);
}

// conforms: R69 R74 R114
#[tokio::test]
async fn pulled_worker_is_shown_as_told_by_the_heartbeat_that_told_it() {
    let world = world().await;
    let id = world.create(json!({ "assigned_peer_id": "repow-press-1" })).await;
    let (_, attempt) = world.pulled(json!({ "peer_id": "repow-press-1" })).await;
    world.beat(&id, &attempt).await;
    let asked = world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok()["status"].clone();
    assert_eq!(told(&asked), (false, "unavailable", "no_heartbeat_yet"));
    for _ in 0..3 {
        assert_eq!(world.beat(&id, &attempt).await["cancel_requested"], true);
        let status = world.status(&id).await;
        assert_eq!(told(&status), (true, "sent", "told_by_heartbeat"));
        assert_eq!(status["protocol_cancel"]["peer_id"], "repow-press-1");
    }
    let tries = kinds(&world, &id).await.into_iter().filter(|kind| kind == "job.cancel_tried/1").count();
    assert_eq!(tries, 1, "it was told once, however often it asks");
    world.clock.advance_seconds(30);
    let status = world.until(&id, "cancelled").await;
    assert_eq!(told(&status), (true, "sent", "told_by_heartbeat"), "it knew, and never said that it stopped");
    // Also a worker that has only just got it, or that waits for somebody.
    for state in ["delivered", "awaiting_input", "blocked"] {
        let id = world.create(json!({ "assigned_peer_id": "repow-press-1" })).await;
        let (_, attempt) = world.pulled(json!({ "peer_id": "repow-press-1" })).await;
        if state != "delivered" {
            world.patch(&id, json!({ "state": state, "attempt_id": attempt })).send().await.ok();
        }
        let asked = world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok()["status"].clone();
        assert_eq!(asked["state"], state);
        assert_eq!(world.beat(&id, &attempt).await["cancel_requested"], true, "{state}");
        let status = world.status(&id).await;
        assert_eq!(told(&status), (true, "sent", "told_by_heartbeat"), "{state}");
    }
}

// conforms: R67 R73 R74
#[tokio::test]
async fn unmanaged_work_stays_pending_and_the_record_says_that_nobody_could_be_told() {
    let world = world().await;
    for (body, reason) in [
        (json!({}), "no_assigned_peer"),
        (json!({ "assigned_peer_id": "repow-a-1" }), "no_protocol_cancel_adapter"),
    ] {
        for end in ["completed", "cancelled"] {
            let id = world.create(body.clone()).await;
            world.patch(&id, json!({ "state": "running" })).send().await.ok();
            let body = json!({ "requested_by_peer_id": "ada", "reason": "too_dear" });
            world.post(&format!("/jobs/{id}/cancel"), body).send().await.ok();
            assert_eq!(requests(&world, &id).await, [requested("ada", "too_dear")]);
            // Only its worker can stop it: no time limit says that it has.
            pass_the_time_limit(&world).await;
            let status = world.status(&id).await;
            assert_eq!(
                (&status["state"], &status["state_reason"]),
                (&json!("running"), &json!("cancel_requested"))
            );
            assert_eq!(told(&status), (false, "unavailable", reason));
            let report = json!({ "state": end, "result_data": { "pages": 12 } });
            let done = world.patch(&id, report).send().await.ok()["status"].clone();
            assert_eq!(done["state"], end, "what completes before it is stopped has completed");
            assert_eq!(told(&done), (false, "unavailable", reason));
            let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
            assert_eq!(result["data"], json!({ "pages": 12 }));
        }
    }
}

// conforms: R72 R21
#[tokio::test]
async fn late_cancel_changes_no_end_and_is_kept() {
    let world = world().await;
    for end in ["completed", "failed", "cancelled", "expired", "unavailable"] {
        let id = world.create(json!({})).await;
        world.patch(&id, json!({ "state": end, "state_reason": "as_it_was" })).send().await.ok();
        let before = world.status(&id).await;
        assert_eq!((&before["state"], &before["cancel_requested"]), (&json!(end), &json!(false)));
        let mut answers = Vec::new();
        for by in ["ada", "eve"] {
            let body = json!({ "requested_by_peer_id": by, "reason": "too late" });
            let answer = world.post(&format!("/jobs/{id}/cancel"), body).send().await.ok()["status"].clone();
            for key in ["state", "state_reason", "result_summary", "protocol_cancel"] {
                assert_eq!(answer[key], before[key], "{end}: {key}");
            }
            answers.push(answer);
        }
        assert_eq!(answers[0]["cancel_requested"], true);
        assert_eq!(answers[1]["cancel_requested_by_peer_id"], "ada", "the first one stays");
        let kinds = kinds(&world, &id).await;
        assert_eq!(kinds[kinds.len() - 2..], ["job.cancel_requested/1", "job.cancel_repeated/1"]);
    }
}

#[tokio::test]
async fn work_that_was_asked_to_stop_is_not_begun_again() {
    let world = world().await;
    for end in ["failed", "unavailable"] {
        let id = world.create(json!({})).await;
        world.patch(&id, json!({ "state": end })).send().await.ok();
        world.post(&format!("/jobs/{id}/cancel"), json!({})).send().await.ok();
        let before = kinds(&world, &id).await;
        for verb in ["run", "retry"] {
            let refused = world.call("POST", &format!("/jobs/{id}/{verb}")).send().await;
            refused.problem(409, "cancel_requested");
        }
        assert_eq!(world.status(&id).await["state"], end);
        assert_eq!(kinds(&world, &id).await, before);
        let why = world.get(&format!("/jobs/{id}/why")).send().await.body;
        assert!(why.contains("so it is not begun again: create a new job"), "{why}");
        assert!(!why.contains("makes a new attempt"), "{why}");
    }
}

// conforms: R21
#[tokio::test]
async fn repeated_cancels_leave_a_bounded_trace_and_the_same_answer() {
    let world = world().await;
    let (id, _) = world.delivered().await;
    let path = format!("/jobs/{id}/cancel");
    for _ in 0..31 {
        let answer = world.post(&path, json!({ "reason": "again" })).send().await.ok();
        assert_eq!(answer["status"]["state"], "delivered");
    }
    world.clock.advance_seconds(1);
    let mut ledger = world.daemon.ledger();
    let counted = loop {
        ledger.borrow_and_update();
        let facts = world.get(&format!("/jobs/{id}/facts")).send().await.ok()["facts"].clone();
        let counted = |kind: &str| {
            facts.as_array().unwrap().iter().filter(|fact| fact["kind"] == kind).cloned().collect::<Vec<_>>()
        };
        if let [one] = &counted("job.cancel_repeats_counted/1")[..] {
            assert_eq!(counted("job.cancel_repeated/1").len(), 10);
            break one.clone();
        }
        ledger.changed().await.unwrap();
    };
    assert_eq!(counted["payload"]["cancel_repeats_counted"]["count"], 20, "{counted}");
}

// conforms: O106 O134 O23 O78 L6
#[tokio::test]
async fn work_whose_connector_has_no_cancel_says_so_in_place_of_a_link() {
    let world = working_world().await;
    for (executor, reason) in [("brakeless", Some("the press has no brake")), ("submits", None)] {
        let call = json!({ "input": { "ends": "never" }, "timing": { "mode": "async" } });
        let handle = world.post(&format!("/v1/capabilities/{executor}/invoke"), call).send().await.value();
        let job = handle["audit/outcome-ref"].as_str().unwrap().to_owned();
        world.until(&job, "awaiting_external").await;
        let status = world.get(handle["status_href"].as_str().unwrap()).send().await.ok();
        for document in [&handle, &status["extensions"]] {
            assert_eq!(document["cancel/unavailable-reason"].as_str(), reason, "{document}");
            assert_eq!(document["cancel_href"].is_string(), reason.is_none(), "{document}");
        }
        let cancel = handle["status_href"].as_str().unwrap().replace("/status", "/cancel");
        let answer = world.post(&cancel, json!({})).send().await;
        match reason {
            Some(reason) => {
                assert_eq!(answer.problem(409, "not_cancelable")["detail"], reason);
                assert_eq!(world.status(&job).await["cancel_requested"], false);
            }
            None => assert_eq!(answer.status, 202, "{}", answer.body),
        }
    }
}

// conforms: O134 O75 O78
#[tokio::test]
async fn cancel_during_a_submit_that_nobody_can_stop_never_says_cancelled() {
    let deny = KindOverride { cancel_policy: Some(CancelPolicy::Deny), ..KindOverride::default() };
    let denying = HostPolicy { defaults: deny, ..HostPolicy::default() };
    for (executor, policy, reason) in [
        ("brakeless", HostPolicy::default(), "the press has no brake"),
        ("submits", denying, "denied by the host's policy"),
    ] {
        let world = world_with_policy(policy).await;
        let call = json!({ "input": { "slowly": true }, "timing": { "mode": "async" } });
        let handle = world.post(&format!("/v1/capabilities/{executor}/invoke"), call).send().await.value();
        assert_eq!(handle["cancel/unavailable-reason"], reason);
        let job = handle["audit/outcome-ref"].as_str().unwrap().to_owned();
        UNDER_WAY.acquire().await.unwrap().forget();
        let cancel = handle["status_href"].as_str().unwrap().replace("/status", "/cancel");
        let refused = world.post(&cancel, json!({})).send().await;
        assert_eq!(refused.problem(409, "not_cancelable")["detail"], reason);
        // The face of the job keeps the request, and says why nothing comes of it.
        let status =
            world.post(&format!("/jobs/{job}/cancel"), json!({})).send().await.ok()["status"].clone();
        assert_eq!(told(&status), (false, "unavailable", "not_cancelable"));
        pass_the_time_limit(&world).await;
        assert!(!["cancelled", "failed"].contains(&world.status(&job).await["state"].as_str().unwrap()));
        TAKEN.add_permits(1);
        let status = world.until(&job, "awaiting_external").await;
        assert_eq!(told(&status), (false, "unavailable", "not_cancelable"));
        let due_at = status["runner"]["outside"]["next_poll_at"].as_str().unwrap();
        let due_at: jiff::Timestamp = due_at.parse().unwrap();
        world.clock.set(domain::Timestamp::from_micros(due_at.as_microsecond()));
        assert_eq!(world.until(&job, "completed").await["cancel_requested"], true);
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
