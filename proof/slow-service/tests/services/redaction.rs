//! The durable connector: accepted as deferred, right after a restart, cancelled while pending, and never a word of the raw
//! text but the draft.

use std::path::Path;

use serde_json::{Value, json};
use slow_service::{HandClock, RedactionOptions, RedactionService, validate_response};

use crate::given::{Reply, ask, in_time, seconds};
use crate::schemas::{check, connector_deferred, connector_status};

/// Stands in the raw text and must stand nowhere else.
const CANARY: &str = "zq-4471-9920-canary";

async fn on(path: Option<&Path>, hand: &HandClock) -> RedactionService {
    let options = RedactionOptions {
        state: path.map(Path::to_owned),
        clock: hand.clock(),
        pending: seconds(5),
        running: seconds(5),
        ..RedactionOptions::default()
    };
    RedactionService::start(options).await.expect("a free port")
}

fn directive(key: &str) -> Value {
    json!({
        "schema": "sensorium-connector-directive.v1",
        "directive": {
            "schema": "sensorium-directive.v1",
            "schema/v": 1,
            "directive/id": format!("directive:{key}"),
            "directive/issued_at": "2026-01-01T00:00:00Z",
            "issuer": {"module_id": "whisper-intake"},
            "action_id": "whisper.redaction.prepare",
            "idempotency/key": key,
            "timing": {"timeout_ms": 60_000, "mode": "async"},
            "parameters": {
                "schema": "whisper-redaction-prepare-request.v1",
                "schema/v": 1,
                "intake/id": "intake:1",
                "raw/private-material": format!("The account {CANARY} was closed at the harbour"),
                "redaction/profile": "standard",
                "policy/constraints": {"terms": ["harbour"]},
                "disclosure/target": "public-whisper-candidate",
            },
        },
        "allowlist_entry": {"action_id": "whisper.redaction.prepare"},
    })
}

async fn capability(service: &RedactionService, name: &str, body: &Value) -> Reply {
    let target = format!("/v1/host/capabilities/sensorium.connector.{name}");
    let reply = ask(&service.url(), "POST", &target, "", &body.to_string()).await;
    assert!(
        !String::from_utf8_lossy(&reply.body).contains(CANARY),
        "the raw text is in an answer: {reply:?}"
    );
    reply
}

async fn accepted(service: &RedactionService, key: &str) -> String {
    let reply = capability(service, "invoke", &directive(key)).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    check(&connector_deferred(), &reply.json());
    reply.json()["connector_operation_id"].as_str().expect("the acknowledgement has an id").to_owned()
}

async fn status(service: &RedactionService, id: &str) -> Value {
    let reply = capability(service, "operation.status", &json!({"connector_operation_id": id})).await;
    check(&connector_status(), &reply.json());
    reply.json()
}

async fn cancel(service: &RedactionService, id: &str) -> Reply {
    capability(service, "operation.cancel", &json!({"connector_operation_id": id})).await
}

