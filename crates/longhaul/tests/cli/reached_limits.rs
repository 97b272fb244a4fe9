//! A limit that ended a job: `jobs why`, `jobs show` and `jobs result` name it; where the job and its executor have a time limit each,
//! the one that did it. The real binary, a process, a plugin and backends.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, ended, expect, longhaul, show};
use crate::handed_over::ok;

/// Takes longer than any limit here.
const SLEEPS: &str = "#!/bin/sh\nexec sleep 600\n";

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be");
    std::fs::write(path, text).expect("it can be");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it can be");
}

/// A daemon whose executors let their jobs take so long.
fn daemon(dir: &Path, seconds: u64) -> Daemon {
    put(&dir.join("sleeps.sh"), SLEEPS);
    put(&dir.join("plugins/zoo/run"), SLEEPS);
    put(
        &dir.join("plugins/zoo/manifest.yaml"),
        "name: zoo\nprotocol: 2\nentrypoint: run\ncommands: [poll, handle]\n",
    );
    std::fs::create_dir_all(dir.join("allowed/repo")).expect("it can be");
    let (argv, roots) = (dir.join("sleeps.sh"), dir.join("allowed"));
    let (argv, roots) = (argv.display(), roots.display());
    let config = format!(
        "plugin_roots: [plugins]\n\
         plugins: {{ zoo: {{ timeouts: {{ handle: {seconds} }}, retry: {{ max_attempts: 1 }} }} }}\n\
         executors:\n\
         - {{ name: sleepy, kind: process, argv: ['{argv}'], timeout_seconds: {seconds} }}\n\
         - {{ name: claude-code, kind: backend, argv: ['{argv}'], roots: ['{roots}'], timeout_seconds: {seconds}, \
              grace_seconds: 1, retry: {{ max_attempts: 1 }} }}\n\
         - {{ name: codex, kind: backend, argv: ['{argv}'], roots: ['{roots}'], timeout_seconds: {seconds}, \
              grace_seconds: 1, max_persistent: 1, retry: {{ max_attempts: 1 }} }}\n"
    );
    put(&dir.join("longhaul.yaml"), &config);
    let file = dir.join("longhaul.yaml").display().to_string();
    Daemon::verb(dir, &["serve", "--listen", "127.0.0.1:0", "--config", &file])
}

/// One job for each kind of executor, with the key of its limit.
fn jobs(dir: &Path, timeout_seconds: u64) -> [(String, &'static str); 4] {
    let repo = dir.join("allowed/repo").display().to_string();
    let backend = |name: &str, scope: &str| json!({ "backend": name, "path": repo, "prompt": "wait", "process_scope": scope });
    [
        (json!({ "executor": "sleepy" }), "executors[].timeout_seconds of sleepy"),
        (
            json!({ "executor": "zoo", "input": { "command": "handle", "payload": {} } }),
            "plugins.zoo.timeouts.handle",
        ),
        (backend("claude-code", "per_fire"), "executors[].timeout_seconds of claude-code"),
        (backend("codex", "persistent"), "executors[].timeout_seconds of codex"),
    ]
    .map(|(mut body, key)| {
        body["timeout_seconds"] = json!(timeout_seconds);
        (ok(dir, "/jobs", &body)["job_id"].as_str().expect("it has an id").to_owned(), key)
    })
}

/// What is told of a limit everywhere.
#[track_caller]
fn assert_told(dir: &Path, id: &str, limit: &Value) {
    let error = ended(dir, id, "failed")["error"].clone();
    assert_eq!(error["limits"][0], *limit, "{error}");
    assert_eq!(show(dir, id)["runner"]["limits"][0], *limit);
    let text = |field: &str| limit[field].as_str().expect("it is text");
    let told = format!("{} = {} ({});", text("limit"), text("value"), text("whose"));
    let (in_show, in_why) = match text("key").strip_prefix("none: ") {
        Some(why) => (format!("it cannot be changed: {why}"), format!("{why} and cannot be changed")),
        None => (format!("change {}", text("key")), format!("change {}", text("key"))),
    };
    for (verb, line) in [("show", format!("  limit: {told} {in_show}")), ("why", format!("{told} {in_why}"))]
    {
        let said = expect(0, &longhaul(dir, &["jobs", verb, id]));
        assert!(said.lines().any(|one| one.ends_with(&line)), "{verb}: {said}");
    }
}

#[test]
fn limit_of_the_executor_is_named_where_it_is_shorter() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = daemon(dir.path(), 2);
    for (id, key) in jobs(dir.path(), 600) {
        let name = if key.starts_with("plugins") { "timeouts.handle" } else { "timeout_seconds" };
        let limit = json!({ "limit": name, "value": "2 s", "whose": "executor", "key": key });
        assert_told(dir.path(), &id, &limit);
    }
}

