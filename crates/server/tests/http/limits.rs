//! What is bounded.

use serde_json::{Value, json};

use crate::given::world;

// conforms: R60
#[tokio::test]
async fn only_the_last_hundred_notes_are_kept() {
    let world = world().await;
    let id = world.create(json!({})).await;
    for number in 0..105 {
        let report = json!({ "state": "running", "progress_note": format!("note {number}") });
        world.patch(&id, report).send().await.ok();
    }
    let events = world.status(&id).await["progress_events"].clone();
    assert_eq!(events.as_array().unwrap().len(), 100);
    assert_eq!(events[0]["note"], "note 5");
    assert_eq!(events[99]["note"], "note 104");
}

// conforms: R25 R113
#[tokio::test]
async fn only_the_last_fifty_attempts_are_kept_whole_and_the_rest_are_counted() {
    let world = world().await;
    let id = world.create(json!({ "executor": "fails" })).await;
    for _ in 0..53 {
        world.call("POST", &format!("/jobs/{id}/run")).send().await.ok();
    }
    let runner = world.status(&id).await["runner"].clone();
    assert_eq!(runner["attempt_count"], 53);
    assert_eq!(runner["attempts"].as_array().unwrap().len(), 50);
    for (attempt, number) in runner["attempts"].as_array().unwrap().iter().zip(4..) {
        assert_eq!((&attempt["number"], &attempt["executor"]), (&json!(number), &json!("fails")));
        // Nothing but the failure was heard of it.
        assert_eq!((&attempt["status"], &attempt["delivery_state"]), (&json!("failed"), &json!("failed")));
        assert_eq!(attempt["error"]["reason"], "out_of_paper");
    }
}

// conforms: R60 R65
#[tokio::test]
async fn what_is_over_its_limit_is_refused_by_name_and_changes_nothing() {
    let world = world().await;
    let long = |bytes: usize| "x".repeat(bytes);
    for (body, what) in [
        (json!({ "title": long(1_025) }), "title"),
        (json!({ "kind": long(257) }), "kind"),
        (json!({ "owner_peer_id": long(129) }), "owner_peer_id"),
        (json!({ "prompt": long(1_048_577) }), "prompt"),
        (json!({ "input": long(1_048_577) }), "input"),
        (json!({ "request": { "x": long(1_048_577) } }), "request"),
        (json!({ "provenance": { "x": long(1_048_577) } }), "provenance"),
        (json!({ "tags": vec!["t"; 33] }), "tags"),
        (json!({ "profile": long(5_000) }), "execution"),
    ] {
        let problem = world.post("/jobs", body).send().await.problem(422, "too_large");
        assert_eq!(problem["errors"][0]["loc"], json!(["body", what]));
    }
    assert_eq!(world.get("/jobs").send().await.ok()["work"], json!([]));
    let id = world.create(json!({})).await;
    for (key, value) in [
        ("progress_note", json!(long(2_049))),
        ("progress", json!({ "x": long(2_049) })),
        ("phase", json!(long(257))),
        ("result_summary", json!(long(4_097))),
        ("result_data", json!({ "x": long(1_048_577) })),
    ] {
        let mut report = json!({ "state": "completed" });
        report[key] = value;
        world.patch(&id, report).send().await.problem(422, "too_large");
    }
    assert_eq!(world.status(&id).await["state"], "queued");
}

#[tokio::test]
async fn prompt_and_result_of_a_mebibyte_fit() {
    let world = world().await;
    let id = world.create(json!({ "prompt": "x".repeat(1_048_576) })).await;
    let data = json!({ "x": "y".repeat(1_048_576 - 8) });
    let report = json!({ "state": "completed", "result_data": data });
    world.patch(&id, report).send().await.ok();
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok();
    assert_eq!(result["result"]["data"], data);
}

#[tokio::test]
async fn body_over_the_limit_is_413_whether_it_says_so_or_not() {
    let world = world().await;
    let large: Value = json!({ "title": "x".repeat(6 * 1_048_576) });
    world.post("/jobs", large).send().await.problem(413, "body_too_large");
    let id = world.create(json!({})).await;
    let small = json!({ "reason": "x".repeat(70_000) });
    world.post(&format!("/jobs/{id}/cancel"), small).send().await.problem(413, "body_too_large");
    let chunked = format!("{:x}\r\n{}\r\n0\r\n\r\n", 70_000, "x".repeat(70_000));
    let call = world.call("POST", &format!("/jobs/{id}/cancel")).bytes(chunked.as_bytes());
    let call = call.header("content-type", "application/json").header("transfer-encoding", "chunked");
    call.without_length().send().await.problem(413, "body_too_large");
}
