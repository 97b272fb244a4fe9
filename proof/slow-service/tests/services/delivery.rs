//! Artifact delivery: the canonical handle and status, the ledger, retries, recovery after a restart.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use slow_service::{
    Adapter, DeliveryOptions, DeliveryService, DirectoryAdapter, HandClock, Parcel, Retry, Sent,
};

use crate::given::{Reply, ask, in_time, seconds};
use crate::schemas::{check, deferred_operation, deferred_operation_status};

const SEND: &str = "/v1/host/capabilities/artifact.delivery.send?mode=deferred";

/// A target that fails so many times first, and keeps count.
#[derive(Debug, Default)]
struct Target {
    failures: AtomicU32,
    refuses: bool,
    hangs: bool,
    sent: Mutex<Vec<String>>,
}

impl Target {
    fn failing(times: u32) -> Arc<Self> {
        Arc::new(Self { failures: AtomicU32::new(times), ..Self::default() })
    }

    fn count(&self) -> usize {
        self.sent.lock().expect("nobody panics with it").len()
    }
}

impl Adapter for Target {
    fn send<'a>(&'a self, parcel: &'a Parcel) -> Pin<Box<dyn Future<Output = Sent> + Send + 'a>> {
        Box::pin(async {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            if self.refuses {
                return Sent::Permanent("not here".to_owned());
            }
            let failing =
                self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if failing.is_ok() {
                return Sent::Transient("busy".to_owned());
            }
            self.sent.lock().expect("nobody panics with it").push(parcel.delivery_id.clone());
            Sent::Delivered
        })
    }
}

fn options(path: Option<&Path>, hand: &HandClock, targets: &[(&str, Arc<Target>)]) -> DeliveryOptions {
    let adapter = |target: &Arc<Target>| -> Arc<dyn Adapter> { target.clone() };
    DeliveryOptions {
        state: path.map(Path::to_owned),
        clock: hand.clock(),
        adapters: targets.iter().map(|(name, target)| ((*name).to_owned(), adapter(target))).collect(),
        routes: BTreeMap::from([("main".to_owned(), stages(&["x"]))]),
        retry: Retry { max_attempts: 4, attempts_in_a_row: 2, base: seconds(10), cap: seconds(15) },
        stage_timeout: Duration::from_millis(50),
        time_to_live: seconds(900),
        recovery_interval: None,
        ..DeliveryOptions::default()
    }
}

fn stages(targets: &[&str]) -> Value {
    json!([{"stage/id": "only", "targets": targets, "success/policy": "all"}])
}

fn envelope(key: &str, plan: Value) -> Value {
    json!({
        "schema": "artifact-delivery-envelope.v1",
        "component/id": "press",
        "artifact": {
            "schema": "page.v1",
            "content/type": "text/plain",
            "digest": "sha256:3660315a9af3df255d8f19ab077e4797822b41488a0e2a04bc6af71213c23274",
            "size/bytes": 4,
            "bytes/base64": "cGFnZQ==",
        },
        "delivery/plan": plan,
        "idempotency/key": key,
    })
}

async fn send(service: &DeliveryService, envelope: &Value) -> Reply {
    ask(&service.url(), "POST", SEND, "", &envelope.to_string()).await
}

/// Sends to those targets and gives the id of the delivery.
async fn accepted(service: &DeliveryService, key: &str, targets: &[&str]) -> String {
    let reply = send(service, &envelope(key, json!({"stages": stages(targets)}))).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    check(&deferred_operation(), &reply.json());
    reply.json()["extensions"]["delivery/id"].as_str().expect("the handle names the delivery").to_owned()
}

async fn ledger(service: &DeliveryService, id: &str) -> Value {
    let reply = ask(&service.url(), "GET", &format!("/v1/artifact-delivery/deliveries/{id}"), "", "").await;
    assert!(!String::from_utf8_lossy(&reply.body).contains("cGFnZQ"), "the artifact is in an answer");
    reply.json()
}

