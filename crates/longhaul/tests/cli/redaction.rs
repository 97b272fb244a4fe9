//! Private text through two connectors of the real binary: redacted outside, reviewed by an operator, delivered only then. The
//! reference services are real ones with their own durable state; the daemon is killed in between.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use slow_service::{
    Adapter, DeliveryOptions, DeliveryService, DirectoryAdapter, RedactionOptions, RedactionService,
    validate_response,
};
use tokio::runtime::Runtime;

use crate::given::{Daemon, expect, longhaul, until, until_told, verify};

/// Stands in the raw text, and may stand in no answer.
const CANARY: &str = "zq-4471-9920-canary";
/// How a connector speaks to its host, and never to callers.
const CONNECTOR_FORMS: [&str; 3] = ["sensorium-connector", "connector_operation_id", "reference-redaction"];

/// Both services, and the connectors that lead to them.
struct Whisper {
    runtime: Runtime,
    redacts: RedactionOptions,
    redaction: RedactionService,
    delivery: DeliveryService,
    config: String,
    delivered: PathBuf,
}

impl Whisper {
    /// Redactions wait this long before they begin.
    fn start(dir: &Path, pending: Duration) -> Self {
        let runtime = Runtime::new().expect("a runtime starts");
        let options = RedactionOptions {
            state: Some(dir.join("redaction.sqlite")),
            pending,
            running: Duration::from_millis(500),
            ..RedactionOptions::default()
        };
        let redaction = runtime.block_on(RedactionService::start(options.clone())).expect("it listens");
        let url = redaction.url();
        let address = url.strip_prefix("http://").and_then(|address| address.parse().ok());
        let redacts = RedactionOptions { listen: address.expect("it speaks plain HTTP"), ..options };
        let delivered = dir.join("delivered");
        let target = Arc::new(DirectoryAdapter::new(delivered.clone())) as Arc<dyn Adapter>;
        let stage = json!({ "stage/id": "only", "targets": ["directory"], "success/policy": "all" });
        let options = DeliveryOptions {
            state: Some(dir.join("delivery.sqlite")),
            adapters: BTreeMap::from([("directory".to_owned(), target)]),
            routes: BTreeMap::from([("directory".to_owned(), json!([stage]))]),
            ..DeliveryOptions::default()
        };
        let delivery = runtime.block_on(DeliveryService::start(options)).expect("it listens");
        let recipe = |name: &str, text: &str, from: &str, url: &str| {
            let address = url.strip_prefix("http://").expect("it speaks plain HTTP");
            std::fs::write(dir.join(name), text.replace(from, address)).expect("it can be written");
        };
        let text = include_str!("../../../../examples/connectors/sensorium-redaction.yaml");
        recipe("redaction.yaml", text, "127.0.0.1:8098", &redaction.url());
        let text = include_str!("../../../../examples/connectors/artifact-delivery.yaml");
        recipe("delivery.yaml", text, "127.0.0.1:8097", &delivery.url());
        let config = dir.join("longhaul.yaml");
        std::fs::write(&config, "connectors: [redaction.yaml, delivery.yaml]\n").expect("it can be written");
        let config = config.to_str().expect("it is text").to_owned();
        Self { runtime, redacts, redaction, delivery, config, delivered }
    }

    /// The redaction service ends and comes again with what it has kept, at the same address.
    fn restart_redaction(self) -> Self {
        let Self { runtime, redacts, redaction, .. } = self;
        let redaction = runtime.block_on(async {
            redaction.stop().await;
            RedactionService::start(redacts.clone()).await.expect("it listens again")
        });
        Self { runtime, redacts, redaction, ..self }
    }

    fn daemon(&self, dir: &Path) -> Daemon {
        Daemon::verb(dir, &["serve", "--listen", "127.0.0.1:0", "--config", &self.config])
    }

    /// What has been delivered.
    fn deliveries(&self) -> Vec<String> {
        let Ok(files) = std::fs::read_dir(&self.delivered) else { return Vec::new() };
        let text = |file: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(file.expect("it can be listed").path()).expect("it is text")
        };
        files.map(text).collect()
    }

    fn stop(self) {
        self.runtime.block_on(async {
            self.redaction.stop().await;
            self.delivery.stop().await;
        });
    }
}

/// Somebody who asks over HTTP. Every answer is looked through.
struct Caller<'a> {
    daemon: &'a Daemon,
    token: String,
}

