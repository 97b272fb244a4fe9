//! Many jobs at once.

use serde_json::json;

use crate::given::world;

#[tokio::test]
async fn each_job_of_a_batch_has_its_own_verdict_in_order() {
    let world = world().await;
    let batch =
        json!({ "jobs": [{ "title": "a" }, { "tilte": "b" }, 5, { "title": "c", "cron": "@daily" }, {}] });
    let answer = world.post("/jobs/batch", batch).send().await.ok();
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(2), &json!(3)));
    let results = answer["results"].as_array().unwrap();
    let statuses: Vec<u64> = results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 422, 422, 422, 200]);
    for (index, result) in results.iter().enumerate() {
        assert_eq!(result["index"], index);
        assert_ne!(result.get("job_id").is_some(), result.get("problem").is_some());
    }
    let id = results[0]["job_id"].as_str().unwrap();
    assert_eq!(world.status(id).await["title"], "a");
    assert_eq!(results[3]["problem"]["code"], "calendars_unavailable");
}

#[tokio::test]
async fn thousand_jobs_are_accepted_in_few_syncs() {
    let world = world().await;
    let before = world.store.figures().batches();
    let jobs: Vec<_> = (0..1_000).map(|number| json!({ "title": format!("{number}") })).collect();
    let answer = world.post("/jobs/batch", json!({ "jobs": jobs })).send().await.ok();
    assert_eq!(answer["accepted"], 1_000);
    let batches = world.store.figures().batches() - before;
    assert!(batches < 500, "{batches} transactions for a thousand jobs");
    let mut more: Vec<_> = (0..1_001).map(|_| json!({})).collect();
    world.post("/jobs/batch", json!({ "jobs": more })).send().await.problem(422, "invalid_request");
    more = Vec::new();
    world.post("/jobs/batch", json!({ "jobs": more })).send().await.problem(422, "invalid_request");
}

#[tokio::test]
async fn repeated_batch_makes_no_job_twice() {
    let world = world().await;
    let batch =
        json!({ "jobs": [{ "title": "a" }, { "title": "b", "idempotency_key": "own" }, { "tilte": 1 }] });
    let first = world.post("/jobs/batch", batch.clone()).key("k").send().await.ok();
    let again = world.post("/jobs/batch", batch).key("k").send().await.ok();
    for index in 0..2 {
        assert_eq!(first["results"][index]["job_id"], again["results"][index]["job_id"]);
        assert_eq!(again["results"][index]["replayed"], true);
    }
    assert_eq!(again["results"][2]["status"], 422);
    let other = json!({ "jobs": [{ "title": "another" }] });
    let answer = world.post("/jobs/batch", other).key("k").send().await.ok();
    assert_eq!(answer["results"][0]["problem"]["code"], "idempotency_key_reused");
    assert_eq!(world.get("/jobs").send().await.ok()["work"].as_array().unwrap().len(), 2);
}
