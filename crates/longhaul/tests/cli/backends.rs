//! Backends: a command that is started in the folder that a job names, reports by itself, and is gone when the job is over. The
//! real binary, a real agent in bash.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, ended, expect, longhaul, show, until, until_told};
use crate::handed_over::{attempt_shown_to, call, call_as, ok};

/// An agent: says what it was told, and does what the prompt says.
const AGENT: &str = r#"#!/usr/bin/env bash
set -u
read -r first; prompt=$(cat)
printf '%s' "$LONGHAUL_TOKEN" > token; printf '%s\n%s' "$first" "$prompt" > told; pwd > where; printf '%s' "$*" > words
post() { curl -sS -o answer -w '%{http_code}' -H "Authorization: Bearer $LONGHAUL_TOKEN" -H 'Content-Type: application/json' -d "$2" "$LONGHAUL_URL/jobs/$LONGHAUL_JOB_ID/$1"; }
case "$prompt" in
*REPORT*) trap '' TERM; post heartbeat "{\"attempt_id\": \"$LONGHAUL_ATTEMPT_ID\"}" > beat
    sleep 600 & echo $! > child
    post complete "{\"attempt_id\": \"$LONGHAUL_ATTEMPT_ID\", \"result\": {\"by\": \"itself\"}}" > completed; sleep 600;;
*WAIT*) sleep 600 & echo $! > child; wait;;
*STAY*) trap '' TERM; echo up > up; while [ ! -e go ]; do sleep 0.05; done;;
*) echo '{"by": "its output"}';;
esac
"#;

struct Agents {
    dir: tempfile::TempDir,
    _daemon: Daemon,
}

impl Agents {
    fn start() -> Self {
        Self::with_grace(1)
    }

    fn with_grace(seconds: u64) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("it can be");
        let agent = dir.path().join("agent.sh");
        std::fs::write(&agent, AGENT).expect("it can be");
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).expect("it can be");
        for folder in ["allowed/repo", "elsewhere"] {
            std::fs::create_dir_all(dir.path().join(folder)).expect("it can be");
        }
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), dir.path().join("allowed/link"))
            .expect("it can be");
        let (agent, roots) = (agent.display(), dir.path().join("allowed"));
        let roots = roots.display();
        let config = format!(
            "executors:\n- {{ name: claude-code, kind: backend, argv: ['{agent}'], roots: ['{roots}'], \
             profiles: {{ careful: [--plan] }}, grace_seconds: {seconds} }}\n\
             - {{ name: codex, kind: backend, argv: [no-such-program-anywhere], roots: ['{roots}'] }}\n"
        );
        let file = dir.path().join("longhaul.yaml");
        std::fs::write(&file, config).expect("it can be");
        let file = file.to_str().expect("it can be");
        let daemon = Daemon::verb(dir.path(), &["serve", "--listen", "127.0.0.1:0", "--config", file]);
        Self { dir, _daemon: daemon }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn repo(&self) -> String {
        self.path().join("allowed/repo").display().to_string()
    }

    fn create(&self, prompt: &str, more: &Value) -> String {
        let mut body = json!({ "backend": "claude-code", "path": self.repo(), "prompt": prompt });
        for (key, value) in more.as_object().expect("an object") {
            body[key] = value.clone();
        }
        ok(self.path(), "/jobs", &body)["job_id"].as_str().expect("it can be").to_owned()
    }

    /// What the agent has left in its folder.
    fn left(&self, file: &str) -> String {
        let file = self.path().join("allowed/repo").join(file);
        crate::given::within("the agent has written it", || {
            std::fs::read_to_string(&file).ok().filter(|text| !text.is_empty())
        })
    }

    fn child_is_gone(&self) {
        let child = self.left("child");
        let process = format!("/proc/{}", child.trim());
        crate::given::within("nothing of the agent is left", || {
            (!Path::new(&process).exists()).then_some(())
        });
    }
}