impl<'a> Caller<'a> {
    /// With a new token of this role.
    fn new(dir: &Path, daemon: &'a Daemon, role: &str) -> Self {
        let made = longhaul(dir, &["token", "create", "--role", role, "--circle", "whisper"]);
        Self { daemon, token: expect(0, &made).trim().to_owned() }
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.daemon.url))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json");
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut answer = agent.run(request.body(body).expect("it is a request")).expect("the daemon answers");
        let text = answer.body_mut().read_to_string().expect("it is text");
        for private in CONNECTOR_FORMS.into_iter().chain([CANARY]) {
            assert!(!text.contains(private), "{method} {path} shows {private}: {text}");
        }
        (answer.status().as_u16(), serde_json::from_str(&text).expect("it is JSON"))
    }

    fn named(&self, name: &str, body: &Value) -> (u16, Value) {
        self.send("POST", &format!("/v1/capabilities/sensorium.{name}/invoke"), Some(body))
    }

    /// Takes the handle on an action.
    fn directed(&self, id: &str, action: &str, parameters: Value) -> Value {
        let directive = json!({
            "schema": "sensorium-directive.v1", "schema/v": 1, "directive/id": id,
            "directive/issued_at": "2026-01-01T00:00:00Z", "issuer": { "module_id": "whisper-intake" },
            "action_id": action, "parameters": parameters,
            "timing": { "timeout_ms": 60_000, "mode": "async" },
        });
        let (status, handle) = self.named("directive.invoke", &directive);
        assert_eq!((status, &handle["schema"]), (202, &json!("deferred-operation.v1")), "{handle}");
        handle
    }

    /// Asks until the status is this one.
    fn until(&self, handle: &Value, word: &str) -> Value {
        let path = handle["status_href"].as_str().expect("it has one");
        loop {
            let (_, status) = self.send("GET", path, None);
            if status["status"] == word {
                return status;
            }
            assert!(status["status"] == "pending" || status["status"] == "running", "{status}");
            std::thread::yield_now();
        }
    }
}

fn request() -> Value {
    json!({
        "schema": "whisper-redaction-prepare-request.v1",
        "schema/v": 1,
        "intake/id": "intake:1",
        "raw/private-material": format!("The account {CANARY} was closed at the harbour"),
        "redaction/profile": "standard",
        "policy/constraints": { "terms": ["harbour"] },
        "disclosure/target": "public-whisper-candidate",
    })
}

// conforms: O87 O96 O97 O98 O124 O126
#[test]
fn private_text_is_redacted_outside_and_only_what_an_operator_approves_goes_out() {
    let dir = tempfile::tempdir().unwrap();
    let whisper = Whisper::start(dir.path(), Duration::from_secs(6));
    let daemon = whisper.daemon(dir.path());
    let intake = Caller::new(dir.path(), &daemon, "agent");
    let handle = intake.directed("d-1", "whisper.redaction.prepare", request());
    until(dir.path(), handle["audit/outcome-ref"].as_str().unwrap(), "awaiting_external");
    let token = intake.token;
    daemon.kill();

    let daemon = whisper.daemon(dir.path());
    let intake = Caller { daemon: &daemon, token };
    let status = intake.until(&handle, "completed");
    let response = &status["result"]["result"];
    assert_eq!(validate_response(response), Ok(()));
    let draft = &response["redaction/draft"]["text"];
    assert_eq!(draft, "The account [number] was closed at the [term]");

    let publish = intake.directed("d-2", "artifact.delivery.send", json!({ "text": draft }));
    let job = publish["audit/outcome-ref"].as_str().unwrap();
    until(dir.path(), job, "awaiting_input");
    let answer = format!("/jobs/{job}/answer");
    let yes = json!({ "answer": { "approved": true } });
    assert_eq!(intake.send("POST", &answer, Some(&yes)).0, 403, "only an operator approves");
    let (_, waiting) = intake.named("operation.status", &json!({ "operation/id": publish["operation/id"] }));
    assert_eq!((&waiting["status"], whisper.deliveries()), (&json!("pending"), Vec::new()));
    let operator = Caller::new(dir.path(), &daemon, "operator");
    let (_, why) = operator.send("GET", &format!("/jobs/{job}/why"), None);
    assert_eq!(why["question"]["input"]["text"], *draft, "an operator sees what goes out");
    assert_eq!(operator.send("POST", &answer, Some(&yes)).0, 200);
    let published = intake.until(&publish, "completed");
    assert_eq!(published["result"]["result"]["status"], "succeeded");
    assert_eq!(whisper.deliveries(), [draft.as_str().unwrap()]);

    // One registry for both, and nothing private in it, nor in the ledger or the log.
    let (_, list) = operator.send("GET", "/v1/deferred-operations", None);
    let actions: Vec<_> =
        list["operations"].as_array().unwrap().iter().map(|one| &one["action_id"]).collect();
    assert_eq!(actions, [&json!("artifact.delivery.send"), &json!("whisper.redaction.prepare")]);
    for handle in [&handle, &publish] {
        let path = handle["status_href"].as_str().unwrap().strip_suffix("/status").unwrap();
        operator.send("GET", path, None);
        let outcome = handle["audit/outcome-ref"].as_str().unwrap();
        let (_, outcome) = operator.send("GET", &format!("/v1/sensorium/outcomes/{outcome}"), None);
        assert_eq!(outcome["outcome/status"], "completed");
    }
    let facts = expect(0, &longhaul(dir.path(), &["export", "facts"]));
    for seen in [facts, daemon.log()] {
        assert!(!seen.contains(CANARY), "{seen}");
    }
    drop(daemon);
    verify(dir.path());
    whisper.stop();
}

