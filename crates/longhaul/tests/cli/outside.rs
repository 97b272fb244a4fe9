//! A slow HTTP service behind one file: the real binary, a real service in the test's own process, and kill -9 in between.

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;
use slow_service::{Options, SlowService};
use tokio::runtime::Runtime;

use crate::given::{Daemon, binary, create, ended, expect, json, longhaul, until, verify};

const ASKED_EVERY_FIVE_MINUTES: &str = "policy:\n  kind_overrides: { slow-service: { min_retry_after_seconds: 300, \
     max_retry_after_seconds: 300, default_retry_after_seconds: 300 } }\n";
/// Ports that are tried, one after the other.
const PORTS: usize = 5;

/// The service, and the connector that leads to it.
pub struct Outside {
    runtime: Runtime,
    service: SlowService,
    pub connector: String,
}

impl Outside {
    pub fn start(dir: &Path) -> Self {
        Self::start_with(dir, Options::default())
    }

    pub fn start_with(dir: &Path, options: Options) -> Self {
        let runtime = Runtime::new().expect("a runtime starts");
        let service = runtime.block_on(SlowService::start(options)).expect("it listens");
        let url = service.url();
        let address = url.strip_prefix("http://").expect("it speaks plain HTTP");
        let recipe = include_str!("../../../../examples/connectors/slow-service.yaml");
        let connector = dir.join("press.yaml");
        std::fs::write(&connector, recipe.replace("127.0.0.1:8099", address)).expect("it can be written");
        let connector = connector.to_str().expect("it is text").to_owned();
        Self { runtime, service, connector }
    }

    pub fn daemon(&self, dir: &Path) -> Daemon {
        Daemon::verb(dir, &["serve", "--listen", "127.0.0.1:0", "--connector", &self.connector])
    }

    /// Gives work to the service as anybody would.
    pub fn give(&self, work: &Value) -> Value {
        let request = ureq::post(format!("{}/work", self.service.url()))
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", format!("by-hand-{}", self.starts()));
        let text = request.send(work.to_string()).expect("it is taken").body_mut().read_to_string();
        serde_json::from_str(&text.expect("it is text")).expect("it is JSON")
    }

    /// How often the service was given work.
    pub fn starts(&self) -> usize {
        self.service.starts().len()
    }

    /// How many callbacks were not taken.
    pub fn failed_callbacks(&self) -> u64 {
        self.service.requests().failed_callbacks
    }

    pub fn stop(self) {
        self.runtime.block_on(self.service.stop());
    }
}

/// A daemon that tells the service of `press.yaml` where to call back; no poll would come within five minutes. Its configuration says
/// where it listens.
pub fn daemon_to_call_back(dir: &Path) -> Daemon {
    let config = dir.join("longhaul.yaml");
    for _ in 0..PORTS {
        // The address must be known before the daemon has one: somebody else may take it in between.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let free = free.expect("there is a free port");
        let text = format!(
            "listen: {free}\npublic_url: http://{free}\nconnectors: [press.yaml]\n{ASKED_EVERY_FIVE_MINUTES}"
        );
        std::fs::write(&config, text).expect("it can be written");
        match Daemon::try_verb(dir, &["serve", "--config", config.to_str().expect("it is text")]) {
            Ok(daemon) => return daemon,
            Err(said) => assert!(said.contains(&format!("cannot listen on {free}")), "{said}"),
        }
    }
    panic!("each of {PORTS} free ports was taken by somebody else");
}

/// The facts of the whole ledger of this kind, as JSON.
fn facts(dir: &Path, kind: &str) -> Vec<Value> {
    let printed = expect(0, &longhaul(dir, &["export", "facts"]));
    let facts = printed.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    facts.filter(|fact| fact["kind"] == kind).collect()
}

/// Waits until the service was asked so often.
fn until_polled(dir: &Path, times: usize) {
    while facts(dir, "external_production_polled/1").len() < times {
        std::thread::yield_now();
    }
}

