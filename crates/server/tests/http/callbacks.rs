//! Callbacks: a service that has news is heard at once, and nobody else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::OperationId;
use executors::mac::hmac_sha256;
use serde_json::{Value, json};
use server::CallbackTarget;
use store::{IdempotencyKey, Store};

use crate::given::{Answer, START, WEBHOOK_KEY, World, callback_key, working_world};

fn path(operation: &str, seconds: u64) -> String {
    path_of("defers", operation, seconds)
}

fn path_of(executor: &str, operation: &str, seconds: u64) -> String {
    let (target, until) = (CallbackTarget::common(executor), START.plus_seconds(seconds));
    callback_key().url_for("", &target, &OperationId::new(operation), until)
}

async fn call_back(world: &World, path: &str, body: Value) -> Answer {
    world.post(path, body).anonymous().send().await
}

/// A job that goes on outside, and its operation.
async fn outside(world: &World, executor: &str, input: Value) -> (String, String) {
    let id = world.create(json!({ "executor": executor, "input": input })).await;
    world.until(&id, "awaiting_external").await;
    let operation = world.store_operation(&id).await;
    (id, operation)
}

#[tokio::test]
async fn callback_makes_its_service_be_asked_at_once_and_is_not_believed_itself() {
    let world = working_world().await;
    let (id, operation) = outside(&world, "defers", json!({ "polls": 0 })).await;
    // The clock stands: without the callback nobody would ask.
    let answer = call_back(&world, &path(&operation, 60), json!({ "result": "forged" })).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    world.until(&id, "completed").await;
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok();
    assert_eq!(result["result"]["data"], json!({ "pages": 12 }));
    // What comes after the end changes nothing.
    assert_eq!(call_back(&world, &path(&operation, 60), json!({})).await.status, 202);
    assert_eq!(world.status(&id).await["state"], "completed");
}

#[tokio::test]
async fn executor_whose_callbacks_carry_the_answer_is_taken_at_its_word_once() {
    let world = working_world().await;
    let (id, operation) = outside(&world, "called", json!({})).await;
    call_back(&world, &path_of("called", &operation, 60), json!({ "n": 1 })).await;
    world.until(&id, "completed").await;
    world.clock.advance_seconds(5);
    let mut ledger = world.daemon.ledger();
    ledger.borrow_and_update();
    call_back(&world, &path_of("called", &operation, 60), json!({ "late": true })).await;
    // It is on the ledger as evidence, and the result stays.
    ledger.changed().await.expect("the daemon lives");
    let result = world.get(&format!("/jobs/{id}/result")).send().await.ok();
    assert_eq!(result["result"]["data"], json!({ "n": 1 }));
}

#[tokio::test]
async fn callback_that_was_not_signed_for_this_operation_and_this_time_is_not_there() {
    let world = working_world().await;
    let (id, operation) = outside(&world, "defers", json!({ "polls": 0 })).await;
    let other = path("op-other", 60).rsplit('/').next().unwrap().to_owned();
    for bad in [
        path(&operation, 0),
        format!("/callbacks/{operation}/{other}"),
        format!("/callbacks/{operation}/x"),
        path(&id, 60),
    ] {
        call_back(&world, &bad, json!({})).await.problem(404, "not_found");
    }
    let large = "x".repeat(70_000);
    call_back(&world, &path(&operation, 60), json!(large)).await.problem(413, "body_too_large");
    assert_eq!(world.status(&id).await["state"], "awaiting_external");
}

#[tokio::test]
async fn callback_before_its_operation_is_kept_once_as_long_as_its_address_is_good() {
    let world = working_world().await;
    let operation = "op-00000000000000000000000000000000";
    let kept = async || {
        let key = IdempotencyKey {
            principal: "service".to_owned(),
            route: "callback before its operation".to_owned(),
            key: operation.to_owned(),
        };
        world.store.key(&key).await.unwrap()
    };
    // An executor whose callbacks only mean that there is news: nothing of what it says is kept.
    let answer = call_back(&world, &path(operation, 60), json!({ "private": true })).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let news = kept().await.expect("it is kept");
    assert_eq!((&news.answer[..], news.keep_until), (&b""[..], START.plus_seconds(60)));
    call_back(&world, &path_of("called", operation, 60), json!({ "n": 1 })).await;
    assert_eq!(kept().await.expect("the first stays").answer, news.answer);
}

/// The headers of Standard Webhooks for this body, sent so many seconds from now.
fn signed(key: &[u8], seconds: i64, body: &str) -> [(&'static str, String); 3] {
    let sent_at = START.micros() / 1_000_000 + seconds;
    let signature = STANDARD.encode(hmac_sha256(key, format!("msg-1.{sent_at}.{body}").as_bytes()));
    [
        ("webhook-id", "msg-1".to_owned()),
        ("webhook-timestamp", sent_at.to_string()),
        ("webhook-signature", format!("v1,{signature}")),
    ]
}

async fn call_back_signed(
    world: &World,
    path: &str,
    headers: &[(&'static str, String)],
    body: &str,
) -> Answer {
    let call = world.call("POST", path).anonymous().bytes(body.as_bytes());
    let call = headers.iter().fold(call, |call, (name, value)| call.header(name, value));
    call.send().await
}

#[tokio::test]
async fn service_that_signs_is_heard_only_with_its_signature_over_the_very_bytes_and_not_for_long() {
    let world = working_world().await;
    let (id, operation) = outside(&world, "signs", json!({ "polls": 0 })).await;
    let path = path_of("signs", &operation, 3_600);
    // Spaces and the order of keys are part of what is signed; it need not be JSON at all.
    let body = "{ \"b\": 1,  \"a\": 2 }";
    let good = signed(WEBHOOK_KEY, 0, body);
    let unsigned: [(&str, String); 0] = [];
    for (headers, sent) in [
        (&unsigned[..], body),
        (&signed(b"somebody else's", 0, body), body),
        (&good, "{\"b\":1,\"a\":2}"),
        (&good[..2], body),
        (&signed(WEBHOOK_KEY, -301, body), body),
        (&signed(WEBHOOK_KEY, 301, body), body),
    ] {
        call_back_signed(&world, &path, headers, sent).await.problem(401, "unauthenticated");
    }
    assert_eq!(world.status(&id).await["runner"]["outside"]["polls"], 0, "nobody was asked");
    assert_eq!(call_back_signed(&world, &path, &good, body).await.status, 202);
    world.until(&id, "completed").await;
    // The same message again changes nothing, and later it is not even heard.
    assert_eq!(call_back_signed(&world, &path, &good, body).await.status, 202);
    world.clock.advance_seconds(301);
    call_back_signed(&world, &path, &good, body).await.problem(401, "unauthenticated");
    assert_eq!(world.status(&id).await["state"], "completed");
}

#[tokio::test]
async fn callback_before_its_operation_needs_its_signature_as_well() {
    let world = working_world().await;
    let path = path_of("signs", "op-00000000000000000000000000000000", 60);
    call_back(&world, &path, json!({})).await.problem(401, "unauthenticated");
    let good = signed(WEBHOOK_KEY, 0, "{}");
    assert_eq!(call_back_signed(&world, &path, &good, "{}").await.status, 202);
}
