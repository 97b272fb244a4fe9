//! Purges.

use std::sync::Arc;

use domain::operation::{Cancelability, NewOperation, OperationCommand};
use domain::policy::{Hint, KindPolicy};
use domain::{AttemptId, Jitter, JobId, MAX_CONSEQUENCES, OperationId};
use engine::Order;
use serde_json::json;
use store::Store;

use crate::given::world;

/// Work that may run outside and that nobody waits for: it is over at once.
fn orphan(job: &JobId) -> OperationCommand {
    let operation = NewOperation {
        job_id: job.clone(),
        attempt_id: AttemptId::new("attempt-1"),
        kind: "render".to_owned(),
        specialist: "farm".to_owned(),
        circle: None,
        handle: None,
        cancelability: Cancelability::NotCancelable("nobody knows its handle".to_owned()),
        retry_after: Hint::Absent,
        fail_after: Hint::Absent,
        action_ttl: Hint::Absent,
        deadline_at: None,
        progress_hint: None,
        policy: KindPolicy::default(),
        ttl_limit: None,
        external_job_id: None,
        jitter: Jitter::default(),
    };
    OperationCommand::AcceptOrphan { operation: Box::new(operation), reason: "lost".to_owned() }
}

#[tokio::test]
async fn purge_reaches_more_operations_than_one_commit_holds() {
    const OPERATIONS: usize = 2 * MAX_CONSEQUENCES + 7;
    let world = world().await;
    let id = world.create(json!({ "title": "t", "prompt": "private" })).await;
    let job = JobId::new(&*id);
    for number in 0..OPERATIONS {
        let operation = OperationId::new(format!("op-{number}"));
        let order = Order::new(operation, orphan(&job), Arc::from("test"));
        world.daemon.engine().execute(order).await.unwrap();
    }
    let purged = async || {
        let all = world.store.operations_of(&job, 2 * OPERATIONS).await.unwrap();
        all.iter().filter(|record| record.as_operation().is_some_and(|one| one.purged)).count()
    };
    world.call("POST", &format!("/jobs/{id}/purge")).send().await.problem(409, "not_terminal");
    assert_eq!(purged().await, 0, "a purge that is refused deletes nothing");
    world.patch(&id, json!({ "state": "completed" })).send().await.ok();
    world.call("POST", &format!("/jobs/{id}/purge")).send().await.ok();
    assert_eq!(purged().await, OPERATIONS);
}

#[tokio::test]
async fn purged_job_keeps_its_record_and_loses_its_bodies() {
    let world = world().await;
    let id = world.create(json!({ "title": "t", "prompt": "private", "request": { "x": 1 } })).await;
    let path = format!("/jobs/{id}/purge");
    world.call("POST", &path).send().await.problem(409, "not_terminal");
    let report = json!({ "state": "completed", "result_summary": "s", "result_data": { "secret": 1 } });
    world.patch(&id, report).send().await.ok();
    world.call("POST", &path).send().await.ok();
    world.call("POST", &path).send().await.ok();
    let status = world.get(&format!("/jobs/{id}")).send().await;
    assert_eq!(status.ok()["status"]["state"], "completed");
    assert!(!status.body.contains("private"));
    assert_eq!(status.ok()["status"]["title"], "");
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok();
    assert_eq!((&result["result"]["data"], &result["result"]["summary"]), (&json!(null), &json!("s")));
}

#[tokio::test]
async fn purged_job_is_not_run_again_and_says_why() {
    let world = world().await;
    let once = json!({ "max_attempts": 1 });
    let asked = json!({ "title": "cat secret", "executor": "hands_over", "input": [1], "retry": once });
    let id = world.create(asked).await;
    world.call("POST", &format!("/jobs/{id}/run")).send().await.ok();
    let attempt = world.attempt_of(&id).await;
    world.patch(&id, json!({ "state": "failed", "attempt_id": attempt })).send().await.ok();
    world.call("POST", &format!("/jobs/{id}/purge")).send().await.ok();
    // What was deleted does not come back, and nothing new is kept beside it.
    let note = json!({ "state": "failed", "attempt_id": attempt, "error": { "message": "late" } });
    world.patch(&id, note).send().await.problem(409, "purged");
    for order in ["run", "retry"] {
        world.call("POST", &format!("/jobs/{id}/{order}")).send().await.problem(409, "purged");
    }
    let why = world.get(&format!("/jobs/{id}/why")).send().await.ok();
    let codes: Vec<_> = why["reasons"].as_array().unwrap().iter().map(|reason| &reason["code"]).collect();
    assert_eq!(codes, ["over", "purged", "limit"]);
    let status = world.get(&format!("/jobs/{id}")).send().await;
    assert!(!status.body.contains("secret"), "{}", status.body);
    assert_eq!(status.ok()["status"]["runner"]["attempt_count"], 1);
}