#[test]
fn limit_of_the_job_is_named_where_it_is_shorter() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = daemon(dir.path(), 600);
    let key = "timeout_seconds of the job";
    let limit = json!({ "limit": "timeout_seconds", "value": "2 s", "whose": "job", "key": key });
    for (id, _) in jobs(dir.path(), 2) {
        assert_told(dir.path(), &id, &limit);
    }
}

/// A turn that remembers more than a plugin may.
const REMEMBERS: &str = "#!/usr/bin/env bash
cat > /dev/null
printf '{\"status\":\"ok\",\"result\":\"r\",\"state_updates\":{\"x\":\"%s\"}}' \"$(head -c 1100000 /dev/zero | tr '\\0' x)\"
";

#[test]
fn limits_other_than_of_time_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    put(&dir.join("plugins/zoo/run"), REMEMBERS);
    put(
        &dir.join("plugins/zoo/manifest.yaml"),
        "name: zoo\nprotocol: 2\nentrypoint: run\ncommands: [poll, handle]\n",
    );
    let longest = domain::limits::MAX_BODY_BYTES + 4_096;
    put(
        &dir.join("talks.sh"),
        &format!("#!/bin/sh\nread line\nhead -c {} /dev/zero\necho\nread line\n", longest + 1),
    );
    std::fs::create_dir_all(dir.join("allowed/repo")).unwrap();
    let (talks, roots) = (dir.join("talks.sh"), dir.join("allowed"));
    let config = format!(
        "plugin_roots: [plugins]\n\
         executors:\n\
         - {{ name: spins, kind: process, argv: [sh, -c, 'while :; do :; done'], limits: {{ cpu_seconds: 1 }}, \
              retry: {{ max_attempts: 1 }} }}\n\
         - {{ name: codex, kind: backend, argv: ['{}'], roots: ['{}'], max_persistent: 1, retry: {{ max_attempts: 1 }} }}\n",
        talks.display(),
        roots.display()
    );
    put(&dir.join("longhaul.yaml"), &config);
    let file = dir.join("longhaul.yaml").display().to_string();
    let _daemon = Daemon::verb(dir, &["serve", "--listen", "127.0.0.1:0", "--config", &file]);
    let repo = dir.join("allowed/repo").display().to_string();
    let fixed = "none: it is the same for all work";
    for (body, limit, value, whose, key) in [
        (
            json!({ "executor": "spins" }),
            "limits.cpu_seconds",
            "1 s".to_owned(),
            "executor",
            "limits.cpu_seconds of the executor in longhaul.yaml",
        ),
        (
            json!({ "executor": "zoo", "input": { "command": "handle", "payload": {} } }),
            "state of a plugin",
            "1048576".to_owned(),
            "host default",
            fixed,
        ),
        (
            json!({ "backend": "codex", "path": repo, "prompt": "talk", "process_scope": "persistent" }),
            "line of a backend's answer",
            format!("{longest} bytes"),
            "host default",
            fixed,
        ),
    ] {
        let id = ok(dir, "/jobs", &body)["job_id"].as_str().expect("it has an id").to_owned();
        assert_told(dir, &id, &json!({ "limit": limit, "value": value, "whose": whose, "key": key }));
    }
}
