//! Services that call back, against the real binary: signed or not heard, and early ones not lost. No poll would come within five minutes.

use std::path::Path;
use std::sync::atomic::Ordering;

use slow_service::{Options, WebhookSecret};

use crate::given::{Daemon, create, ended, expect, longhaul, until};
use crate::hasty_service::Hasty;
use crate::outside::{Outside, daemon_to_call_back};

const SECRET: &str = "whsec_bG9uZ2hhdWwgc2hhcmVzIHRoaXM=";

/// A daemon whose service is told where to call back, and signs what it sends.
fn called_back(dir: &Path, secret: &str) -> (Outside, Daemon) {
    let callback_secret = Some(WebhookSecret::parse(secret).expect("it is a secret"));
    let outside = Outside::start_with(dir, Options { callback_secret, ..Options::default() });
    let recipe = std::fs::read_to_string(&outside.connector).expect("it is there");
    let signed = "secrets: { webhook: { file: webhook } }\ncallbacks: { signed_with: webhook }\n";
    std::fs::write(&outside.connector, format!("{recipe}{signed}")).expect("it can be written");
    std::fs::write(dir.join("webhook"), format!("{SECRET}\n")).expect("it can be written");
    (outside, daemon_to_call_back(dir))
}

#[test]
fn missing_public_url_is_said_at_the_start_and_by_why() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let work = ["print it", "--executor", "slow-service", "--input", r#"{"seconds": 600}"#];
    let why = |id: &str| expect(0, &longhaul(dir.path(), &["jobs", "why", id]));
    let daemon = outside.daemon(dir.path());
    let said = "${operation.callback_url} is empty in the requests of slow-service";
    let log = daemon.log();
    assert!(log.contains(said), "{log}");
    let id = create(dir.path(), &work);
    until(dir.path(), &id, "awaiting_external");
    assert!(why(&id).contains("set public_url in longhaul.yaml"), "{}", why(&id));
    drop(daemon);
    // The log goes on where it was.
    let daemon = daemon_to_call_back(dir.path());
    let told = daemon.log()[log.len()..].to_owned();
    assert!(!told.contains(said), "{told}");
    assert!(!why(&id).contains("public_url"), "{}", why(&id));
    drop(daemon);
    outside.stop();
}

#[test]
fn service_that_signs_its_callback_is_asked_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (outside, daemon) = called_back(dir.path(), SECRET);
    let input = r#"{"seconds": 1, "result": {"pages": 12}}"#;
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]);
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["pages"], 12);
    drop(daemon);
    outside.stop();
}

#[test]
fn callback_that_is_signed_with_another_key_is_refused_and_asks_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (outside, daemon) = called_back(dir.path(), "whsec_c29tZWJvZHkgZWxzZQ==");
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", r#"{"seconds": 1}"#]);
    until(dir.path(), &id, "awaiting_external");
    while outside.failed_callbacks() == 0 {
        std::thread::yield_now();
    }
    let status = crate::given::show(dir.path(), &id);
    assert_eq!(status["state"], "awaiting_external", "{status}");
    assert_eq!(status["runner"]["outside"]["polls"], 0, "{status}");
    drop(daemon);
    outside.stop();
}

#[test]
fn callback_that_comes_before_the_service_has_answered_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (outside, daemon) = called_back(dir.path(), SECRET);
    let input = r#"{"seconds": 600, "manner": "callback_before_answer", "result": {"pages": 12}}"#;
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", input]);
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["pages"], 12);
    drop(daemon);
    outside.stop();
}

#[test]
fn callback_that_was_answered_is_heard_after_a_kill_although_its_operation_was_not_written_down() {
    let dir = tempfile::tempdir().unwrap();
    let (press, answered) = Hasty::start();
    let recipe = include_str!("../../../../examples/connectors/slow-service.yaml");
    std::fs::write(dir.path().join("press.yaml"), recipe.replace("127.0.0.1:8099", &press.address)).unwrap();
    let daemon = daemon_to_call_back(dir.path());
    let id = create(dir.path(), &["print it", "--executor", "slow-service", "--input", "{}"]);
    answered.recv().expect("the callback was answered, and the submit was not");
    daemon.kill();
    let config = dir.path().join("longhaul.yaml");
    let daemon = Daemon::verb(dir.path(), &["serve", "--config", config.to_str().unwrap()]);
    // Without the callback the first question would come after five minutes.
    assert_eq!(ended(dir.path(), &id, "completed")["data"]["pages"], 12);
    assert_eq!(press.starts.load(Ordering::SeqCst), 2, "the second under the same key");
    drop(daemon);
}

#[test]
fn daemon_does_not_start_with_a_key_for_callbacks_that_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let outside = Outside::start(dir.path());
    let recipe = std::fs::read_to_string(&outside.connector).unwrap();
    let key = dir.path().join("webhook");
    std::fs::write(&key, "not base64 at all!\n").unwrap();
    let signed = format!(
        "secrets: {{ webhook: {{ file: {} }} }}\ncallbacks: {{ signed_with: webhook }}\n",
        key.display()
    );
    std::fs::write(&outside.connector, format!("{recipe}{signed}")).unwrap();
    let refused = crate::given::longhaul(
        dir.path(),
        &["serve", "--listen", "127.0.0.1:0", "--connector", &outside.connector],
    );
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("webhook") && told.contains("whsec_ and base64"), "{told}");
    assert!(!told.contains("not base64 at all"), "{told}");
    outside.stop();
}
