//! Telling of the end, and the manners that do it wrong.

use serde_json::{Value, json};
use slow_service::{HandClock, Options, SlowService, WebhookSecret};

use crate::given::{Receiver, cancel, raw, seconds, service, start, status};

async fn given(manner: &str) -> (SlowService, HandClock, Receiver, String) {
    let (service, hand) = service().await;
    let receiver = Receiver::listen().await;
    let script = json!({"seconds": 10, "manner": manner, "result": 7, "callback_url": receiver.url});
    let id = start(&service, "k", script).await;
    (service, hand, receiver, id)
}

#[tokio::test]
async fn the_end_is_told_when_it_comes() {
    let (service, hand, receiver, id) = given("honest").await;
    hand.advance(seconds(9));
    assert_eq!(service.requests().callbacks, 0);
    hand.advance(seconds(1));
    let told = receiver.next().await;
    assert_eq!((&told["id"], &told["key"]), (&json!(id), &json!("k")));
    assert_eq!((&told["state"], &told["result"]), (&json!("done"), &json!(7)));
}

#[tokio::test]
async fn a_cancel_is_told_at_once() {
    let (service, _hand, receiver, id) = given("honest").await;
    cancel(&service, &id).await;
    assert_eq!(receiver.next().await["state"], "cancelled");
}

#[tokio::test]
async fn callback_repeats_tells_the_same_three_times() {
    let (_service, hand, receiver, _) = given("callback_repeats").await;
    hand.advance(seconds(10));
    let first = receiver.next().await;
    assert_eq!(first["state"], "done");
    assert_eq!((receiver.next().await, receiver.next().await), (first.clone(), first));
}

#[tokio::test]
async fn callback_contradicts_tells_the_opposite_next() {
    let (service, hand, receiver, id) = given("callback_contradicts").await;
    hand.advance(seconds(10));
    assert_eq!(receiver.next().await["state"], "done");
    assert_eq!(receiver.next().await["state"], "failed");
    assert_eq!(status(&service, &id).await.state(), "done");
}

#[tokio::test]
async fn callback_before_answer_tells_the_end_while_the_start_still_waits() {
    let (service, _hand) = service().await;
    let receiver = Receiver::listen().await;
    let script = json!({"seconds": 10, "manner": "callback_before_answer", "callback_url": receiver.url});
    let (url, body) = (service.url(), script.to_string());
    let mut start = Box::pin(raw(&url, "POST", "/work", "Idempotency-Key: k\r\n", &body));
    let told: Value = tokio::select! {
        told = receiver.next() => told,
        _ = &mut start => panic!("the start was answered before the callback was"),
    };
    assert_eq!(told["state"], "done");
    let (bytes, _) = start.await;
    assert!(bytes.starts_with(b"HTTP/1.1 202 "));
}

#[tokio::test]
async fn callback_late_tells_what_a_poll_already_knows() {
    let (service, hand, receiver, id) = given("callback_late").await;
    hand.advance(seconds(10));
    assert_eq!(status(&service, &id).await.state(), "done");
    assert_eq!(service.requests().callbacks, 0);
    assert_eq!(receiver.next().await["state"], "done");
}

#[tokio::test]
async fn callback_forged_tells_the_opposite_under_a_signature_that_does_not_fit() {
    let (service, hand, receiver, id) = given("callback_forged").await;
    hand.advance(seconds(10));
    let (headers, told) = receiver.next_with_headers().await;
    assert_eq!(told["state"], "failed");
    assert!(headers.contains("webhook-signature: v1,"), "{headers}");
    assert_eq!(status(&service, &id).await.state(), "done");
}

#[tokio::test]
async fn a_service_with_a_secret_signs_and_a_repetition_has_the_same_id() {
    let (hand, receiver) = (HandClock::new(), Receiver::listen().await);
    let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let options = Options { clock: hand.clock(), callback_secret: Some(secret), ..Options::default() };
    let service = SlowService::start(options).await.unwrap();
    let script = json!({"seconds": 10, "manner": "callback_repeats", "callback_url": receiver.url});
    let id = start(&service, "k", script).await;
    hand.advance(seconds(10));
    let (first, _) = receiver.next_with_headers().await;
    let (second, _) = receiver.next_with_headers().await;
    assert_eq!(first, second);
    assert!(first.contains(&format!("webhook-id: {id}.end\r\n")), "{first}");
    assert!(first.contains("webhook-timestamp: 1767225610\r\n"), "{first}");
    assert!(first.contains("webhook-signature: v1,"), "{first}");
}

#[tokio::test]
async fn a_service_without_a_secret_signs_nothing() {
    let (_service, hand, receiver, _) = given("honest").await;
    hand.advance(seconds(10));
    assert!(!receiver.next_with_headers().await.0.contains("webhook-"));
}

#[tokio::test]
async fn callback_never_tells_nothing() {
    let (service, hand, receiver, id) = given("callback_never").await;
    hand.advance(seconds(10));
    assert_eq!(status(&service, &id).await.state(), "done");
    // What comes first is the callback of other work, started later.
    let script = json!({"seconds": 0, "callback_url": receiver.url});
    let other = start(&service, "other", script).await;
    assert_eq!(receiver.next().await["id"], json!(other));
}
