//! Damaged bytes seen from outside: the real binary refuses a damaged log with every verb, and gives no damaged body to anybody.

use std::path::Path;

use rusqlite::Connection;
use rustix::process::Signal;

use crate::given::{Daemon, create, ended, expect, longhaul, show, stderr, within};
use crate::whose::{refused, serve};

/// A daemon that has accepted some jobs, and the last of them.
fn used(dir: &Path) -> (Daemon, String) {
    let daemon = Daemon::start_with(dir, &["--no-dispatch"]);
    let mut id = String::new();
    for number in 0..8 {
        id = create(dir, &[&format!("number {number}")]);
    }
    (daemon, id)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("it can be read");
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("it can be written");
}

#[test]
fn damaged_log_is_refused_by_every_verb_and_accepted_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let (daemon, last) = used(dir.path());
    daemon.kill();
    let log = dir.path().join("longhaul.sqlite-wal");
    let length = usize::try_from(log.metadata().unwrap().len()).unwrap();
    flip(&log, length / 2);
    let (elsewhere, verbs) = (tempfile::tempdir().unwrap(), ["verify", "rebuild"]);
    let file = elsewhere.path().join("of.backup");
    for verb in verbs.iter().map(std::slice::from_ref).chain([&["export", "facts"][..]]) {
        refused("log_damaged", &longhaul(dir.path(), verb));
    }
    refused("log_damaged", &longhaul(dir.path(), &["backup", file.to_str().unwrap()]));
    let told = serve(dir.path(), &[]);
    refused("log_damaged", &told);
    for words in ["frame ", "at byte ", "longhaul restore", "--accept-loss"] {
        assert!(stderr(&told).contains(words), "{}", stderr(&told));
    }

    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch", "--accept-loss"]);
    assert!(daemon.log().contains("lost commits were accepted by the operator"), "{}", daemon.log());
    assert!(!longhaul(dir.path(), &["jobs", "show", &last]).status.success());
    let kept = create(dir.path(), &["since"]);
    drop(daemon);
    let verified = expect(0, &longhaul(dir.path(), &["verify"]));
    assert!(verified.starts_with("note: lost commits were accepted at "), "{verified}");
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    assert_eq!(show(dir.path(), &kept)["state"], "queued");
}

#[test]
fn older_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (file, old) = (dir.path().join("longhaul.sqlite"), dir.path().join("old"));
    stop(used(dir.path()).0);
    std::fs::copy(&file, &old).unwrap();
    let (daemon, id) = used(dir.path());
    stop(daemon);
    let new = std::fs::read(&file).unwrap();
    std::fs::rename(&old, &file).unwrap();
    refused("commits_lost", &serve(dir.path(), &[]));
    refused("commits_lost", &longhaul(dir.path(), &["verify"]));
    std::fs::write(&file, new).unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    assert_eq!(show(dir.path(), &id)["state"], "queued");
}

/// So that the log is in the file.
fn stop(daemon: Daemon) {
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
}

/// Changes a stored body while no daemon runs.
fn change_body(dir: &Path, id: &str, name: &str) {
    let store = Connection::open(dir.join("longhaul.sqlite")).expect("it is there");
    let changed = "UPDATE bodies SET bytes = CAST(replace(CAST(bytes AS TEXT), 'one', 'two') AS BLOB) \
                   WHERE record_id = ?1 AND name = ?2";
    assert_eq!(store.execute(changed, (id, name)).expect("it is there"), 1);
}

/// Asks over HTTP as the administrator: the status, and the answer.
fn get(dir: &Path, daemon: &Daemon, path: &str) -> (u16, String) {
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("the daemon has made it");
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let asked = agent.get(format!("{}{path}", daemon.url));
    let asked = asked.header("Authorization", format!("Bearer {}", token.trim()));
    let mut answer = asked.call().expect("the daemon answers");
    (answer.status().as_u16(), answer.body_mut().read_to_string().expect("it is text"))
}

#[test]
fn damaged_result_is_an_error_and_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["t", "--executor", "noop", "--input", "{\"page\":\"one\"}"]);
    ended(dir.path(), &id, "completed");
    daemon.kill();
    change_body(dir.path(), &id, "result");
    let daemon = Daemon::start(dir.path());
    let result = longhaul(dir.path(), &["jobs", "result", &id]);
    expect(1, &result);
    assert!(stderr(&result).contains("a stored body is damaged"), "{}", stderr(&result));
    assert!(daemon.log().contains("body_damaged") && daemon.log().contains("expected="), "{}", daemon.log());
    let (status, problem) = get(dir.path(), &daemon, &format!("/jobs/{id}/result"));
    let problem: serde_json::Value = serde_json::from_str(&problem).unwrap();
    assert_eq!((status, &problem["code"]), (500, &"body_damaged".into()), "{problem}");
    assert!(problem.get("result").is_none(), "nothing of it is given: {problem}");
    let (_, metrics) = get(dir.path(), &daemon, "/metrics");
    assert!(!metrics.contains("longhaul_damaged_body_reads_total 0"), "{metrics}");
}

#[test]
fn damaged_input_hides_no_other_job_in_lists() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let job = || create(dir.path(), &["t", "--executor", "noop", "--input", "{\"page\":\"one\"}"]);
    let (damaged, whole) = (job(), job());
    daemon.kill();
    change_body(dir.path(), &damaged, "input");
    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let (status, list) = get(dir.path(), &daemon, "/jobs");
    assert_eq!(status, 200, "{list}");
    assert!(list.contains(&damaged) && list.contains(&whole), "{list}");
    assert!(list.contains("\"one\"") && !list.contains("\"two\""), "no damaged byte is shown: {list}");
    assert_eq!(get(dir.path(), &daemon, &format!("/jobs/{damaged}")).0, 500);
    assert!(daemon.log().contains("body_damaged"), "{}", daemon.log());
}

#[test]
fn job_with_a_damaged_input_fails_and_is_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let input = "{\"page\":\"one\"}";
    let id = create(dir.path(), &["t", "--executor", "noop", "--max-attempts", "3", "--input", input]);
    daemon.kill();
    change_body(dir.path(), &id, "input");
    let _daemon = Daemon::start(dir.path());
    let facts = within("it fails", || {
        let facts = expect(0, &longhaul(dir.path(), &["jobs", "facts", &id, "--json"]));
        facts.contains("job.failed").then_some(facts)
    });
    assert!(facts.contains("body_damaged"), "{facts}");
    assert_eq!(facts.matches("job.dispatched").count(), 1, "{facts}");
}
