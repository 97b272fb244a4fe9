//! Reports by PATCH.

use serde_json::json;

use crate::given::{START_TEXT, world};

// conforms: R18 R49 R50 R51
#[tokio::test]
async fn unmanaged_job_is_moved_by_its_doer_and_notes_are_kept() {
    let world = world().await;
    let id = world.create(json!({})).await;
    for (state, note) in
        [("running", "began"), ("awaiting_input", "may I?"), ("blocked", "no"), ("running", "")]
    {
        let report =
            json!({ "state": state, "phase": "inking", "state_reason": "because", "progress_note": note });
        for route in ["jobs", "work"] {
            let answer = world.call("PATCH", &format!("/{route}/{id}")).json(&report).send().await.ok();
            assert_eq!(answer["status"]["state"], state);
        }
    }
    let status = world.status(&id).await;
    assert_eq!((&status["phase"], &status["state_reason"]), (&json!("inking"), &json!("because")));
    assert_eq!(status["progress_events"].as_array().unwrap().len(), 6);
    assert_eq!(
        status["progress_events"][0],
        json!({ "at": START_TEXT, "note": "began", "state": "running", "phase": "inking" })
    );
}

#[tokio::test]
async fn report_of_the_same_state_clears_reason_and_phase() {
    let world = world().await;
    for empty in
        [json!({ "state": "running" }), json!({ "state": "running", "phase": null, "state_reason": null })]
    {
        let id = world.create(json!({})).await;
        let report = json!({ "state": "running", "phase": "inking", "state_reason": "because" });
        world.patch(&id, report).send().await.ok();
        let status = world.patch(&id, empty.clone()).send().await.ok()["status"].clone();
        assert_eq!((&status["phase"], &status["state_reason"]), (&json!(null), &json!(null)), "{empty}");
        // Once there is nothing to clear, it says nothing and leaves nothing.
        let facts = world.get(&format!("/jobs/{id}/facts")).send().await.ok()["facts"].clone();
        world.patch(&id, empty).send().await.ok();
        assert_eq!(world.get(&format!("/jobs/{id}/facts")).send().await.ok()["facts"], facts);
    }
    let id = world.create(json!({})).await;
    world.patch(&id, json!({ "state": "failed", "state_reason": "no_paper" })).send().await.ok();
    let status = world.patch(&id, json!({ "state": "failed" })).send().await.ok()["status"].clone();
    assert_eq!(status["state_reason"], "no_paper", "what is over keeps why");
    // Only who says so takes it away.
    let clear = json!({ "state": "failed", "state_reason": null, "phase": null });
    let status = world.patch(&id, clear.clone()).send().await.ok()["status"].clone();
    assert_eq!((&status["phase"], &status["state_reason"]), (&json!(null), &json!(null)));
    let facts = world.get(&format!("/jobs/{id}/facts")).send().await.ok()["facts"].clone();
    world.patch(&id, clear).send().await.ok();
    assert_eq!(world.get(&format!("/jobs/{id}/facts")).send().await.ok()["facts"], facts);
}

#[tokio::test]
async fn reason_and_phase_are_overwritten_and_progress_stays_when_left_out() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let report =
        json!({ "state": "running", "phase": "a", "state_reason": "b", "progress": { "done": 0.50 } });
    world.patch(&id, report).send().await.ok();
    let status =
        world.patch(&id, json!({ "state": "running", "progress_note": "n" })).send().await.ok()["status"]
            .clone();
    assert_eq!((&status["phase"], &status["state_reason"]), (&json!(null), &json!(null)));
    assert_eq!(status["progress"], json!({ "done": 0.5 }));
    assert_eq!(
        status["progress_events"][0]["phase"], "a",
        "the phase before is the note's when none is sent"
    );
}

/// Every state that a report can name.
const REPORTED_STATES: [&str; 12] = [
    "queued",
    "dispatching",
    "delivered",
    "running",
    "awaiting_input",
    "awaiting_external",
    "blocked",
    "completed",
    "failed",
    "cancelled",
    "expired",
    "unavailable",
];

// conforms: R19
#[tokio::test]
async fn stale_or_foreign_attempt_is_a_conflict_for_every_state() {
    let world = world().await;
    let (id, attempt) = world.delivered().await;
    for state in REPORTED_STATES {
        let report = json!({ "state": state, "attempt_id": "attempt-of-another" });
        let problem = world.patch(&id, report).send().await.problem(409, "stale_attempt");
        assert_eq!(problem["detail"], "stale attempt_id");
        let problem =
            world.patch(&id, json!({ "state": state })).send().await.problem(400, "attempt_required");
        assert_eq!(problem["detail"], "attempt_id is required for runner-managed job updates");
    }
    world.patch(&id, json!({ "state": "running", "attempt_id": attempt })).send().await.ok();
    let failed = json!({ "state": "failed", "attempt_id": attempt });
    world.patch(&id, failed).send().await.ok();
    let unmanaged = world.create(json!({})).await;
    let report = json!({ "state": "running", "attempt_id": attempt });
    world.patch(&unmanaged, report).send().await.problem(409, "stale_attempt");

    // Another attempt holds the job now: whoever had it before says nothing any more.
    let (id, first) = world.delivered().await;
    world.call("POST", &format!("/jobs/{id}/retry")).send().await.ok();
    let second = world.attempt_of(&id).await;
    assert_ne!(second, first);
    for state in REPORTED_STATES {
        let report = json!({ "state": state, "attempt_id": first, "result_summary": "late" });
        world.patch(&id, report).send().await.problem(409, "stale_attempt");
        let status = world.status(&id).await;
        assert_eq!(
            (&status["state"], &status["result_summary"]),
            (&json!("delivered"), &json!(null)),
            "{state}"
        );
    }
    let completed = json!({ "state": "completed", "attempt_id": second });
    assert_eq!(world.patch(&id, completed).send().await.ok()["status"]["state"], "completed");
}

