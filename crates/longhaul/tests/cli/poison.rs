//! Work that ends whoever runs it: it is tried as often as it may be and no more, the record says why it stopped, and all other work goes on.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, create, ended, plugin, show, until_over, verify};

const ATTEMPTS: usize = 5;
/// Jobs that do nobody any harm.
const OTHERS: usize = 40;

/// Each time that it runs is a line in this file; then it does this.
fn script(dir: &Path, then: &str) -> String {
    format!("echo run >> '{}'; {then}; sleep 1000", dir.join("runs").display())
}

fn runs(dir: &Path) -> usize {
    std::fs::read_to_string(dir.join("runs")).expect("it was run").lines().count()
}

fn command(script: &str) -> String {
    json!({ "argv": ["sh", "-c", script] }).to_string()
}

fn others(dir: &Path) -> Vec<String> {
    let harmless = command("echo 7");
    let one = |_| {
        let arguments = ["harmless", "--executor", "command", "--input", &harmless, "--max-attempts", "100"];
        create(dir, &[&arguments[..], &["--backoff", "0s"]].concat())
    };
    (0..OTHERS).map(one).collect()
}

fn poison(dir: &Path, executor: &str, input: &str) -> String {
    let attempts = ATTEMPTS.to_string();
    let arguments = ["poison", "--executor", executor, "--input", input, "--max-attempts", &attempts];
    create(dir, &[&arguments[..], &["--backoff", "0s"]].concat())
}

/// Every attempt was run, once, and says how it ended.
#[track_caller]
fn assert_tried_out(dir: &Path, id: &str) -> Value {
    let status = show(dir, id);
    assert_eq!(runs(dir), ATTEMPTS, "{status}");
    assert_eq!(status["runner"]["attempt_count"], ATTEMPTS, "{status}");
    status
}

#[track_caller]
fn assert_supervisors_are_lost_and_others_go_on(dir: &Path, id: &str) {
    let others = others(dir);
    let result = ended(dir, id, "failed");
    assert_eq!(result["error"]["code"], "supervisor_lost", "{result}");
    assert_tried_out(dir, id);
    for other in others {
        ended(dir, &other, "completed");
    }
    verify(dir);
}

#[test]
fn command_that_kills_its_supervisor_is_tried_so_often_and_no_more_and_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let id = poison(dir.path(), "command", &command(&script(dir.path(), "kill -9 $PPID")));
    assert_supervisors_are_lost_and_others_go_on(dir.path(), &id);
}

#[test]
fn plugin_that_kills_its_supervisor_is_tried_so_often_and_no_more_and_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    plugin(dir.path(), "poison", &script(dir.path(), "kill -9 $PPID"));
    let config = dir.path().join("longhaul.yaml");
    // Failures in a row would have it left alone, which is another promise.
    let text = "plugin_roots: [plugins]\nplugins: { poison: { circuit_breaker: { threshold: 100 } } }\n";
    std::fs::write(&config, text).unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--config", config.to_str().unwrap()]);
    let id = poison(dir.path(), "poison", "{}");
    assert_supervisors_are_lost_and_others_go_on(dir.path(), &id);
}

/// It takes the daemon with it, which somebody starts again each time.
#[test]
fn command_that_kills_the_daemon_is_tried_so_often_and_no_more_and_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    // Not before it says that it is ready, and nobody else.
    let victim = dir.path().join("victim");
    let kills = format!("until kill -9 $(cat '{}'); do sleep 0.01; done", victim.display());
    let id = poison(dir.path(), "command", &command(&script(dir.path(), &kills)));
    let others = others(dir.path());
    drop(daemon);
    for _ in 0..ATTEMPTS {
        let daemon = Daemon::start(dir.path());
        std::fs::write(&victim, daemon.pid().to_string()).unwrap();
        let over = until_over(daemon);
        std::fs::remove_file(&victim).unwrap();
        assert_eq!(over, Some(9), "{}", runs(dir.path()));
    }
    let _daemon = Daemon::start(dir.path());
    ended(dir.path(), &id, "unavailable");
    let status = assert_tried_out(dir.path(), &id);
    assert_eq!(status["state_reason"], "runner_interrupted", "{status}");
    let release = &status["runner"]["release_result"];
    assert_eq!((&release["status"], &release["reason"]), (&"failed".into(), &"not_confirmed".into()));
    assert_eq!(release["released_at"], serde_json::Value::Null, "nobody has seen its end: {release}");
    for other in others {
        ended(dir.path(), &other, "completed");
    }
    verify(dir.path());
}