async fn operation(service: &DeliveryService, id: &str) -> Value {
    let target = format!("/v1/artifact-delivery/deliveries/{id}/operation-status");
    let status = ask(&service.url(), "GET", &target, "", "").await.json();
    check(&deferred_operation_status(), &status);
    status
}

/// Asks until the ledger says something like that.
async fn until_it(service: &DeliveryService, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    in_time(async {
        loop {
            let record = ledger(service, id).await;
            if wanted(&record) {
                return record;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

/// Asks until the ledger says that.
async fn until(service: &DeliveryService, id: &str, wanted: &str) -> Value {
    until_it(service, id, |record| record["status"] == wanted).await
}

async fn recover(service: &DeliveryService, limit: &str) -> Reply {
    ask(&service.url(), "POST", &format!("/v1/artifact-delivery/recover?limit={limit}"), "", "").await
}

#[tokio::test]
async fn a_delivery_is_accepted_with_the_canonical_handle_and_its_status_is_canonical_too() {
    let (hand, directory) = (HandClock::new(), tempfile::tempdir().unwrap());
    let target = Arc::new(DirectoryAdapter::new(directory.path().to_owned()));
    let adapters = BTreeMap::from([("x".to_owned(), target as Arc<dyn Adapter>)]);
    let service =
        DeliveryService::start(DeliveryOptions { adapters, ..options(None, &hand, &[]) }).await.unwrap();
    let reply = send(&service, &envelope("k", json!({"route/ref": "main"}))).await;
    let handle = reply.json();
    check(&deferred_operation(), &handle);
    assert_eq!(handle["operation/kind"], "artifact-delivery.submit");
    assert_eq!(handle["cancel/unavailable-reason"], "artifact-delivery-dispatch-may-already-be-in-flight");
    assert!(handle["audit/outcome-ref"].as_str().is_some_and(|reference| !reference.is_empty()));
    assert_eq!(reply.header("location"), handle["status_href"].as_str());
    let id = handle["extensions"]["delivery/id"].as_str().unwrap();
    until(&service, id, "succeeded").await;
    let status = operation(&service, id).await;
    assert_eq!((&status["status"], &status["operation/id"]), (&json!("completed"), &handle["operation/id"]));
    assert_eq!(
        (&status["result"]["status"], &status["result"]["partial"]),
        (&json!("succeeded"), &json!(false))
    );
    assert_eq!(std::fs::read(directory.path().join(id)).unwrap(), b"page");
}

#[tokio::test]
async fn what_fails_for_now_is_tried_again_after_a_pause_and_the_history_keeps_every_attempt() {
    let (hand, target) = (HandClock::new(), Target::failing(1));
    let service = DeliveryService::start(options(None, &hand, &[("x", target.clone())])).await.unwrap();
    let id = accepted(&service, "k", &["x"]).await;
    let record = until(&service, &id, "failed-retryable").await;
    assert_eq!((&record["failure/class"], &record["attempts"]), (&json!("adapter-transient"), &json!(1)));
    assert_eq!(operation(&service, &id).await["status"], "running");
    hand.advance(seconds(9));
    assert_eq!(ledger(&service, &id).await["attempts"], 1, "the pause is not over");
    hand.advance(seconds(1));
    let record = until(&service, &id, "succeeded").await;
    let history = record["retry/history"].as_array().unwrap();
    let lines: Vec<(&Value, &Value)> =
        history.iter().map(|line| (&line["attempt"], &line["status"])).collect();
    assert_eq!(lines, [(&json!(1), &json!("failed-retryable")), (&json!(2), &json!("succeeded"))]);
    assert_eq!(history[0]["message"], "busy");
    assert_eq!(record["status/history"].as_array().unwrap().len(), 4);
    assert_eq!(target.count(), 1);
}

#[tokio::test]
async fn recovery_takes_up_what_waits_and_ends_what_has_been_tried_enough() {
    let (hand, target) = (HandClock::new(), Target::failing(u32::MAX));
    let service = DeliveryService::start(options(None, &hand, &[("x", target)])).await.unwrap();
    let id = accepted(&service, "k", &["x"]).await;
    until(&service, &id, "failed-retryable").await;
    hand.advance(seconds(10));
    // Two attempts in a row, then it waits for recovery.
    until_it(&service, &id, |record| record["attempts"] == 2).await;
    until(&service, &id, "failed-retryable").await;
    let pass = recover(&service, "1").await.json();
    let expected = json!({
        "schema": "artifact-delivery-recovery.v1", "schema/v": 1, "status": "ok", "recovered/count": 1,
        "deliveries": [{"delivery/id": id, "status": "failed-retryable", "attempts": 3}],
    });
    assert_eq!(pass, expected);
    let pass = recover(&service, "10").await.json();
    assert_eq!(pass["deliveries"][0]["status"], "failed-permanent");
    let record = ledger(&service, &id).await;
    assert_eq!((&record["failure/class"], &record["attempts"]), (&json!("runtime-limit"), &json!(4)));
    assert_eq!(record["retry/history"].as_array().unwrap().len(), 4);
    assert_eq!(operation(&service, &id).await["status"], "failed");
    assert_eq!(recover(&service, "10").await.json()["recovered/count"], 0);
    for limit in ["0", "-1", "many", "1001"] {
        assert_eq!(recover(&service, limit).await.status, 400, "{limit}");
    }
}

#[tokio::test]
async fn a_delivery_interrupted_by_a_restart_is_retryable_and_recovered() {
    let (hand, directory) = (HandClock::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join("delivery.sqlite");
    let hanging = Arc::new(Target { hangs: true, ..Target::default() });
    let patient =
        DeliveryOptions { stage_timeout: seconds(600), ..options(Some(&path), &hand, &[("x", hanging)]) };
    let service = DeliveryService::start(patient).await.unwrap();
    let reply = send(&service, &envelope("k", json!({"stages": stages(&["x"])}))).await;
    let id = reply.json()["extensions"]["delivery/id"].as_str().unwrap().to_owned();
    until(&service, &id, "running").await;
    service.stop().await;

    let target = Target::failing(0);
    let service =
        DeliveryService::start(options(Some(&path), &hand, &[("x", target.clone())])).await.unwrap();
    let record = ledger(&service, &id).await;
    assert_eq!((&record["status"], &record["attempts"]), (&json!("failed-retryable"), &json!(1)));
    assert_eq!(record["retry/history"][0]["message"], "interrupted by a restart");
    let again = send(&service, &envelope("k", json!({"stages": stages(&["x"])}))).await;
    assert_eq!(again.json(), reply.json(), "the same key has the same handle");
    assert_eq!(target.count(), 0, "a repetition sends nothing");
    let pass = recover(&service, "5").await.json();
    assert_eq!(pass["deliveries"], json!([{"delivery/id": id, "status": "succeeded", "attempts": 2}]));
    assert_eq!(
        (ledger(&service, &id).await["retry/history"].as_array().unwrap().len(), target.count()),
        (2, 1)
    );
}

#[tokio::test]
async fn by_itself_the_service_recovers_only_what_is_due() {
    let (hand, directory) = (HandClock::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join("delivery.sqlite");
    let service =
        DeliveryService::start(options(Some(&path), &hand, &[("x", Target::failing(1))])).await.unwrap();
    let id = accepted(&service, "k", &["x"]).await;
    until(&service, &id, "failed-retryable").await;
    service.stop().await;
    let target = Target::failing(0);
    let eager = DeliveryOptions {
        recovery_interval: Some(seconds(4)),
        ..options(Some(&path), &hand, &[("x", target.clone())])
    };
    let service = DeliveryService::start(eager).await.unwrap();
    for _ in 0..2 {
        hand.advance(seconds(4));
        assert_eq!(ledger(&service, &id).await["attempts"], 1);
    }
    until_it(&service, &id, |record| {
        hand.advance(seconds(4));
        record["status"] == "succeeded"
    })
    .await;
    assert_eq!(target.count(), 1);
}

#[tokio::test]
async fn some_targets_served_and_one_refusing_for_ever_is_partial_and_counts_as_completed() {
    let hand = HandClock::new();
    let refusing = Arc::new(Target { refuses: true, ..Target::default() });
    let targets = [("x", Target::failing(0)), ("y", refusing)];
    let service = DeliveryService::start(options(None, &hand, &targets)).await.unwrap();
    let id = accepted(&service, "k", &["x", "y"]).await;
    let record = until(&service, &id, "partial").await;
    assert_eq!((&record["delivered"], &record["refused"]), (&json!(["x"]), &json!(["y"])));
    let status = operation(&service, &id).await;
    assert_eq!((&status["status"], &status["result"]["partial"]), (&json!("completed"), &json!(true)));
    let id = accepted(&service, "only y", &["y"]).await;
    assert_eq!(until(&service, &id, "failed-permanent").await["failure/class"], "adapter-permanent");
}

#[tokio::test]
async fn a_target_that_has_the_artifact_is_not_sent_it_again() {
    let (hand, good, flaky) = (HandClock::new(), Target::failing(0), Target::failing(1));
    let targets = [("x", good.clone()), ("y", flaky)];
    let service = DeliveryService::start(options(None, &hand, &targets)).await.unwrap();
    let id = accepted(&service, "k", &["x", "y"]).await;
    until(&service, &id, "failed-retryable").await;
    assert_eq!(recover(&service, "1").await.json()["deliveries"][0]["status"], "succeeded");
    assert_eq!(good.count(), 1);
}

#[tokio::test]
async fn a_target_that_never_answers_is_cut_off_and_tried_again() {
    let hand = HandClock::new();
    let hanging = Arc::new(Target { hangs: true, ..Target::default() });
    let service = DeliveryService::start(options(None, &hand, &[("x", hanging)])).await.unwrap();
    let id = accepted(&service, "k", &["x"]).await;
    assert_eq!(until(&service, &id, "failed-retryable").await["failure/class"], "stage-timeout");
}

#[tokio::test]
async fn a_delivery_whose_life_is_over_is_expired_and_never_sent() {
    let (hand, target) = (HandClock::new(), Target::failing(1));
    let service = DeliveryService::start(options(None, &hand, &[("x", target.clone())])).await.unwrap();
    let id = accepted(&service, "k", &["x"]).await;
    until(&service, &id, "failed-retryable").await;
    hand.advance(seconds(900));
    assert_eq!(until(&service, &id, "expired").await["status"], "expired");
    assert_eq!(operation(&service, &id).await["status"], "expired");
    assert_eq!(recover(&service, "1").await.json()["recovered/count"], 0);
    assert_eq!(target.count(), 0);
}

#[tokio::test]
async fn what_is_not_admitted_says_its_failure_class_and_leaves_nothing() {
    let (hand, target) = (HandClock::new(), Target::failing(0));
    let service = DeliveryService::start(options(None, &hand, &[("x", target.clone())])).await.unwrap();
    let refused = async |target: &str, body: String, status: u16, class: &str| {
        let reply = ask(&service.url(), "POST", target, "", &body).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (status, &json!(class)));
    };
    let plan = |plan: Value| envelope("k", plan).to_string();
    refused(SEND, "{".to_owned(), 400, "envelope-malformed").await;
    refused(SEND, plan(json!({})), 422, "envelope-invalid").await;
    refused(SEND, plan(json!({"route/ref": "elsewhere"})), 422, "route-unresolved").await;
    refused(SEND, plan(json!({"stages": stages(&["stranger"])})), 403, "outbound-denied").await;
    let fine = plan(json!({"stages": stages(&["x"])}));
    let path = "/v1/host/capabilities/artifact.delivery.send";
    for query in ["", "?mode=sync", "?deferred=true", "?mode=deferred&deferred=true"] {
        refused(&format!("{path}{query}"), fine.clone(), 400, "mode-not-supported").await;
    }
    accepted(&service, "k", &["x"]).await;
    refused(SEND, plan(json!({"route/ref": "main"})), 409, "admission-conflict").await;
    assert_eq!(ask(&service.url(), "GET", "/v1/artifact-delivery/deliveries/d", "", "").await.status, 404);
}