// conforms: O97 O102
#[test]
fn redaction_that_has_not_begun_is_stopped_at_its_connector() {
    let dir = tempfile::tempdir().unwrap();
    let whisper = Whisper::start(dir.path(), Duration::from_mins(10));
    let daemon = whisper.daemon(dir.path());
    let intake = Caller::new(dir.path(), &daemon, "agent");
    let handle = intake.directed("d-1", "whisper.redaction.prepare", request());
    until(dir.path(), handle["audit/outcome-ref"].as_str().unwrap(), "awaiting_external");
    let token = intake.token;
    daemon.kill();
    // Both come again: the work is still there on either side, and can still be stopped.
    let whisper = whisper.restart_redaction();
    let daemon = whisper.daemon(dir.path());
    let intake = Caller { daemon: &daemon, token };
    let (_, status) = intake.named("operation.status", &json!({ "operation/id": handle["operation/id"] }));
    assert_eq!(status["status"], "running", "{status}");
    let before = status["extensions"]["attempt_no"].as_u64();
    let polled = |status: &Value| status["runner"]["outside"]["polls"].as_u64() > before.or(Some(0));
    let job = handle["audit/outcome-ref"].as_str().unwrap();
    let shown = until_told(dir.path(), job, "asked about again", polled);
    assert_eq!(shown["runner"]["outside"]["last_error"], Value::Null, "{shown}");
    let (status, asked) =
        intake.named("operation.cancel", &json!({ "operation/id": handle["operation/id"] }));
    assert!(status == 200 || status == 202, "{status} {asked}");
    intake.until(&handle, "cancelled");
    let facts = expect(0, &longhaul(dir.path(), &["export", "facts"]));
    let confirmed = facts.lines().filter(|fact| fact.contains("operation.cancelled/1")).count();
    assert_eq!(confirmed, 1, "the connector itself confirmed it");
    // What is not in the catalog is not reached, and is written down.
    let mut other = request();
    other["disclosure/target"] = json!("everybody");
    let directive = json!({
        "schema": "sensorium-directive.v1", "schema/v": 1, "directive/id": "d-2",
        "directive/issued_at": "2026-01-01T00:00:00Z", "issuer": { "module_id": "whisper-intake" },
        "action_id": "whisper.redaction.prepare", "parameters": other,
        "timing": { "timeout_ms": 60_000, "mode": "async" },
    });
    let (status, rejected) = intake.named("directive.invoke", &directive);
    assert_eq!((status, &rejected["diagnostics"][0]["code"]), (422, &json!("parameters-schema-invalid")));
    drop(daemon);
    verify(dir.path());
    whisper.stop();
}

// conforms: O99 O132
#[test]
fn delivery_is_deferred_on_the_hosts_own_route() {
    let dir = tempfile::tempdir().unwrap();
    let whisper = Whisper::start(dir.path(), Duration::ZERO);
    let daemon = whisper.daemon(dir.path());
    let intake = Caller::new(dir.path(), &daemon, "agent");
    let path = "/v1/host/capabilities/artifact.delivery.send?mode=deferred";
    let (status, handle) = intake.send("POST", path, Some(&json!({ "text": "The harbour opens" })));
    assert_eq!((status, &handle["schema"]), (202, &json!("deferred-operation.v1")), "{handle}");
    let job = handle["audit/outcome-ref"].as_str().unwrap();
    until(dir.path(), job, "awaiting_input");
    // It is kept under the handle that was given, with the record of its acceptance.
    let token = intake.token;
    daemon.kill();
    let daemon = whisper.daemon(dir.path());
    let intake = Caller { daemon: &daemon, token };
    let (_, waiting) = intake.send("GET", handle["status_href"].as_str().unwrap(), None);
    assert_eq!((&waiting["status"], whisper.deliveries()), (&json!("pending"), Vec::new()));
    assert_eq!(waiting["operation/id"], handle["operation/id"]);
    let operator = Caller::new(dir.path(), &daemon, "operator");
    let (_, listed) = operator.send("GET", "/v1/deferred-operations", None);
    assert!(listed["operations"][0].to_string().contains(job), "{listed}");
    let yes = json!({ "answer": { "approved": true } });
    assert_eq!(operator.send("POST", &format!("/jobs/{job}/answer"), Some(&yes)).0, 200);
    let delivered = intake.until(&handle, "completed");
    assert_eq!(delivered["result"]["status"], "succeeded", "{delivered}");
    assert_eq!(whisper.deliveries(), ["The harbour opens"]);
    drop(daemon);
    verify(dir.path());
    whisper.stop();
}