// conforms: R41 R42 R43
#[tokio::test]
async fn terminal_job_takes_the_same_state_with_more_and_no_other() {
    let world = world().await;
    let id = world.create(json!({})).await;
    let first = json!({ "state": "completed", "result_summary": "12 pages", "result_data": { "pages": 12 } });
    world.patch(&id, first).send().await.ok();
    let problem = world.patch(&id, json!({ "state": "running" })).send().await.problem(400, "terminal");
    assert_eq!(
        problem["detail"],
        format!("terminal work {id} is already completed; terminal state cannot be changed")
    );
    let more = json!({ "state": "completed", "artifacts": ["cover.pdf"], "progress_note": "filed" });
    world.patch(&id, more).send().await.ok();
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
    assert_eq!(result["summary"], "12 pages");
    assert_eq!(result["data"], json!({ "pages": 12 }));
    assert_eq!(result["artifacts"], json!(["cover.pdf"]));
}

#[tokio::test]
async fn given_provenance_replaces_the_creators_and_leaves_the_runners() {
    let world = world().await;
    let id = world.create(json!({ "provenance": { "by": "chat", "links": { "a": 1 } } })).await;
    let report = json!({ "state": "running", "provenance": { "links": { "b": 2 }, "runner": "forged" } });
    let status = world.patch(&id, report).send().await.ok()["status"].clone();
    assert_eq!(status["provenance"], json!({ "links": { "b": 2 }, "runner": "forged" }));
    assert_eq!(status["links"], json!({ "b": 2 }));
    assert_eq!(status["runner"], json!({}));

    let (id, attempt) = world.delivered().await;
    let report =
        json!({ "state": "running", "attempt_id": attempt, "provenance": { "runner": "forged", "x": 1 } });
    let status = world.patch(&id, report).send().await.ok()["status"].clone();
    assert_eq!(status["provenance"]["x"], 1);
    let alias = server::attempt_alias(&attempt);
    assert_eq!(status["provenance"]["runner"]["current_attempt_id"], alias.as_str());
    world.patch(&id, json!({ "state": "completed", "attempt_id": attempt })).send().await.ok();
}

#[tokio::test]
async fn checks_come_in_the_order_of_the_contract() {
    let world = world().await;
    let id = world.create(json!({})).await;
    world.patch(&id, json!({})).send().await.problem(422, "invalid_request");
    let problem = world
        .patch(&id, json!({ "state": "running", "notes": [] }))
        .send()
        .await
        .problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["loc"], json!(["body", "notes"]));
    world.patch("work-0", json!({ "state": "done" })).send().await.problem(400, "invalid_value");
    world.patch("work-0", json!({ "state": "running" })).send().await.problem(404, "not_found");
    world.patch("cal-1", json!({ "state": "running" })).send().await.problem(404, "not_found");
}

// conforms: R54
#[tokio::test]
async fn a_move_that_the_state_does_not_have_is_refused() {
    let world = world().await;
    let id = world.create(json!({})).await;
    for state in ["dispatching", "delivered", "awaiting_external"] {
        world.patch(&id, json!({ "state": state })).send().await.problem(409, "transition_refused");
    }
    world.patch(&id, json!({ "state": "running" })).send().await.ok();
    world.patch(&id, json!({ "state": "queued" })).send().await.problem(409, "transition_refused");
}

// conforms: R44 R45 R63
#[tokio::test]
async fn every_state_of_the_contract_is_a_word_here_and_the_five_ends_are_ends() {
    let world = world().await;
    for (state, ends) in [
        ("running", false),
        ("awaiting_input", false),
        ("blocked", false),
        ("completed", true),
        ("failed", true),
        ("cancelled", true),
        ("expired", true),
        ("unavailable", true),
    ] {
        let id = world.create(json!({})).await;
        let report = json!({ "state": state, "result_data": { "pages": 12 } });
        let status = world.patch(&id, report).send().await.ok()["status"].clone();
        assert_eq!(status["state"], state);
        let result = world.get(&format!("/jobs/{id}/result")).send().await.ok()["result"].clone();
        assert_eq!(result.get("result_state").is_none(), ends, "{state}");
        assert_eq!(result["data"] == json!({ "pages": 12 }), ends, "{state}");
    }
    for state in ["queued", "dispatching", "delivered"] {
        assert!(world.get(&format!("/jobs?state={state}")).send().await.status == 200);
    }
}
