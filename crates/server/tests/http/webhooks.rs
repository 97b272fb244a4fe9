//! Webhooks: signed or not heard, heard once.

use domain::event::Event;
use domain::{Digest, EventId, Record, RecordId};
use executors::mac::hmac_sha256;
use serde_json::{Value, json};
use store::Store;

use crate::given::{Answer, Call, HOOK_KEY, START, World, working_world, world};

const PIPELINE: &str = "pipelines: [{ name: heard, on: hook.came, steps: [{ uses: echo }] }]";

fn signature(signed: &[u8]) -> String {
    Digest(hmac_sha256(HOOK_KEY, signed)).to_string()
}

fn hook<'a>(world: &'a World, path: &str, body: &str) -> Call<'a> {
    Call::new(&world.address, "POST", path).bytes(body.as_bytes())
}

fn plain<'a>(world: &'a World, body: &str) -> Call<'a> {
    hook(world, "/hooks/plain", body).header("x-signature", &signature(body.as_bytes()))
}

/// Signed at this time.
fn timed<'a>(world: &'a World, path: &str, seconds: i64, body: &str) -> Call<'a> {
    let signed = format!("{seconds}.{body}");
    let call = hook(world, path, body).header("x-time", &seconds.to_string());
    call.header("x-signature", &format!("sha256={}", signature(signed.as_bytes())))
}

#[track_caller]
fn taken(answer: &Answer) -> String {
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.value()["event_id"].as_str().expect("it has an id").to_owned()
}

#[track_caller]
fn forbidden(answer: &Answer) {
    assert_eq!((answer.status, answer.body.as_str()), (403, r#"{"error":"forbidden"}"#));
}

async fn event(world: &World, id: &str) -> Event {
    let mut ledger = world.daemon.ledger();
    loop {
        ledger.borrow_and_update();
        let loaded = world.store.load(&RecordId::from(EventId::new(id))).await.expect("the store reads");
        if let Some(loaded) = loaded
            && let Record::Event(event) = &*loaded.record
            && event.settled.is_some()
        {
            return (**event).clone();
        }
        ledger.changed().await.expect("the daemon lives");
    }
}

async fn jobs(world: &World) -> Vec<Value> {
    world.get("/jobs").send().await.ok()["work"].as_array().expect("a list").clone()
}

fn now() -> i64 {
    START.micros() / 1_000_000
}

#[tokio::test]
async fn signed_message_becomes_an_event_whose_type_its_sender_cannot_set() {
    let world = working_world().await;
    world.pipelines(PIPELINE);
    let id = taken(&plain(&world, r#"{"type":"other","payload":{"a":1}}"#).send().await);
    let event = event(&world, &id).await;
    assert_eq!(
        (event.said.kind.as_str(), event.said.source.as_deref()),
        ("hook.came", Some("webhook:plain"))
    );
    let jobs = jobs(&world).await;
    let job = jobs[0]["job_id"].as_str().expect("it has an id");
    world.until(job, "completed").await;
    let result = world.get(&format!("/job/{job}")).send().await.ok()["result"].clone();
    assert_eq!(result, json!({ "type": "other", "payload": { "a": 1 } }));
}

#[tokio::test]
async fn message_that_comes_again_is_the_same_event_and_starts_nothing() {
    let world = working_world().await;
    world.pipelines(PIPELINE);
    let first = taken(&plain(&world, "{}").send().await);
    event(&world, &first).await;
    let shouted = format!("sha256={}", signature(b"{}").to_uppercase());
    let again = hook(&world, "/hooks/plain", "{}").header("x-signature", &shouted).send().await;
    assert_eq!(taken(&again), first);
    let other = taken(&plain(&world, "{ }").send().await);
    assert_ne!(other, first);
    event(&world, &other).await;
    assert_eq!(jobs(&world).await.len(), 2);
}

#[tokio::test]
async fn message_that_is_not_signed_or_wrongly_is_forbidden_and_starts_nothing() {
    let world = working_world().await;
    world.pipelines(PIPELINE);
    forbidden(&hook(&world, "/hooks/plain", "{}").send().await);
    let right = signature(b"{}");
    for wrong in [
        "",
        "sha256=",
        &right[..62],
        &format!("{right}00"),
        &signature(b"{ }"),
        "zz",
        &format!("sha1={right}"),
    ] {
        forbidden(&hook(&world, "/hooks/plain", "{}").header("x-signature", wrong).send().await);
    }
    assert!(jobs(&world).await.is_empty());
    assert_eq!(hook(&world, "/hooks/nowhere", "{}").send().await.status, 404);
}

#[tokio::test]
async fn message_whose_time_is_far_from_ours_or_not_what_was_signed_is_forbidden() {
    let world = world().await;
    taken(&timed(&world, "/hooks/timed", now() - 300, "{}").send().await);
    taken(&timed(&world, "/hooks/timed", now() + 300, "{}").send().await);
    forbidden(&timed(&world, "/hooks/timed", now() - 301, "{}").send().await);
    forbidden(&timed(&world, "/hooks/timed", now() + 301, "{}").send().await);
    let unsigned = hook(&world, "/hooks/timed", "{}").header("x-signature", &signature(b"{}"));
    forbidden(&unsigned.header("x-time", &now().to_string()).send().await);
}

#[tokio::test]
async fn what_its_sender_calls_the_same_is_the_same_and_a_signature_is_good_for_one_event() {
    let world = world().await;
    let send =
        |seconds, body: &str, id: &str| timed(&world, "/hooks/named", seconds, body).header("x-id", id);
    let first = taken(&send(now(), "{}", "a").send().await);
    assert_eq!(taken(&send(now() + 1, "{}", "a").send().await), first, "sent again later");
    assert_eq!(taken(&send(now() + 2, "{\"n\":1}", "a").send().await), first, "with other words");
    assert_ne!(taken(&send(now() + 3, "{}", "b").send().await), first);
    assert_eq!(taken(&send(now(), "{}", "c").send().await), first, "the name is not signed");
}

#[tokio::test]
async fn body_over_the_limit_of_its_endpoint_is_too_large() {
    let world = world().await;
    let large = format!("\"{}\"", "x".repeat(999));
    let answer = plain(&world, &large).send().await;
    assert_eq!((answer.status, answer.value()["error"].is_string()), (413, true));
}

#[tokio::test]
async fn body_that_is_nested_too_deep_is_refused_and_not_kept_as_a_text() {
    let world = world().await;
    let deep = format!("{}1{}", "{\"a\":".repeat(65), "}".repeat(65));
    let answer = plain(&world, &deep).send().await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert!(answer.body.contains("nested deeper than 64"), "{}", answer.body);
}
