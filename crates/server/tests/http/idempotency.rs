//! Writes that are repeated.

use serde_json::{Value, json};

use crate::given::{Answer, World, world};

async fn count(world: &World) -> usize {
    world.get("/jobs?limit=1000").send().await.ok()["work"].as_array().expect("a list").len()
}

#[tokio::test]
async fn same_key_and_request_get_the_first_answer_byte_for_byte() {
    let world = world().await;
    let first = world.post("/jobs", json!({ "title": "t" })).key("k").send().await;
    first.ok();
    assert!(!first.headers.contains_key("idempotent-replayed"));
    world.clock.advance_seconds(60);
    for key in ["k", "\"k\""] {
        let again = world.call("POST", "/work").text("{ \"title\" : \"t\" }").key(key).send().await;
        assert_eq!(
            (again.status, &again.body),
            (200, &first.body),
            "white space and quotes make no difference"
        );
        assert_eq!(again.headers["idempotent-replayed"], "true");
    }
    assert_eq!(count(&world).await, 1);
}

#[tokio::test]
async fn same_key_and_another_request_are_a_conflict() {
    let world = world().await;
    world.post("/jobs", json!({ "title": "t" })).key("k").send().await.ok();
    world.post("/jobs", json!({ "title": "u" })).key("k").send().await.problem(409, "idempotency_key_reused");
    assert_eq!(count(&world).await, 1);
}

#[tokio::test]
async fn key_in_the_body_is_the_key_in_the_header() {
    let world = world().await;
    let body = json!({ "title": "t", "idempotency_key": "k" });
    let first = world.post("/jobs", body.clone()).send().await;
    let again = world.post("/jobs", body.clone()).key("k").send().await;
    assert_eq!(first.body, again.body);
    // Said in the header alone it is the same key of the same request; and in a batch.
    let in_header = world.post("/jobs", json!({ "title": "t" })).key("k").send().await;
    assert_eq!((in_header.status, &in_header.body), (200, &first.body));
    let batch = world.post("/jobs/batch", json!({ "jobs": [body] })).send().await.ok();
    assert_eq!(batch["results"][0]["job_id"], first.ok()["job_id"]);
    let other_first = world.post("/jobs", json!({ "title": "u" })).key("h").send().await;
    let in_body = json!({ "title": "u", "idempotency_key": "h" });
    assert_eq!(world.post("/jobs", in_body).send().await.body, other_first.body);
    assert_eq!(count(&world).await, 2);
    world.post("/jobs", body).key("other").send().await.problem(422, "invalid_idempotency_key");
    let long = "k".repeat(256);
    world.post("/jobs", json!({})).key(&long).send().await.problem(422, "invalid_idempotency_key");
    world.post("/jobs", json!({})).key("\"\"").send().await.problem(422, "invalid_idempotency_key");
    world
        .post("/jobs", json!({ "idempotency_key": "" }))
        .send()
        .await
        .problem(422, "invalid_idempotency_key");
}

#[tokio::test]
async fn refused_request_does_not_use_its_key_up() {
    let world = world().await;
    world.post("/jobs", json!({ "tilte": 1 })).key("k").send().await.problem(422, "invalid_request");
    let past = json!({ "deadline_at": "2025-01-01T00:00:00Z" });
    world.post("/jobs", past).key("k").send().await.problem(422, "deadline_elapsed");
    world.post("/jobs", json!({})).key("k").send().await.ok();
}

#[tokio::test]
async fn keys_of_two_callers_are_two_keys() {
    let world = world().await;
    let other = world.token(api::Role::Operator, json!({})).await;
    let mine = world.post("/jobs", json!({})).key("k").send().await.ok();
    let theirs = world.post("/jobs", json!({})).key("k").bearer(&other).send().await.ok();
    assert_ne!(mine["job_id"], theirs["job_id"]);
}

#[tokio::test]
async fn every_other_write_is_repeated_safely_too() {
    let world = world().await;
    let (id, attempt) = world.delivered().await;
    let report = json!({ "state": "running", "attempt_id": attempt, "progress_note": "once" });
    let first = world.patch(&id, report.clone()).key("p").send().await;
    first.ok();
    let over = json!({ "state": "completed", "attempt_id": attempt });
    world.patch(&id, over).send().await.ok();
    // The job has moved on; the answer of then stands.
    let again = world.patch(&id, report.clone()).key("p").send().await;
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(world.status(&id).await["progress_events"].as_array().unwrap().len(), 1);
    let other = world.create(json!({})).await;
    world.patch(&other, report).key("p").send().await.problem(409, "idempotency_key_reused");

    for (path, body) in
        [(format!("/jobs/{other}/cancel"), json!({})), (format!("/jobs/{id}/purge"), json!({}))]
    {
        let first = world.post(&path, body.clone()).key("w").send().await;
        first.ok();
        world.clock.advance_seconds(1);
        assert_eq!(world.post(&path, body).key("w").send().await.body, first.body, "{path}");
    }
}

#[tokio::test]
async fn run_under_a_key_makes_one_attempt() {
    let world = world().await;
    let id = world.create(json!({ "executor": "fails" })).await;
    let path = format!("/jobs/{id}/run");
    let first = world.call("POST", &path).key("r").send().await;
    first.ok();
    world.until(&id, "failed").await;
    let again = world.call("POST", &path).key("r").send().await;
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(world.status(&id).await["runner"]["attempt_count"], 1);
}

#[tokio::test]
async fn answer_that_is_too_large_to_keep_is_cut_the_same_for_the_first_and_the_repeated_call() {
    let world = world().await;
    let body = json!({ "title": "t", "prompt": "x".repeat(100_000) });
    let first = world.post("/jobs", body.clone()).key("k").send().await;
    let answer = first.ok();
    assert!(first.body.len() < 65_536);
    assert_eq!(answer["status"].as_object().unwrap().len(), 35);
    assert_eq!(world.post("/jobs", body).key("k").send().await.body, first.body);
    let id = answer["job_id"].as_str().unwrap();
    let prompt = &world.status(id).await["execution"]["prompt"]["body"];
    assert_eq!(prompt.as_str().unwrap().len(), 100_000, "the job itself is whole");
}

#[tokio::test]
async fn keys_outlive_a_day() {
    let world = world().await;
    let first = world.post("/jobs", json!({})).key("k").send().await;
    let id = first.ok()["job_id"].as_str().unwrap().to_owned();
    world.patch(&id, json!({ "state": "completed" })).send().await.ok();
    world.clock.advance_seconds(6 * 86_400);
    let again = world.post("/jobs", json!({})).key("k").send().await;
    assert_eq!(again.body, first.body, "as long as the record is there, so is its answer");
}

#[tokio::test]
async fn of_many_at_once_under_one_key_one_job_is_made() {
    let world = world().await;
    let calls = (0..16).map(|_| world.post("/jobs", json!({ "title": "once" })).key("k").send());
    let bodies: Vec<Value> = futures::future::join_all(calls).await.iter().map(Answer::ok).collect();
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(count(&world).await, 1);
}