// conforms: L86
#[test]
fn service_that_answers_later_is_asked_until_it_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let daemon = outside.daemon(dir.path());
    let input = r#"{"seconds": 10, "steps": 10, "result": {"pages": 12}}"#;
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]);
    until(dir.path(), &id, "awaiting_external");
    let result = ended(dir.path(), &id, "completed");
    assert_eq!(result["data"]["pages"], 12);
    let polled = facts(dir.path(), "external_production_polled/1");
    let hints: Vec<_> =
        polled.iter().filter_map(|fact| fact["payload"]["polled"]["progress_hint"].as_str()).collect();
    assert!(polled.len() >= 2 && hints.len() >= 2, "{polled:?}");
    let rises = |values: &[&str]| values.windows(2).all(|pair| pair[0] != pair[1]);
    let times: Vec<_> = polled.iter().filter_map(|fact| fact["at"].as_str()).collect();
    assert!(times.len() == polled.len() && times.is_sorted() && rises(&times) && rises(&hints), "{polled:?}");
    assert_eq!(facts(dir.path(), "external_production_resolved/1").len(), 1);
    assert_eq!(outside.starts(), 1);
    drop(daemon);
    verify(dir.path());
    outside.stop();
}

// conforms: A38 L2 L3 L84 L87 O87
#[test]
fn daemon_that_is_killed_between_two_polls_goes_on_asking_and_gives_the_work_out_once() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let daemon = outside.daemon(dir.path());
    let input = r#"{"seconds": 5, "steps": 5, "result": {"pages": 12}}"#;
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]);
    until(dir.path(), &id, "awaiting_external");
    until_polled(dir.path(), 1);
    daemon.kill();
    let polled = facts(dir.path(), "external_production_polled/1").len();
    let daemon = outside.daemon(dir.path());
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["pages"], 12);
    assert!(facts(dir.path(), "external_production_polled/1").len() > polled);
    assert_eq!((outside.starts(), facts(dir.path(), "job.dispatched/1").len()), (1, 1));
    drop(daemon);
    verify(dir.path());
    outside.stop();
}

#[test]
fn cancel_reaches_the_service() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let daemon = outside.daemon(dir.path());
    let id =
        create(dir.path(), &["print it", "--executor", "slow-service", "--input", r#"{"seconds": 600}"#]);
    until(dir.path(), &id, "awaiting_external");
    expect(0, &longhaul(dir.path(), &["jobs", "cancel", &id]));
    ended(dir.path(), &id, "cancelled");
    let ledger = facts(dir.path(), "operation.cancelled/1");
    assert_eq!(ledger.len(), 1);
    drop(daemon);
    outside.stop();
}

#[test]
fn service_that_takes_the_work_and_never_says_so_is_asked_again_under_the_same_key() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let daemon = outside.daemon(dir.path());
    let input = r#"{"seconds": 1, "manner": "accepts_then_drops", "bad_answers": 1, "result": {"pages": 1}}"#;
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]);
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["pages"], 1);
    assert_eq!(outside.starts(), 1);
    assert!(
        facts(dir.path(), "job.requeued/1")
            .iter()
            .any(|fact| fact["payload"]["requeued"]["cause"] == "submit_unknown")
    );
    drop(daemon);
    outside.stop();
}

