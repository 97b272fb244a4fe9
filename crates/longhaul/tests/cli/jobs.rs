//! `longhaul jobs`: each verb once through the real daemon.

use serde_json::{Value, json};

use crate::given::{Daemon, create, ended, expect, json as json_of, longhaul, show, stderr, until};

// conforms: R105
#[test]
fn job_is_created_run_retried_cancelled_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let printed = expect(
        0,
        &longhaul(dir.path(), &["jobs", "create", "say hello", "--executor", "noop", "--input", "[1]"]),
    );
    assert!(printed.starts_with("Created job work-"), "{printed}");
    assert!(printed.contains("\n  title: say hello\n  state: queued\n  kind: general"), "{printed}");
    let id = printed.split_whitespace().nth(2).unwrap().to_owned();
    expect(0, &longhaul(dir.path(), &["jobs", "run", &id]));
    assert_eq!(ended(dir.path(), &id, "completed")["data"], json!([1]));

    let fails =
        create(dir.path(), &["fails", "--executor", "slow", "--input", r#"{"seconds":0,"fail":"no"}"#]);
    expect(0, &longhaul(dir.path(), &["jobs", "run", &fails]));
    ended(dir.path(), &fails, "failed");
    expect(0, &longhaul(dir.path(), &["jobs", "retry", &fails]));
    ended(dir.path(), &fails, "failed");
    assert_eq!(show(dir.path(), &fails)["runner"]["attempt_count"], 2);

    let cancelled = create(dir.path(), &["not needed", "--executor", "noop"]);
    expect(
        0,
        &longhaul(dir.path(), &["jobs", "cancel", &cancelled, "--requested-by", "me", "--reason", "late"]),
    );
    ended(dir.path(), &cancelled, "cancelled");
    let status = show(dir.path(), &cancelled);
    assert_eq!(
        (&status["cancel_requested_by_peer_id"], &status["cancellation_reason"]),
        (&json!("me"), &json!("late"))
    );
}

#[test]
fn same_idempotency_key_gives_the_same_job() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let once = ["once", "--executor", "noop", "--idempotency-key", "order-17"];
    assert_eq!(create(dir.path(), &once), create(dir.path(), &once));
}

#[test]
fn list_is_a_table_for_people_and_json_for_machines() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    assert_eq!(expect(0, &longhaul(dir.path(), &["jobs", "list"])), "No jobs.\n");
    let first = create(dir.path(), &["first", "--owner", "me"]);
    let second = create(dir.path(), &["second\u{1b}[2J", "--kind", "render"]);
    let table = expect(0, &longhaul(dir.path(), &["jobs", "list"]));
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("ID "), "{table}");
    assert!(lines[1].contains(&second) && lines[2].contains(&first), "{table}");
    assert!(!table.contains('\u{1b}'), "a title reached the terminal as it was");
    let machines = json_of(dir.path(), &["jobs", "list", "--owner", "me"]);
    assert_eq!(machines["work"].as_array().unwrap().len(), 1);
    assert_eq!(machines["work"][0]["job_id"], *first);
    assert_eq!(machines["recurring"], json!([]));
    assert_eq!(json_of(dir.path(), &["jobs", "list", "--limit", "1"])["work"].as_array().unwrap().len(), 1);
    for (limit, told) in
        [("1", "longhaul: only the 1 jobs that changed last; --limit shows more\n"), ("2", "")]
    {
        assert_eq!(stderr(&longhaul(dir.path(), &["jobs", "list", "--limit", limit])), told);
    }
}

#[test]
fn why_and_facts_tell_what_keeps_a_job_and_what_happened_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["later", "--executor", "noop", "--due-at", "1h"]);
    let why = expect(0, &longhaul(dir.path(), &["jobs", "why", &id]));
    assert!(why.starts_with(&format!("Job {id} is queued\n")), "{why}");
    assert!(why.contains("It can move by itself at "), "{why}");
    assert!(json_of(dir.path(), &["jobs", "why", &id])["earliest_at"].is_string());
    let facts = expect(0, &longhaul(dir.path(), &["jobs", "facts", &id]));
    assert_eq!(facts.lines().count(), 2, "{facts}");
}

