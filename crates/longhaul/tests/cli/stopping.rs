//! Signals: a graceful stop, and an end at once.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::given::{Daemon, create, ended, longhaul, show, until, verify};

#[test]
fn sigterm_lets_what_runs_finish_and_ends_with_0() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let slow = ["--executor", "slow", "--input", r#"{"seconds":3}"#];
    let id = create(dir.path(), &[&["slow"][..], &slow].concat());
    until(dir.path(), &id, "running");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!dir.path().join("daemon.json").exists(), "whoever looks for the daemon must not find one");
    let unreachable = longhaul(dir.path(), &["jobs", "list"]);
    assert_eq!(unreachable.status.code(), Some(3));
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    assert_eq!(show(dir.path(), &id)["state"], "completed");
    assert_eq!(show(dir.path(), &id)["runner"]["attempt_count"], 1);
    verify(dir.path());
}

#[test]
fn what_does_not_finish_within_ten_seconds_is_handed_back_and_done_after_the_restart() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let script = "test $LONGHAUL_ATTEMPT_NUMBER = 2 || exec sleep 1000";
    let input = serde_json::json!({ "argv": ["sh", "-c", script] }).to_string();
    let id = create(dir.path(), &["long", "--executor", "command", "--input", &input]);
    until(dir.path(), &id, "running");
    let told = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    // Ten seconds to finish, three to be handed back, and a busy machine.
    assert!((10..25).contains(&told.elapsed().as_secs()), "it took {:?}", told.elapsed());
    let _daemon = Daemon::start(dir.path());
    ended(dir.path(), &id, "completed");
    verify(dir.path());
}

#[test]
fn second_signal_ends_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let slow = ["--executor", "slow", "--input", r#"{"seconds":60}"#];
    let id = create(dir.path(), &[&["slow"][..], &slow].concat());
    until(dir.path(), &id, "running");
    daemon.signal(Signal::INT);
    while !daemon.log().contains("SIGINT: stopping") {
        std::thread::yield_now();
    }
    let told = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(1));
    assert!(told.elapsed() < Duration::from_secs(5), "it took its time");
    verify(dir.path());
}
