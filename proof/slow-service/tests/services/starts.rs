//! Manners that show at the start: did it happen or not?

use std::collections::BTreeSet;

use serde_json::json;

use crate::given::{ask, raw, seconds, service, start, start_reply, status};

const KEY: &str = "Idempotency-Key: k\r\n";

#[tokio::test]
async fn accepts_then_drops_has_taken_the_start_that_it_never_answered() {
    let (service, hand) = service().await;
    let script = json!({"seconds": 10, "manner": "accepts_then_drops"});
    let (bytes, _) = raw(&service.url(), "POST", "/work", KEY, &script.to_string()).await;
    assert_eq!(bytes, b"");
    assert_eq!(service.starts().len(), 1);
    let found = ask(&service.url(), "GET", "/work?key=k", "", "").await;
    let id = found.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(id, service.starts()[0].id);
    // A repetition is answered, and is no second start.
    assert_eq!(start(&service, "k", script).await, id);
    assert_eq!(service.starts().len(), 1);
    hand.advance(seconds(10));
    assert_eq!(status(&service, &id).await.state(), "done");
}

#[tokio::test]
async fn a_service_that_is_busy_at_the_start_has_not_accepted() {
    let (service, _hand) = service().await;
    for (manner, code) in [("rate_limited_429", 429), ("overloaded_503", 503)] {
        let script = json!({"seconds": 1, "manner": manner, "at": "start", "bad_answers": 2});
        for _ in 0..2 {
            let reply = start_reply(&service, manner, &script).await;
            assert_eq!((reply.status, reply.header("retry-after")), (code, Some("1")));
            assert!(service.starts().iter().all(|start| start.key.as_deref() != Some(manner)));
        }
        assert_eq!(start_reply(&service, manner, &script).await.status, 202);
    }
    assert_eq!(service.starts().len(), 2);
}

#[tokio::test]
async fn a_service_that_breaks_at_the_start_may_have_accepted() {
    let (service, _hand) = service().await;
    let script = json!({"seconds": 1, "manner": "error_500", "at": "start", "bad_answers": 1});
    assert_eq!(start_reply(&service, "k", &script).await.status, 500);
    assert_eq!(service.starts().len(), 1);
    assert_eq!(start_reply(&service, "k", &script).await.status, 202);
    assert_eq!(service.starts().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn starts_without_a_key_at_the_same_time_never_share_an_id() {
    let (service, _hand) = service().await;
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let url = service.url();
        starts.spawn(async move { ask(&url, "POST", "/work", "", "{}").await.json()["id"].to_string() });
    }
    let ids: BTreeSet<String> = starts.join_all().await.into_iter().collect();
    assert_eq!((ids.len(), service.starts().len()), (200, 200));
}

#[tokio::test]
async fn starts_without_a_key_are_each_their_own() {
    let (service, _hand) = service().await;
    let script = json!({"seconds": 1}).to_string();
    let first = ask(&service.url(), "POST", "/work", "", &script).await.json();
    let second = ask(&service.url(), "POST", "/work", "", &script).await.json();
    assert_ne!(first["id"], second["id"]);
    assert_eq!(service.starts().len(), 2);
}