#[test]
fn connector_is_checked_and_tried_without_a_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/connectors");
    let recipe = root.join("accepted-location.yaml");
    let recipe = recipe.to_str().unwrap();
    let said = expect(0, &longhaul(dir.path(), &["connector", "check", recipe]));
    assert!(said.contains("can be used") && said.contains("needs the variable"), "{said}");
    assert!(said.contains("catalog digest: sha256:") && !said.contains("public_url"), "{said}");
    let calls_back = root.join("prediction.yaml");
    let said = expect(0, &longhaul(dir.path(), &["connector", "check", calls_back.to_str().unwrap()]));
    assert!(
        said.contains("${operation.callback_url} is empty unless longhaul.yaml has public_url"),
        "{said}"
    );
    let exchange = root.join("exchanges/accepted-location.yaml");
    let replayed = expect(
        0,
        &longhaul(dir.path(), &["connector", "test", recipe, "--exchange", exchange.to_str().unwrap()]),
    );
    assert!(replayed.contains("step 1: {\"deferred\""), "{replayed}");
    assert!(
        replayed.contains(r#"step 1: sends POST https://reports.example.com/v1/reports {"month":"2026-10"}"#),
        "{replayed}"
    );
    assert!(replayed.contains(r#"step 2: is answered 202 {"message":"counting"}"#), "{replayed}");
    assert!(!replayed.contains("report-token-1"), "{replayed}");
    let broken = dir.path().join("broken.yaml");
    std::fs::write(&broken, "name: press\nsubmitt: {}\n").unwrap();
    let refused = longhaul(dir.path(), &["connector", "check", broken.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("broken.yaml:2:1") && told.contains("submit"), "{told}");
}

#[test]
fn every_recipe_passes_its_check_and_the_exchange_that_was_recorded_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/connectors");
    let exchanges: Vec<_> =
        std::fs::read_dir(root.join("exchanges")).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(exchanges.len() >= 6, "{exchanges:?}");
    for exchange in exchanges {
        let recipe = root.join(exchange.file_name());
        let (recipe, exchange) = (recipe.to_str().unwrap(), exchange.path());
        expect(0, &longhaul(dir.path(), &["connector", "check", recipe]));
        let test = ["connector", "test", recipe, "--exchange", exchange.to_str().unwrap()];
        expect(0, &longhaul(dir.path(), &test));
    }
}

#[test]
fn a_connector_that_cannot_work_does_not_pass_its_check() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("press.yaml");
    for (name, url, told) in [
        ("press", "htp//press.example.com/", r#"submit.url: "htp//press.example.com/" does not begin with"#),
        ("press", "http://127.0.0.1:9000/", "unless the key allow lists 127.0.0.1:9000"),
        ("noop", "https://press.example.com/", r#"name: every daemon has an executor named "noop""#),
    ] {
        let text = format!("name: {name}\nsubmit: {{ url: \"{url}\", idempotent: false }}\n");
        std::fs::write(&file, text).unwrap();
        let checked = longhaul(dir.path(), &["connector", "check", file.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&checked.stderr);
        assert_eq!(checked.status.code(), Some(1), "{said}");
        assert!(said.contains(told), "{said}");
        assert!(checked.stdout.is_empty(), "it cannot be used");
    }
}

#[test]
fn connectors_of_the_configuration_are_read_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let config = dir.path().join("longhaul.yaml");
    std::fs::write(&config, "connectors: [press.yaml]\npolicy: { defaults: { max_ttl_seconds: 60 } }\n")
        .unwrap();
    let config = config.to_str().unwrap().to_owned();
    let said = expect(0, &longhaul(dir.path(), &["config", "check", &config]));
    assert!(said.contains("slow-service"), "{said}");
    let daemon = Daemon::verb(dir.path(), &["serve", "--listen", "127.0.0.1:0", "--config", &config]);
    let id =
        create(dir.path(), &["print it", "--executor", "slow-service", "--input", r#"{"seconds": 600}"#]);
    until(dir.path(), &id, "awaiting_external");
    let accepted = &facts(dir.path(), "external_production_dispatched/1")[0];
    assert_eq!(accepted["payload"]["dispatched"]["policy"]["max_ttl_seconds"], 60);
    let _ = json(dir.path(), &["jobs", "show", &id]);
    drop(daemon);
    outside.stop();
}

#[test]
fn work_that_nobody_confirmed_to_have_stopped_is_listed_until_somebody_has_looked() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let config = dir.path().join("longhaul.yaml");
    // It may live for two seconds, and its service never ends it nor stops it.
    let policy = "kind_overrides: { slow-service: { max_ttl_seconds: 2, max_retry_after_seconds: 1, default_retry_after_seconds: 1 } }";
    std::fs::write(&config, format!("connectors: [press.yaml]\npolicy:\n  {policy}\n")).unwrap();
    let config = config.to_str().unwrap().to_owned();
    let daemon = Daemon::verb(dir.path(), &["serve", "--listen", "127.0.0.1:0", "--config", &config]);
    let input = r#"{"seconds": 600, "manner": "refuses_cancel"}"#;
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]);
    ended(dir.path(), &id, "expired");
    let orphan = loop {
        let orphan = json(dir.path(), &["orphans", "list"])["orphans"][0].clone();
        if orphan["last_cancel_answer"]["answer"] == "refused" {
            break orphan;
        }
    };
    assert_eq!((&orphan["job_id"], &orphan["reason"]), (&id.clone().into(), &"expired_while_live".into()));
    let operation = orphan["operation_id"].as_str().unwrap();
    expect(0, &longhaul(dir.path(), &["orphans", "cancel", operation]));
    expect(0, &longhaul(dir.path(), &["orphans", "settle", operation, "--note", "not on the console"]));
    let left = json(dir.path(), &["orphans", "list"]);
    assert_eq!(left["orphans"].as_array().unwrap().len(), 0, "{left}");
    drop(daemon);
    verify(dir.path());
    outside.stop();
}

#[test]
fn service_that_calls_back_is_asked_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let daemon = daemon_to_call_back(dir.path());
    let input = r#"{"seconds": 1, "result": {"pages": 12}}"#;
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]);
    // Without the callback the first question would come after five minutes.
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["pages"], 12);
    drop(daemon);
    outside.stop();
}

