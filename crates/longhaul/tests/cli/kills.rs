//! kill -9 in every state that a job can be found in; started again, the job finishes and the store agrees with its ledger.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::given::{
    Daemon, binary, create, ended, expect, json as json_of, longhaul, show, until, verify, within,
};

#[test]
fn queued_job_survives_and_is_done_after_the_restart() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let id = create(dir.path(), &["kept", "--executor", "noop", "--input", r#"{"n":18446744073709551615}"#]);
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    assert_eq!(ended(dir.path(), &id, "completed")["data"].to_string(), r#"{"n":18446744073709551615}"#);
    verify(dir.path());
}

#[test]
fn job_that_is_due_later_is_done_then_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["later", "--executor", "noop", "--due-at", "in 4s"]);
    let due_at: jiff::Timestamp = show(dir.path(), &id)["due_at"].as_str().unwrap().parse().unwrap();
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    let result = ended(dir.path(), &id, "completed");
    let completed_at: jiff::Timestamp = result["completed_at"].as_str().unwrap().parse().unwrap();
    assert!(completed_at >= due_at, "{completed_at} is before {due_at}");
    verify(dir.path());
}

#[test]
fn job_that_was_just_dispatched_is_tried_again() {
    killed_while("dispatching");
}

/// The lease has a minute left: that it is not waited for is what is tested.
#[test]
fn job_that_a_builtin_executor_runs_is_tried_again_at_once() {
    killed_while("running");
}

fn killed_while(state: &str) {
    let dir = tempfile::tempdir().expect("there is room");
    let daemon = Daemon::start(dir.path());
    // Whoever follows it must be there before it is dispatched: `dispatching` lasts for a second.
    let slow = ["slow", "--executor", "slow", "--input", r#"{"seconds":4}"#, "--due-at", "in 5s"];
    let id = create(dir.path(), &slow);
    until(dir.path(), &id, state);
    daemon.kill();
    let restarted = std::time::Instant::now();
    let _daemon = Daemon::start(dir.path());
    let result = ended(dir.path(), &id, "completed");
    assert!(restarted.elapsed() < Duration::from_secs(30), "the lease of the dead daemon was waited for");
    assert_eq!(result["data"]["attempt"], 2);
    verify(dir.path());
}

#[test]
fn job_that_a_process_runs_is_tried_again_and_the_process_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let script = "test $LONGHAUL_ATTEMPT_NUMBER = 2 && exit 0; echo $$ > pid; exec sleep 1000";
    let input = json!({ "argv": ["sh", "-c", script], "cwd": dir.path() }).to_string();
    let id = create(dir.path(), &["process", "--executor", "command", "--input", &input]);
    until(dir.path(), &id, "running");
    let pid = within("the process has told its id", || {
        std::fs::read_to_string(dir.path().join("pid")).ok().filter(|pid| pid.ends_with('\n'))
    });
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    ended(dir.path(), &id, "completed");
    // One that is dead may wait for its burial.
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "the first attempt's process lives: {stat}");
    verify(dir.path());
}

#[test]
fn job_that_waits_for_its_next_attempt_waits_on_and_keeps_its_count() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let input = json!({ "argv": ["sh", "-c", "test $LONGHAUL_ATTEMPT_NUMBER = 4"] }).to_string();
    let id =
        create(dir.path(), &["again", "--executor", "command", "--input", &input, "--max-attempts", "4"]);
    // The third wait is long enough to be caught in.
    let due_at = loop {
        let why = json_of(dir.path(), &["jobs", "why", &id]);
        let reason = &why["reasons"][0];
        let third = reason["detail"].as_str().is_some_and(|told| told.starts_with("attempt 3 "));
        if reason["code"] == "backing_off" && third {
            break why["earliest_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        }
    };
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    ended(dir.path(), &id, "completed");
    let attempts = show(dir.path(), &id)["runner"]["attempts"].clone();
    assert_eq!(attempts.as_array().unwrap().len(), 4, "{attempts}");
    let began: jiff::Timestamp = attempts[3]["started_at"].as_str().unwrap().parse().unwrap();
    assert!(began >= due_at, "the last attempt began at {began}, before {due_at}");
    verify(dir.path());
}

#[test]
fn job_that_waits_for_an_answer_still_waits_and_takes_it() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let input = r#"{"ask":"which colour?","seconds":0}"#;
    let id = create(dir.path(), &["asks", "--executor", "slow", "--input", input]);
    until(dir.path(), &id, "awaiting_input");
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    assert_eq!(show(dir.path(), &id)["state"], "awaiting_input");
    expect(0, &longhaul(dir.path(), &["jobs", "answer", &id, "--text", "blue"]));
    let result = ended(dir.path(), &id, "completed");
    assert_eq!((&result["data"]["answer"], &result["data"]["attempt"]), (&json!("blue"), &json!(1)));
    verify(dir.path());
}

#[test]
fn cancel_that_was_pending_is_concluded_and_never_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let script = "trap '' TERM; touch ready; while :; do sleep 1; done";
    let input = json!({ "argv": ["sh", "-c", script], "cwd": dir.path() }).to_string();
    let id = create(dir.path(), &["stubborn", "--executor", "command", "--input", &input]);
    until(dir.path(), &id, "running");
    within("it does not hear", || dir.path().join("ready").exists().then_some(()));
    expect(0, &longhaul(dir.path(), &["jobs", "cancel", &id, "--reason", "enough"]));
    let status = show(dir.path(), &id);
    assert_eq!((&status["state"], &status["cancel_requested"]), (&json!("running"), &json!(true)));
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    ended(dir.path(), &id, "cancelled");
    assert_eq!(show(dir.path(), &id)["cancellation_reason"], "enough");
    verify(dir.path());
}

#[test]
fn job_whose_doer_keeps_the_record_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["by hand"]);
    expect(0, &longhaul(dir.path(), &["jobs", "update", &id, "--state", "blocked", "--note", "no paper"]));
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    let status = show(dir.path(), &id);
    assert_eq!(
        (&status["state"], &status["progress_events"][0]["note"]),
        (&json!("blocked"), &json!("no paper"))
    );
    expect(
        0,
        &longhaul(dir.path(), &["jobs", "update", &id, "--state", "completed", "--result-summary", "done"]),
    );
    assert_eq!(ended(dir.path(), &id, "completed")["summary"], "done");
    verify(dir.path());
}

#[test]
fn whoever_follows_a_job_does_not_notice_the_restart() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["slow", "--executor", "slow", "--input", r#"{"seconds":2}"#]);
    let mut watch = binary(&["jobs", "watch", &id, "--json"])
        .env("LONGHAUL_DATA_DIR", dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    // It follows already when its daemon is killed.
    lines.next().unwrap().unwrap();
    daemon.kill();
    let _daemon = Daemon::start(dir.path());
    let last = lines.last().unwrap().unwrap();
    assert!(last.contains(r#""state":"completed""#), "{last}");
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}