// conforms: R31 R33 R35 R39 R112
#[test]
fn backend_is_started_in_its_folder_reports_by_itself_and_is_released_when_the_job_is_over() {
    let agents = Agents::start();
    // Somebody who lives in the folder cannot be released, so the job is not theirs.
    let peer = json!({ "peer_id": "joan", "path": agents.repo(), "backend": "claude-code" });
    ok(agents.path(), "/peers", &peer);
    let id = agents.create("please REPORT", &json!({ "profile": "careful" }));
    let pull = json!({ "peer_id": "joan", "paths": [agents.repo()], "wait_seconds": 0 });
    assert_eq!(ok(agents.path(), "/jobs/next", &pull)["job"], Value::Null);
    // Unless it names them: then no process is started for it.
    let theirs = agents.create("for joan", &json!({ "assigned_peer_id": "joan" }));
    assert_eq!(ok(agents.path(), "/jobs/next", &pull)["job"]["job_id"], json!(theirs));
    let result = ended(agents.path(), &id, "completed");
    assert_eq!(result["data"], json!({ "by": "itself" }));
    // It has reported by itself, deaf to TERM: the job is over before the process is.
    let released = crate::given::within("it is seen to have ended", || {
        let release = show(agents.path(), &id)["runner"]["release_result"].clone();
        let child_is_there = Path::new(&format!("/proc/{}", agents.left("child").trim())).exists();
        match release["status"].as_str() {
            Some("failed") => assert_eq!(release["reason"], "not_confirmed", "{release}"),
            _ => assert!(!child_is_there, "released means that nothing of it runs: {release}"),
        }
        (release["status"] == "released").then_some(release)
    });
    let time = |text: &Value| text.as_str().unwrap().parse::<jiff::Timestamp>().expect("it is a time");
    let after = time(&released["released_at"]).duration_since(time(&result["completed_at"]));
    assert!(after >= jiff::SignedDuration::from_secs(1), "not before it was killed: {released} {result}");
    let facts = expect(0, &longhaul(agents.path(), &["jobs", "facts", &id, "--json"]));
    let mut after = facts.lines().skip_while(|fact| !fact.contains("job.completed/1")).skip(1);
    assert!(after.next().is_some_and(|fact| fact.contains("job.executor_released/1")), "{facts}");
    assert_eq!(after.next(), None, "{facts}");
    let result = ended(agents.path(), &id, "completed");
    assert_eq!(result["provenance"]["observed"]["release_result"], released);
    let told = agents.left("told");
    let attempt = attempt_shown_to(agents.path(), &agents.left("token"), &id);
    for part in [
        "durable job",
        &id,
        attempt.as_str().unwrap(),
        "please REPORT",
        "/heartbeat",
        "/complete",
        "completes nothing",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!((agents.left("words").as_str(), agents.left("beat").as_str()), ("--plan", "200"));
    assert_eq!(agents.left("where").trim(), std::fs::canonicalize(agents.repo()).unwrap().to_str().unwrap());
    agents.child_is_gone();
}

#[test]
fn backend_that_ends_without_a_word_has_its_output_for_a_result() {
    let agents = Agents::start();
    let id = agents.create("just do it", &json!({}));
    assert_eq!(ended(agents.path(), &id, "completed")["data"], json!({ "by": "its output" }));
}

// conforms: R35
#[test]
fn cancel_ends_a_backend_and_all_that_it_has_started() {
    let agents = Agents::start();
    let id = agents.create("WAIT", &json!({}));
    agents.left("child");
    ok(agents.path(), &format!("/jobs/{id}/cancel"), &json!({}));
    until(agents.path(), &id, "cancelled");
    agents.child_is_gone();
}

// conforms: R112
#[test]
fn signalled_backend_is_told_of_until_it_has_ended() {
    let agents = Agents::with_grace(60);
    let id = agents.create("STAY", &json!({}));
    agents.left("up");
    ok(agents.path(), &format!("/jobs/{id}/cancel"), &json!({}));
    let told = until_told(agents.path(), &id, "it was signalled", |status| {
        status["protocol_cancel"]["status"] == "sent"
    });
    assert_eq!(told["protocol_cancel"]["reason"], "executor_told", "{told}");
    assert_ne!(told["state"], "cancelled", "it is deaf, and has a minute");
    assert_eq!(told["runner"]["release_result"], Value::Null, "it goes on: {told}");
    std::fs::write(agents.path().join("allowed/repo/go"), "").expect("it can be");
    let over = until(agents.path(), &id, "cancelled");
    assert_eq!(over["protocol_cancel"]["reason"], "cancel_confirmed", "{over}");
    let release = &over["runner"]["release_result"];
    assert_eq!((&release["status"], &release["reason"]), (&json!("released"), &json!("attempt_ended")));
}

#[test]
fn token_of_an_attempt_is_for_its_own_job_and_of_no_use_afterwards() {
    let agents = Agents::start();
    let id = agents.create("WAIT", &json!({}));
    let token = agents.left("token");
    let other = ok(agents.path(), "/jobs", &json!({}))["job_id"].as_str().unwrap().to_owned();
    let as_agent = |path: &str, body: &Value| call_as(agents.path(), &token, path, body).0;
    let attempt = attempt_shown_to(agents.path(), &token, &id);
    let own = json!({ "attempt_id": attempt });
    assert_eq!(as_agent(&format!("/jobs/{id}/heartbeat"), &own), 200);
    assert_eq!(as_agent(&format!("/jobs/{other}/heartbeat"), &own), 404, "another job is not there");
    for (path, body) in
        [("/jobs", json!({})), ("/jobs/next", json!({})), ("/tokens", json!({ "role": "admin" }))]
    {
        assert_eq!(as_agent(path, &body), 403, "{path}");
    }
    assert_eq!(as_agent(&format!("/jobs/{id}/cancel"), &json!({})), 403);
    let failed = json!({ "attempt_id": attempt, "retryable": false });
    let (status, refused) = call(agents.path(), &format!("/jobs/{id}/fail"), &failed);
    assert_eq!((status, &refused["code"]), (403, &json!("attempt_not_yours")), "not even an administrator");
    assert_eq!(as_agent(&format!("/jobs/{id}/fail"), &failed), 200);
    ok(agents.path(), &format!("/jobs/{id}/retry"), &json!({}));
    assert_eq!(as_agent(&format!("/jobs/{id}/heartbeat"), &own), 401, "another attempt is current");
}

// conforms: R33
#[test]
fn folder_program_or_profile_that_cannot_be_used_is_refused_and_nothing_is_stored() {
    let agents = Agents::start();
    let (repo, root) = (agents.repo(), agents.path().display().to_string());
    for (body, code) in [
        (json!({ "path": format!("{root}/elsewhere") }), "path_not_allowed"),
        (json!({ "path": format!("{root}/allowed/link") }), "path_not_allowed"),
        (json!({ "path": format!("{root}/allowed/repo/../../elsewhere") }), "path_not_allowed"),
        (json!({ "path": format!("{root}/allowed/missing") }), "path_missing"),
        (json!({ "path": "/no/such/folder" }), "path_not_allowed"),
        (json!({ "path": "repo" }), "path_not_absolute"),
        (json!({ "path": repo, "profile": "wild" }), "unknown_profile"),
        (json!({ "path": repo, "backend": "codex" }), "program_not_found"),
    ] {
        let mut asked = json!({ "backend": "claude-code", "prompt": "x" });
        for (key, value) in body.as_object().expect("an object") {
            asked[key] = value.clone();
        }
        let (status, answer) = call(agents.path(), "/jobs", &asked);
        assert_eq!((status, &answer["errors"][0]["type"]), (422, &json!(code)), "{asked} {answer}");
    }
    let left = crate::given::json(agents.path(), &["jobs", "list"]);
    assert_eq!(left["work"].as_array().map(Vec::len), Some(0), "{left}");
}

#[test]
fn executor_without_its_program_is_listed_as_not_available() {
    let agents = Agents::start();
    let available = |name: &str| {
        let list = expect(0, &longhaul(agents.path(), &["executors", "--json"]));
        let list: Value = serde_json::from_str(&list).expect("it is JSON");
        let all = list["capabilities"].as_array().expect("a list").clone();
        let found = all.into_iter().find(|one| one["name"] == name).expect("it is listed");
        found["available"].as_bool().expect("a flag")
    };
    // The daemon is listed by its first heartbeat.
    crate::given::within("the agent's program is found", || available("claude-code").then_some(()));
    assert!(!available("codex"), "its program is nowhere");
    // Programs come and go while the daemon runs.
    let agent = agents.path().join("agent.sh");
    std::fs::rename(&agent, agents.path().join("away.sh")).expect("it can be");
    assert!(!available("claude-code"));
    let table = expect(0, &longhaul(agents.path(), &["executors"]));
    let line = table.lines().find(|line| line.starts_with("claude-code")).expect("it is listed");
    assert!(line.ends_with("no"), "{table}");
    std::fs::rename(agents.path().join("away.sh"), &agent).expect("it can be");
    assert!(available("claude-code"));
}
