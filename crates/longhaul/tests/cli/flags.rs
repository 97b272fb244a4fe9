//! Flags of `longhaul jobs` arrive where they belong.

use serde_json::{Value, json};

use crate::given::{Daemon, create, expect, json as json_of, longhaul};

#[test]
fn every_flag_of_create_arrives() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let prompt = dir.path().join("prompt.md");
    std::fs::write(&prompt, "do it well\n").unwrap();
    let status = json_of(
        dir.path(),
        &[
            "jobs",
            "create",
            "all",
            "--kind",
            "k",
            "--created-by",
            "c",
            "--owner",
            "o",
            "--session",
            "s",
            "--correlation-id",
            "x",
            "-c",
            "blue",
            "--source-id",
            "i",
            "--scope",
            "sc",
            "--prompt-file",
            prompt.to_str().unwrap(),
            "--path",
            "/tmp",
            "--backend",
            "codex",
            "--profile",
            "p",
            "--due-at",
            "2099-01-01T00:00:00Z",
            "--result-surface",
            "r",
            "--process-scope",
            "per-fire",
            "--continuity",
            "fresh",
            "--executor",
            "noop",
            "--input",
            "{}",
            "--priority",
            "-3",
            "--lane",
            "l",
            "--max-attempts",
            "7",
            "--timeout",
            "2m",
            "--tag",
            "a",
            "--tag",
            "b",
            "--deadline-at",
            "2099-01-02T00:00:00Z",
            "--expires-at",
            "2099-01-03T00:00:00Z",
        ],
    );
    for (key, value) in [
        ("title", "all"),
        ("kind", "k"),
        ("created_by_peer_id", "c"),
        ("owner_peer_id", "o"),
        ("repowire_session_id", "s"),
        ("correlation_id", "x"),
        ("circle", "blue"),
        ("source_kind", "cli"),
        ("source_id", "i"),
        ("scope", "sc"),
        ("due_at", "2099-01-01T00:00:00Z"),
    ] {
        assert_eq!(status[key], value, "{key}");
    }
    let execution = &status["execution"];
    assert_eq!(execution["prompt"], json!({ "body": "do it well\n", "source": "inline" }));
    assert_eq!(execution["target"]["backend"], "codex");
    assert_eq!(
        (&execution["process_scope"], &execution["continuity"]),
        (&json!("per_fire"), &json!("fresh"))
    );
    // A job is done by an executor or by a peer.
    let peer = "repow-blue-00000000";
    let assigned = json_of(dir.path(), &["jobs", "create", "pulled", "--assigned-peer", peer, "-c", "blue"]);
    assert_eq!(assigned["assigned_peer_id"], peer);
    let facts =
        expect(0, &longhaul(dir.path(), &["jobs", "facts", status["job_id"].as_str().unwrap(), "--json"]));
    let spec = serde_json::from_str::<Value>(facts.lines().next().unwrap()).unwrap()["payload"].to_string();
    for part in [
        r#""priority":-3"#,
        r#""lane":"l""#,
        r#""max_attempts":7"#,
        r#""timeout_seconds":120"#,
        r#"["a","b"]"#,
    ] {
        assert!(spec.contains(part), "{part} is not in {spec}");
    }
}

#[test]
fn every_flag_of_list_narrows_it() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch"]);
    let other =
        create(dir.path(), &["other", "--owner", "x", "--created-by", "x", "--session", "x", "-c", "x"]);
    expect(0, &longhaul(dir.path(), &["jobs", "cancel", &other]));
    let wanted =
        create(dir.path(), &["wanted", "--owner", "o", "--created-by", "c", "--session", "s", "-c", "blue"]);
    for filter in [
        ["--state", "queued"],
        ["--owner", "o"],
        ["--created-by", "c"],
        ["--session", "s"],
        ["--circle", "blue"],
        ["-c", "blue"],
    ] {
        let list = json_of(dir.path(), &[&["jobs", "list"][..], &filter].concat());
        let found: Vec<&Value> = list["work"].as_array().unwrap().iter().map(|job| &job["job_id"]).collect();
        assert_eq!(found, [&json!(wanted)], "{filter:?}");
    }
}

#[test]
fn every_flag_of_update_arrives() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Daemon::start(dir.path());
    let id = create(dir.path(), &["pulled", "--lane", "print"]);
    let pull = json!({ "lanes": ["print"] });
    let handed = crate::handed_over::ok(dir.path(), "/jobs/next", &pull)["job"].clone();
    let update = ["jobs", "update", &id, "--state", "blocked", "--reason", "no_paper", "--phase", "printing"];
    let more = ["--note", "the tray is empty", "--result-summary", "half of it"];
    let stale = ["--attempt-id", "attempt-00000000000000000000000000000000"];
    expect(1, &longhaul(dir.path(), &[&update[..], &more, &stale].concat()));
    let current = ["--attempt-id", handed["attempt_id"].as_str().unwrap()];
    let status = json_of(dir.path(), &[&update[..], &more, &current].concat());
    for (key, value) in [
        ("state", "blocked"),
        ("state_reason", "no_paper"),
        ("phase", "printing"),
        ("result_summary", "half of it"),
    ] {
        assert_eq!(status[key], value, "{key}");
    }
    assert_eq!(status["progress_events"][0]["note"], "the tray is empty");
}