#[test]
fn who_waits_sees_the_final_state_only_and_who_watches_every_change() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let slow = |name| create(dir.path(), &[name, "--executor", "slow", "--input", r#"{"seconds":3}"#]);
    let id = slow("watched");
    let changes = expect(0, &longhaul(dir.path(), &["jobs", "watch", &id, "--json"]));
    let changes: Vec<Value> = changes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(changes.iter().any(|status| status["progress"]["of"] == 3), "{changes:?}");
    assert_eq!(changes.last().unwrap()["state"], "completed");
    let id = slow("watched by a pipe");
    let lines = expect(0, &longhaul(dir.path(), &["jobs", "watch", &id]));
    for change in ["  running  {\"done\":", "  completed"] {
        assert!(lines.lines().any(|line| line.contains(change)), "{change}: {lines}");
    }
    let id = slow("waited for");
    let waited = longhaul(dir.path(), &["jobs", "wait", &id]);
    assert!(expect(0, &waited).starts_with(&format!("Job {id}\n  title: waited for\n  state: completed")));
    assert_eq!(crate::given::stderr(&waited), "");
}

#[test]
fn executors_are_listed_and_a_misspelt_one_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let table = expect(0, &longhaul(dir.path(), &["executors"]));
    for name in ["command", "noop", "slow"] {
        assert!(table.lines().any(|line| line.starts_with(name) && line.contains("yes")), "{name}: {table}");
    }
    let created = longhaul(dir.path(), &["jobs", "create", "t", "--executor", "nop"]);
    expect(0, &created);
    let warned = crate::given::stderr(&created);
    assert!(
        warned.starts_with(r#"warning: no executor is named "nop"; did you mean "noop"?; known: command, "#),
        "{warned}"
    );
    let right = longhaul(dir.path(), &["jobs", "create", "t", "--executor", "noop", "--backoff", "7s"]);
    expect(0, &right);
    assert_eq!(crate::given::stderr(&right), "");
}

#[test]
fn running_job_is_cancelled_with_everything_that_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let id =
        create(dir.path(), &["stays", "--executor", "command", "--input", r#"{"argv":["sleep","1000"]}"#]);
    until(dir.path(), &id, "running");
    expect(0, &longhaul(dir.path(), &["jobs", "cancel", &id]));
    ended(dir.path(), &id, "cancelled");
}

#[test]
fn purged_job_keeps_its_record_and_loses_its_bodies() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["private", "--executor", "noop", "--input", r#"{"secret":1}"#]);
    ended(dir.path(), &id, "completed");
    expect(0, &longhaul(dir.path(), &["purge", &id]));
    assert_eq!(json_of(dir.path(), &["jobs", "result", &id])["data"], Value::Null);
    assert_eq!(show(dir.path(), &id)["state"], "completed");
    crate::given::verify(dir.path());
}

#[test]
fn reader_that_has_seen_enough_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let mut list = crate::given::binary(&["jobs", "list"])
        .env("LONGHAUL_DATA_DIR", dir.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(list.stdout.take());
    let output = list.wait_with_output().unwrap();
    assert_eq!(expect(0, &output), "");
    assert_eq!(crate::given::stderr(&output), "");
}

#[test]
fn question_is_shown_with_how_to_answer_it() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let input = r#"{"ask":"which colour?","seconds":0}"#;
    let id = create(dir.path(), &["asks", "--executor", "slow", "--input", input]);
    until(dir.path(), &id, "awaiting_input");
    let shown = expect(0, &longhaul(dir.path(), &["jobs", "show", &id]));
    assert!(shown.contains("question: \"which colour?\""), "{shown}");
    assert!(shown.contains(&format!("longhaul jobs answer {id}")), "{shown}");
    expect(0, &longhaul(dir.path(), &["jobs", "answer", &id, "--text", "blue"]));
    ended(dir.path(), &id, "completed");
    let shown = expect(0, &longhaul(dir.path(), &["jobs", "show", &id]));
    assert!(!shown.contains("question"), "{shown}");
}

#[test]
fn cancel_of_a_job_that_is_over_says_that_its_end_stays() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["done", "--executor", "noop"]);
    ended(dir.path(), &id, "completed");
    let before = show(dir.path(), &id);
    let cancel = longhaul(dir.path(), &["jobs", "cancel", &id]);
    expect(0, &cancel);
    assert!(stderr(&cancel).contains("stays as it ended"), "{}", stderr(&cancel));
    let after = show(dir.path(), &id);
    for key in ["state", "state_reason", "result_summary", "protocol_cancel"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    assert_eq!(after["cancel_requested"], true);
    let open = create(dir.path(), &["open"]);
    assert_eq!(stderr(&longhaul(dir.path(), &["jobs", "cancel", &open])), "");
}
