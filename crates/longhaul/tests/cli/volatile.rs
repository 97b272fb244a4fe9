//! Work outside that does not outlive its daemon: given up and listed after kill -9, and shown for what it is before.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, create, ended, expect, json as json_of, longhaul, show, until, verify, within};
use crate::outside::Outside;

/// A connector whose policy says so, asked every second.
fn volatile(dir: &Path) -> Outside {
    let outside = Outside::start(dir);
    let recipe = std::fs::read_to_string(&outside.connector).expect("what the test needs is there");
    let policy =
        "policy: { persistence: volatile, default_retry_after_seconds: 1, max_retry_after_seconds: 1 }\n";
    std::fs::write(&outside.connector, format!("{policy}{recipe}")).expect("what the test needs is there");
    outside
}

fn request(dir: &Path, daemon: &Daemon, path: &str, body: Option<&Value>) -> Value {
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("what the test needs is there");
    let (url, bearer) = (format!("{}{path}", daemon.url), format!("Bearer {}", token.trim()));
    let mut answer = match body {
        Some(body) => ureq::post(url)
            .header("authorization", bearer)
            .header("content-type", "application/json")
            .send(body.to_string()),
        None => ureq::get(url).header("authorization", bearer).call(),
    }
    .expect("what the test needs is there");
    serde_json::from_str(&answer.body_mut().read_to_string().expect("what the test needs is there"))
        .expect("what the test needs is there")
}

fn polls(dir: &Path, id: &str) -> u64 {
    show(dir, id)["runner"]["outside"]["polls"].as_u64().unwrap_or_default()
}

fn polled_facts(dir: &Path) -> usize {
    let printed = expect(0, &longhaul(dir, &["export", "facts"]));
    printed.lines().filter(|line| line.contains("external_production_polled/1")).count()
}

// conforms: O130
#[test]
fn volatile_work_of_a_killed_daemon_is_given_up_and_listed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let outside = volatile(dir);
    let daemon = outside.daemon(dir);
    let input = json!({ "seconds": 600, "manner": "refuses_cancel" });
    let id = create(dir, &["print it", "--executor", "slow-service", "--input", &input.to_string()]);
    until(dir, &id, "awaiting_external");
    within("a poll", || (polls(dir, &id) > 0).then_some(()));
    daemon.kill();
    let before = polled_facts(dir);

    let daemon = outside.daemon(dir);
    let result = ended(dir, &id, "failed");
    assert_eq!(result["error"]["code"], "volatile_lost", "{result}");
    let orphan = within("a refused cancel", || {
        let orphan = json_of(dir, &["orphans", "list"])["orphans"][0].clone();
        (orphan["last_cancel_answer"]["answer"] == "refused").then_some(orphan)
    });
    assert_eq!((&orphan["job_id"], &orphan["reason"]), (&json!(id), &json!("volatile_lost")), "{orphan}");
    let why = expect(0, &longhaul(dir, &["jobs", "why", &id]));
    assert!(why.contains("may still run outside (volatile_lost)"), "{why}");
    drop(daemon);
    assert_eq!(polled_facts(dir), before, "it is not asked about any more");
    assert_eq!(outside.starts(), 1);
    verify(dir);
    outside.stop();
}

// conforms: O130
#[test]
fn volatile_work_is_shown_and_ends_under_its_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let outside = volatile(dir);
    let daemon = outside.daemon(dir);
    let invoke = |input: Value| {
        let call = json!({ "input": input, "timing": { "mode": "async" } });
        request(dir, &daemon, "/v1/capabilities/slow-service/invoke", Some(&call))
    };
    let handle = invoke(json!({ "seconds": 600 }));
    assert_eq!(handle["extensions"]["persistence"], "volatile", "{handle}");
    let id = handle["audit/outcome-ref"].as_str().unwrap();
    let waits = until(dir, id, "awaiting_external");
    assert_eq!(waits["runner"]["outside"]["persistence"], "volatile", "{waits}");
    let path = handle["status_href"].as_str().unwrap();
    let status = request(dir, &daemon, path, None);
    assert_eq!(status["extensions"]["persistence"], "volatile", "{status}");
    let view = request(dir, &daemon, path.strip_suffix("/status").unwrap(), None);
    let list = request(dir, &daemon, "/v1/deferred-operations", None);
    for view in [&view["operation"], &list["operations"][0]] {
        assert_eq!(view["persistence"], "volatile", "{view}");
    }
    let why = expect(0, &longhaul(dir, &["jobs", "why", id]));
    assert!(why.contains("persistence is volatile"), "{why}");
    assert!(expect(0, &longhaul(dir, &["jobs", "show", id])).contains("persistence: volatile"));

    let handle = invoke(json!({ "seconds": 1, "result": { "pages": 12 } }));
    let result = ended(dir, handle["audit/outcome-ref"].as_str().unwrap(), "completed");
    assert_eq!(result["data"]["pages"], 12);
    outside.stop();
}