/// The flat lines of one operation: its kind of event and its payload, in the order of the ledger.
fn productions_of(lines: &[Value], job: &str) -> Vec<(String, Value)> {
    let dispatched = lines.iter().find(|line| line["payload"]["render_job_id"] == job);
    let operation = &dispatched.expect("it was given out")["object_id"];
    let own = lines.iter().filter(|line| line["object_id"] == *operation);
    own.map(|line| (line["event_kind"].as_str().expect("it has one").to_owned(), line["payload"].clone()))
        .collect()
}

#[track_caller]
fn assert_members(payload: &Value, expected: &[&str]) {
    let members: Vec<&str> = payload.as_object().expect("it is flat").keys().map(String::as_str).collect();
    assert_eq!(members, expected, "{payload}");
}

/// Work that ends well and work that does not, on this store: `export productions` has the three kinds flat.
pub fn productions_are_exported_flat(store: &[&str]) {
    const DISPATCHED: &str = "external_production_dispatched";
    const POLLED: &str = "external_production_polled";
    const RESOLVED: &str = "external_production_resolved";
    let dir = tempfile::tempdir().expect("there is room");
    let outside = Outside::start(dir.path());
    let daemon = Daemon::start_with(dir.path(), &[&["--connector", &outside.connector], store].concat());
    let given =
        |input: &str| create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]);
    let good = given(r#"{"seconds": 8, "steps": 8, "result": {"pages": 12}}"#);
    let bad = given(r#"{"seconds": 1, "steps": 1, "outcome": "failed"}"#);
    let result = ended(dir.path(), &good, "completed");
    let error = ended(dir.path(), &bad, "failed")["error"].clone();
    let place = match store {
        [] => vec!["--data-dir", dir.path().to_str().expect("it is text")],
        store => store.to_vec(),
    };
    let exported = expect(
        0,
        &binary(&[&["export", "productions"], &place[..]].concat()).output().expect("the binary runs"),
    );
    let lines: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();

    let told = productions_of(&lines, &good);
    let (kind, payload) = &told[0];
    assert_eq!(kind, DISPATCHED);
    let dispatched =
        ["declared_render_type_ref", "external_job_id", "polling_interval_seconds", "progress_hint"];
    assert_members(payload, &[&dispatched[..], &["render_job_id", "specialist_ref"]].concat());
    assert_eq!(
        (&payload["render_job_id"], &payload["declared_render_type_ref"]),
        (&good.clone().into(), &"slow-service".into())
    );
    assert!(
        payload["specialist_ref"].is_string()
            && payload["external_job_id"].is_string()
            && payload["polling_interval_seconds"].is_u64(),
        "{payload}"
    );
    let polled: Vec<&Value> =
        told.iter().filter(|(kind, _)| kind == POLLED).map(|(_, payload)| payload).collect();
    assert!(
        !polled.is_empty() && polled.iter().any(|payload| payload["progress_hint"].is_string()),
        "{told:?}"
    );
    for payload in polled {
        let allowed = ["polling_interval_seconds", "progress_hint"];
        let members = payload.as_object().expect("it is flat").keys();
        assert!(members.into_iter().all(|member| allowed.contains(&member.as_str())), "{payload}");
    }
    let (kind, payload) = told.last().expect("it has ended");
    assert_eq!(kind, RESOLVED);
    let digest = store::sha256(result["data"].to_string().as_bytes());
    assert_eq!(*payload, serde_json::json!({ "render_event_object_id": format!("sha256:{digest}") }));

    let (kind, payload) = productions_of(&lines, &bad).pop().expect("it has ended");
    assert_eq!(kind, RESOLVED);
    assert_members(&payload, &["error_code", "failure_detail"]);
    assert_eq!(payload["error_code"], error["code"], "{error}");
    assert!(payload["failure_detail"].is_string(), "{payload}");
    for line in &lines {
        assert_eq!(line["object_type"], "external_production_record", "{line}");
        let flat = line["payload"].as_object().expect("it is flat").values();
        assert!(flat.into_iter().all(|value| !value.is_object() && !value.is_array()), "{line}");
    }
    drop(daemon);
    outside.stop();
}

// conforms: L94
#[test]
fn productions_are_exported_flat_from_a_file() {
    productions_are_exported_flat(&[]);
}
