//! A service that is started again on its state.

use std::path::Path;

use serde_json::json;
use slow_service::{AfterRestart, HandClock, Measures, Options, SlowService};

use crate::given::{Receiver, ask, cancel, seconds, start, start_reply, status};

async fn on(path: Option<&Path>, hand: &HandClock, after_restart: AfterRestart) -> SlowService {
    let options = Options {
        state: path.map(Path::to_owned),
        clock: hand.clock(),
        after_restart,
        measures: Measures::small(),
        ..Options::default()
    };
    SlowService::start(options).await.expect("a free port")
}

#[tokio::test]
async fn a_restarted_service_knows_its_work_and_its_keys() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("work.sqlite");
    let hand = HandClock::new();
    let service = on(Some(&path), &hand, AfterRestart::GoesOn).await;
    let script = json!({"seconds": 10, "result": 7});
    let id = start(&service, "k", script.clone()).await;
    let stopped = start(&service, "stopped", json!({"seconds": 10})).await;
    assert_eq!(cancel(&service, &stopped).await.status, 200);
    let before = service.starts();
    service.stop().await;

    hand.advance(seconds(5));
    let service = on(Some(&path), &hand, AfterRestart::GoesOn).await;
    assert_eq!(service.starts(), before);
    assert_eq!(status(&service, &id).await.state(), "running");
    assert_eq!(status(&service, &stopped).await.state(), "cancelled");
    assert_eq!(start(&service, "k", script).await, id);
    assert_eq!(start_reply(&service, "k", &json!({"seconds": 11})).await.status, 409);
    assert_eq!(service.starts().len(), 2);
    hand.advance(seconds(5));
    assert_eq!(status(&service, &id).await.json()["result"], json!(7));
}

#[tokio::test]
async fn unfinished_work_of_a_service_that_does_not_go_on_is_failed_for_good() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("work.sqlite");
    let hand = HandClock::new();
    let service = on(Some(&path), &hand, AfterRestart::Fails).await;
    let done = start(&service, "done", json!({"seconds": 1})).await;
    let open = start(&service, "open", json!({"seconds": 10})).await;
    hand.advance(seconds(1));
    service.stop().await;
    for _ in 0..2 {
        let service = on(Some(&path), &hand, AfterRestart::Fails).await;
        assert_eq!(status(&service, &done).await.state(), "done");
        let body = status(&service, &open).await.json();
        assert_eq!((&body["state"], &body["error"]["code"]), (&json!("failed"), &json!("interrupted")));
        service.stop().await;
        hand.advance(seconds(100));
    }
}

#[tokio::test]
async fn a_service_without_a_state_knows_nothing_after_a_restart() {
    let hand = HandClock::new();
    let service = on(None, &hand, AfterRestart::GoesOn).await;
    let id = start(&service, "k", json!({"seconds": 10})).await;
    service.stop().await;
    hand.advance(seconds(1));
    let service = on(None, &hand, AfterRestart::GoesOn).await;
    assert_eq!(status(&service, &id).await.status, 404);
    assert_eq!(ask(&service.url(), "GET", "/work?key=k", "", "").await.status, 404);
    assert_ne!(start(&service, "k", json!({"seconds": 10})).await, id, "the old id is never given again");
}

#[tokio::test]
async fn a_promised_callback_is_kept_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("work.sqlite");
    let hand = HandClock::new();
    let receiver = Receiver::listen().await;
    let service = on(Some(&path), &hand, AfterRestart::GoesOn).await;
    let id = start(&service, "k", json!({"seconds": 10, "callback_url": receiver.url})).await;
    service.stop().await;
    let _service = on(Some(&path), &hand, AfterRestart::GoesOn).await;
    hand.advance(seconds(10));
    assert_eq!(receiver.next().await["id"], json!(id));
}

#[tokio::test]
async fn a_stopped_service_no_longer_listens() {
    let hand = HandClock::new();
    let service = on(None, &hand, AfterRestart::GoesOn).await;
    let address = crate::given::address(&service.url());
    service.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn by_the_wall_clock_a_fast_service_ends_long_work_soon_and_speed_is_a_positive_number() {
    let options = Options { speed: 1e6, ..Options::default() };
    let service = SlowService::start(options).await.unwrap();
    let receiver = Receiver::listen().await;
    let id = start(&service, "k", json!({"seconds": 10_000, "callback_url": receiver.url})).await;
    assert_eq!(receiver.next().await["id"], json!(id));
    assert_eq!(status(&service, &id).await.state(), "done");
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(SlowService::start(Options { speed, ..Options::default() }).await.is_err());
    }
}