/// Asks until it says that; the work itself waits on the clock, and only has to notice.
async fn until(service: &RedactionService, id: &str, wanted: &str) -> Value {
    in_time(async {
        loop {
            let status = status(service, id).await;
            if status["status"] == wanted {
                return status;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn private_text_is_taken_at_once_and_its_draft_comes_later_without_the_text() {
    let (hand, directory) = (HandClock::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join("redaction.sqlite");
    let service = on(Some(&path), &hand).await;
    let id = accepted(&service, "k").await;
    let bytes = ["redaction.sqlite", "redaction.sqlite-wal"]
        .map(|name| std::fs::read(directory.path().join(name)).unwrap_or_default())
        .concat();
    assert!(bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()), "it is in the state");
    assert_eq!(status(&service, &id).await["status"], "pending");
    hand.advance(seconds(5));
    assert_eq!(until(&service, &id, "running").await["retry_after_seconds"], 1);
    hand.advance(seconds(5));
    let completed = until(&service, &id, "completed").await;
    assert_eq!(validate_response(&completed["result"]), Ok(()));
    assert_eq!(completed["result"]["status"], "draft-ready");
    let draft = &completed["result"]["redaction/draft"]["text"];
    assert_eq!(draft, "The account [number] was closed at the [term]");
    assert!(completed.get("retry_after_seconds").is_none());
}

#[tokio::test]
async fn after_a_restart_the_finished_is_known_the_pending_is_done_and_the_running_has_failed() {
    let (hand, directory) = (HandClock::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join("redaction.sqlite");
    let service = on(Some(&path), &hand).await;
    let finished = accepted(&service, "finished").await;
    hand.advance(seconds(5));
    until(&service, &finished, "running").await;
    hand.advance(seconds(5));
    let before = until(&service, &finished, "completed").await;
    let running = accepted(&service, "running").await;
    hand.advance(seconds(5));
    until(&service, &running, "running").await;
    let pending = accepted(&service, "pending").await;
    service.stop().await;

    let service = on(Some(&path), &hand).await;
    assert_eq!(status(&service, &finished).await, before);
    let failed = status(&service, &running).await;
    assert_eq!(
        (&failed["status"], &failed["diagnostics"][0]["code"]),
        (&json!("failed"), &json!("interrupted-by-restart"))
    );
    assert_eq!(status(&service, &pending).await["status"], "pending");
    hand.advance(seconds(5));
    until(&service, &pending, "running").await;
    hand.advance(seconds(5));
    until(&service, &pending, "completed").await;
    assert_eq!(status(&service, &running).await, failed, "what is over stays as it is");
}

#[tokio::test]
async fn pending_work_is_cancelled_and_stays_so_over_a_restart() {
    let (hand, directory) = (HandClock::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join("redaction.sqlite");
    let service = on(Some(&path), &hand).await;
    let id = accepted(&service, "k").await;
    let reply = cancel(&service, &id).await;
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("cancelled")));
    assert_eq!(cancel(&service, &id).await.status, 200, "a second cancel finds it cancelled");
    drop(service);
    let service = on(Some(&path), &hand).await;
    hand.advance(seconds(20));
    // Other work that goes all its way shows that the cancelled one had the time to.
    let other = accepted(&service, "other").await;
    hand.advance(seconds(5));
    until(&service, &other, "running").await;
    assert_eq!(status(&service, &id).await["status"], "cancelled");
}

#[tokio::test]
async fn work_that_has_begun_is_not_cancelled_and_the_answer_says_why() {
    let hand = HandClock::new();
    let service = on(None, &hand).await;
    let id = accepted(&service, "k").await;
    hand.advance(seconds(5));
    until(&service, &id, "running").await;
    let refused = cancel(&service, &id).await;
    assert_eq!((refused.status, &refused.json()["status"]), (409, &json!("running")));
    assert_eq!(refused.json()["cancel/unavailable-reason"], "redaction-already-running");
    hand.advance(seconds(5));
    until(&service, &id, "completed").await;
    assert_eq!(cancel(&service, &id).await.json()["cancel/unavailable-reason"], "redaction-is-over");
}

#[tokio::test]
async fn an_id_that_is_not_known_is_reported_as_unknown() {
    let service = on(None, &HandClock::new()).await;
    assert_eq!(status(&service, "redaction-0").await["status"], "unknown");
    assert_eq!(cancel(&service, "redaction-0").await.json()["status"], "unknown");
    assert_eq!(capability(&service, "operation.status", &json!({})).await.status, 422);
}

#[tokio::test]
async fn the_same_key_is_acknowledged_word_for_word_and_other_parameters_under_it_are_a_conflict() {
    let (hand, directory) = (HandClock::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join("redaction.sqlite");
    let service = on(Some(&path), &hand).await;
    let first = capability(&service, "invoke", &directive("k")).await;
    service.stop().await;
    let service = on(Some(&path), &hand).await;
    hand.advance(seconds(1));
    let again = capability(&service, "invoke", &directive("k")).await;
    assert_eq!(String::from_utf8(first.body), String::from_utf8(again.body));
    let mut other = directive("k");
    other["directive"]["parameters"]["redaction/profile"] = json!("strict");
    let conflict = capability(&service, "invoke", &other).await;
    assert_eq!((conflict.status, &conflict.json()["status"]), (409, &json!("rejected")));
    assert_eq!(conflict.json()["diagnostics"][0]["code"], "idempotency-conflict");
}

#[tokio::test]
async fn work_that_outlasts_the_budget_of_its_directive_has_timed_out() {
    let hand = HandClock::new();
    let service = on(None, &hand).await;
    let mut short = directive("k");
    short["directive"]["timing"]["timeout_ms"] = json!(7_000);
    let reply = capability(&service, "invoke", &short).await.json();
    assert_eq!(reply["fail_after_seconds"], 7);
    let id = reply["connector_operation_id"].as_str().unwrap();
    hand.advance(seconds(5));
    until(&service, id, "running").await;
    hand.advance(seconds(2));
    assert_eq!(until(&service, id, "timed-out").await["diagnostics"][0]["code"], "action-timeout");
}

#[tokio::test]
async fn a_directive_that_breaks_the_contract_is_rejected_and_leaves_nothing() {
    let service = on(None, &HandClock::new()).await;
    let breaches: [(&str, Value, &str); 12] = [
        ("/schema", json!("other"), "directive-missing"),
        ("/directive", json!(null), "directive-missing"),
        ("/directive/schema~1v", json!(2), "directive-invalid"),
        ("/directive/directive~1id", json!(""), "directive-invalid"),
        ("/directive/issuer", json!({}), "directive-invalid"),
        ("/directive/action_id", json!("whisper.publish"), "action-not-allowlisted"),
        ("/directive/timing/mode", json!("sync"), "mode-not-supported"),
        ("/directive/timing/timeout_ms", json!(0), "directive-invalid"),
        ("/directive/parameters", json!([]), "parameters-schema-invalid"),
        ("/directive/parameters/schema~1v", json!("1"), "parameters-schema-invalid"),
        ("/directive/parameters/policy~1constraints", json!(null), "parameters-schema-invalid"),
        ("/directive/parameters/disclosure~1target", json!(CANARY), "parameters-schema-invalid"),
    ];
    for (pointer, value, code) in breaches {
        let mut broken = directive("k");
        *broken.pointer_mut(pointer).unwrap() = value;
        let reply = capability(&service, "invoke", &broken).await;
        assert_eq!((reply.status, &reply.json()["status"]), (422, &json!("rejected")), "{pointer}");
        assert_eq!(reply.json()["diagnostics"][0]["code"], code, "{pointer}");
    }
    // The key was never used: it is free.
    accepted(&service, "k").await;
}
