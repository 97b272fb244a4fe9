//! Manners that say something else than how it is.

use serde_json::{Value, json};

use crate::given::{Reply, ask, seconds, service, start, start_as, status};

async fn states(service: &slow_service::SlowService, id: &str, count: usize) -> Vec<String> {
    let mut states = Vec::new();
    for _ in 0..count {
        states.push(status(service, id).await.state());
    }
    states
}

#[tokio::test]
async fn never_ends_is_running_after_its_time_and_can_be_cancelled() {
    let (service, hand) = service().await;
    let id = start_as(&service, "never_ends").await;
    hand.advance(seconds(1_000_000));
    assert_eq!(states(&service, &id, 3).await, ["running", "running", "running"]);
    assert_eq!(crate::given::cancel(&service, &id).await.status, 200);
    assert_eq!(states(&service, &id, 1).await, ["cancelled"]);
}

#[tokio::test]
async fn flips_contradicts_its_own_end_at_every_second_status() {
    let (service, hand) = service().await;
    let id = start_as(&service, "flips").await;
    assert_eq!(states(&service, &id, 2).await, ["queued", "queued"]);
    hand.advance(seconds(10));
    assert_eq!(states(&service, &id, 4).await, ["done", "failed", "done", "failed"]);
}

#[tokio::test]
async fn forgets_knows_the_work_once() {
    let (service, hand) = service().await;
    let id = start_as(&service, "forgets").await;
    hand.advance(seconds(10));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(status(&service, &id).await.status);
    }
    assert_eq!(seen, [200, 404, 404, 404]);
}

#[tokio::test]
async fn forgets_now_and_then_knows_it_again() {
    let (service, hand) = service().await;
    let id = start_as(&service, "forgets_now_and_then").await;
    hand.advance(seconds(10));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(status(&service, &id).await.status);
    }
    assert_eq!(seen, [200, 404, 200, 404]);
}

#[tokio::test]
async fn lies_about_progress_until_the_end_and_then_says_the_result() {
    let (service, hand) = service().await;
    let id = start_as(&service, "lies_about_progress").await;
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(status(&service, &id).await.json()["progress"]["percent"].clone());
    }
    let lies =
        [json!(90), json!(10), json!(250), json!(-5), json!("NaN"), json!(1e308), Value::Null, json!([50])];
    assert_eq!(seen, lies);
    hand.advance(seconds(10));
    let done = status(&service, &id).await.json();
    assert_eq!((&done["state"], &done["result"]), (&json!("done"), &json!({"n": 1})));
}

#[tokio::test]
async fn regresses_goes_back_to_queued_until_it_is_done() {
    let (service, hand) = service().await;
    let id = start_as(&service, "regresses").await;
    hand.advance(seconds(5));
    assert_eq!(states(&service, &id, 4).await, ["running", "queued", "running", "queued"]);
    hand.advance(seconds(5));
    assert_eq!(states(&service, &id, 1).await, ["done"]);
}

#[tokio::test]
async fn result_on_second_try_is_done_before_the_result_can_be_had() {
    let (service, hand) = service().await;
    let id = start_as(&service, "result_on_second_try").await;
    hand.advance(seconds(10));
    let first = status(&service, &id).await.json();
    assert_eq!((&first["state"], first.get("result")), (&json!("done"), None));
    assert_eq!(status(&service, &id).await.json()["result"], json!({"n": 1}));
    let result =
        async || -> Reply { ask(&service.url(), "GET", &format!("/work/{id}/result"), "", "").await };
    assert_eq!(result().await.status, 503);
    assert_eq!(result().await.json(), json!({"n": 1}));
}

#[tokio::test]
async fn hostile_retry_after_is_one_absurd_time_after_the_other_or_the_one_asked_for() {
    let (service, hand) = service().await;
    let id = start_as(&service, "hostile_retry_after").await;
    let mut seen = Vec::new();
    for _ in 0..9 {
        seen.push(status(&service, &id).await.header("retry-after").map(str::to_owned).unwrap());
    }
    let absurd = [
        "99999999999",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "-5",
        "soon",
        "NaN",
        "1e308",
        "0",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "",
    ];
    assert_eq!(seen, absurd);
    let script = json!({"seconds": 10, "manner": "hostile_retry_after", "variant": 5, "at": "start"});
    let reply = crate::given::start_reply(&service, "one", &script).await;
    assert_eq!((reply.status, reply.header("retry-after")), (202, Some("1e308")));
    hand.advance(seconds(10));
    assert_eq!(status(&service, &id).await.state(), "done");
    let other = start(&service, "after", json!({"seconds": 0})).await;
    assert_eq!(status(&service, &other).await.state(), "done");
}
