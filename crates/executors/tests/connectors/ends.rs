//! How a service may end work in its own words, and what its operator wants done then.

use domain::job::{AttemptLimit, JobStateName};
use domain::limit::LimitValue;
use domain::operation::OperationStatus;
use serde_json::json;

use crate::service::{Service, reply};
use crate::submits::connector;
use crate::world::World;

/// A service that takes the work under an id of its own and answers every poll with this state.
fn service(state: &'static str) -> Service {
    Service::start(move |asked| match asked.method.as_str() {
        "POST" => reply(202, json!({ "id": "r-1", "state": "queued" })),
        _ => reply(200, json!({ "id": "r-1", "state": state, "output": 1 })),
    })
}

fn file(service: &Service) -> String {
    connector(service, "  idempotent: true")
        .replace("slow: timed-out", "slow: timed-out, lapsed: expired, lost: unknown")
}

// conforms: O127
#[tokio::test]
async fn connector_reports_that_the_work_expired_there() {
    let service = service("lapsed");
    let world = World::new(&file(&service));
    let id = world.create(r#"{"scene":"forest"}"#, 8).await;
    world.until_state(&id, JobStateName::AwaitingExternal).await;
    assert_eq!(world.operation(&id).external_job_id.as_deref(), Some("r-1"));
    let operation = world.next_poll(&id).await;
    assert_eq!((operation.status(), operation.orphan()), (OperationStatus::Expired, None));
    assert_eq!(world.until_state(&id, JobStateName::Expired).await.attempt_count, 1);
    // And with every other word.
    for (state, status) in [
        ("queued", OperationStatus::Pending),
        ("rendering", OperationStatus::Running),
        ("done", OperationStatus::Completed),
        ("broken", OperationStatus::Failed),
        ("slow", OperationStatus::TimedOut),
        ("stopped", OperationStatus::Cancelled),
        ("lost", OperationStatus::Unknown),
    ] {
        let service = self::service(state);
        let world = World::new(&file(&service));
        let id = world.create(r#"{"scene":"forest"}"#, 1).await;
        world.until_state(&id, JobStateName::AwaitingExternal).await;
        assert_eq!(world.next_poll(&id).await.status(), status, "{state}");
    }
}

#[tokio::test]
async fn timed_out_work_is_submitted_again_only_if_its_file_says_so() {
    let service = service("slow");
    let again = "policy: { timed_out_policy: resubmit, ";
    for (file, state) in [
        (file(&service), JobStateName::Failed),
        (file(&service).replace("policy: { ", again), JobStateName::Queued),
    ] {
        let world = World::new(&file);
        let id = world.create(r#"{"scene":"forest"}"#, 8).await;
        world.until_state(&id, JobStateName::AwaitingExternal).await;
        world.next_poll(&id).await;
        let job = world.until_state(&id, state).await;
        assert_eq!(job.attempt_count, 1);
    }
}

// conforms: O32
#[tokio::test]
async fn failed_work_is_submitted_again_only_if_its_service_says_so() {
    for (again, state) in [
        (json!(null), JobStateName::Failed),
        (json!(false), JobStateName::Failed),
        (json!("true"), JobStateName::Failed),
        (json!(true), JobStateName::Queued),
    ] {
        let told = again.clone();
        let service = Service::start(move |asked| match asked.method.as_str() {
            "POST" => reply(202, json!({ "id": "r-1", "state": "queued" })),
            _ => reply(200, json!({ "id": "r-1", "state": "broken", "again": told })),
        });
        let world = World::new(&file(&service).replace("read:\n", "read:\n  retryable: answer.body.again\n"));
        let id = world.create(r#"{"scene":"forest"}"#, 8).await;
        world.until_state(&id, JobStateName::AwaitingExternal).await;
        assert_eq!(world.next_poll(&id).await.status(), OperationStatus::Failed);
        assert_eq!(world.until_state(&id, state).await.attempt_count, 1, "{again}");
    }
}

#[tokio::test]
async fn submit_that_is_not_answered_in_time_names_its_limit() {
    let service = Service::start(|_| crate::service::Reply::Hang);
    let world = World::new(&file(&service));
    let id = world.create(r#"{"scene":"forest"}"#, 1).await;
    let job = world.until_state(&id, JobStateName::Failed).await;
    let told = world.error(&job)["message"].as_str().unwrap().to_owned();
    assert!(told.contains("submit.timeout_ms = 500") && told.contains("invoke_timeout_ms"), "{told}");
    let Some(AttemptLimit::Other(limit)) = &job.limit else { panic!("{:?}", job.limit) };
    assert_eq!((&*limit.name, limit.value), ("submit.timeout_ms", LimitValue::Millis(500)));
    assert_eq!(limit.key, "submit.timeout_ms in the connector file, or policy.invoke_timeout_ms there");
}
