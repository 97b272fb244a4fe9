//! Backends that stay: one command does job after job in its folder, and is ended with what it was told to stop. The real binary, a
//! real agent in Python.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::given::{Daemon, ended, show, until, within};
use crate::handed_over::{attempt_shown_to, call, call_as, ok};

/// An agent: one line for each job.
const AGENT: &str = r#"#!/usr/bin/env python3
import json, os, subprocess, sys, time, urllib.request
def say(**line): print(json.dumps(line), flush=True)
for line in sys.stdin:
    job = json.loads(line); attempt = job["attempt_id"]
    open("token", "w").write(job["token"]); open("pid", "w").write(str(os.getpid()))
    print("thinking", flush=True)
    if "REPORT" in job["prompt"]:
        body = json.dumps({"attempt_id": attempt, "result": {"pid": os.getpid()}}).encode()
        headers = {"Authorization": "Bearer " + job["token"], "Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{job['url']}/jobs/{job['job_id']}/complete", body, headers)).read()
    elif "WAIT" in job["prompt"]:
        child = subprocess.Popen(["sleep", "600"]); open("child", "w").write(str(child.pid)); time.sleep(600)
    elif "DIE" in job["prompt"]:
        print("worn out", file=sys.stderr, flush=True); sys.exit(3)
    elif "REFUSE" in job["prompt"]:
        say(attempt_id=attempt, error={"code": "not_my_job", "message": "no", "retryable": False})
    else:
        say(attempt_id="attempt-of-another", result="not heeded")
        say(attempt_id=attempt, result={"pid": os.getpid(), "input": job["input"], "words": sys.argv[1:]})
"#;

struct Agents {
    dir: tempfile::TempDir,
    daemon: Option<Daemon>,
}

impl Agents {
    fn start(more: &str) -> Self {
        let dir = tempfile::tempdir().expect("it can be");
        let agent = dir.path().join("agent.py");
        std::fs::write(&agent, AGENT).expect("it can be");
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).expect("it can be");
        for folder in ["one", "two"] {
            std::fs::create_dir_all(dir.path().join("allowed").join(folder)).expect("it can be");
        }
        let (agent, roots) = (agent.display(), dir.path().join("allowed"));
        let config = format!(
            "executors:\n- {{ name: claude-code, kind: backend, argv: ['{agent}'], roots: ['{}'], grace_seconds: 1, \
             profiles: {{ careful: [--plan] }}, retry: {{ max_attempts: 1 }}{more} }}\n",
            roots.display()
        );
        std::fs::write(dir.path().join("longhaul.yaml"), config).expect("it can be");
        let mut agents = Self { dir, daemon: None };
        agents.serve();
        agents
    }

    fn serve(&mut self) {
        let file = self.path().join("longhaul.yaml").display().to_string();
        let words = ["serve", "--listen", "127.0.0.1:0", "--config", &file];
        self.daemon = Some(Daemon::verb(self.path(), &words));
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.path().join("allowed").join(name)
    }

    fn create(&self, folder: &str, prompt: &str, more: &Value) -> String {
        let mut body = json!({ "backend": "claude-code", "path": self.folder(folder), "prompt": prompt,
            "process_scope": "persistent" });
        for (key, value) in more.as_object().expect("an object") {
            body[key] = value.clone();
        }
        ok(self.path(), "/jobs", &body)["job_id"].as_str().expect("it has one").to_owned()
    }

    /// Which process did it.
    fn done_by(&self, id: &str) -> i64 {
        ended(self.path(), id, "completed")["data"]["pid"].as_i64().expect("it says so")
    }

    fn left(&self, folder: &str, file: &str) -> String {
        let file = self.folder(folder).join(file);
        within("the agent has written it", || {
            std::fs::read_to_string(&file).ok().filter(|text| !text.is_empty())
        })
    }
}

fn is_alive(pid: impl std::fmt::Display) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z') && !rest.is_empty())
}

fn gone(pid: impl std::fmt::Display + Copy) {
    within("it is gone", || (!is_alive(pid)).then_some(()));
}

/// What became of whoever did a job: status, reason, and whether a time is told.
fn release(agents: &Agents, id: &str) -> (String, String, bool) {
    let release = within("it is seen", || {
        let release = show(agents.path(), id)["runner"]["release_result"].clone();
        (release["reason"] != "not_confirmed").then_some(release)
    });
    let text = |name: &str| release[name].as_str().unwrap_or_else(|| panic!("{release}")).to_owned();
    (text("status"), text("reason"), release["released_at"].is_string())
}

// conforms: R112
#[test]
fn one_command_does_job_after_job_however_it_reports_and_lives_on() {
    let agents = Agents::start("");
    let first = agents.create("one", "answer", &json!({ "input": { "n": 12_345_678_901_234_567_890_u64 } }));
    let pid = agents.done_by(&first);
    let answered = ended(agents.path(), &first, "completed");
    assert_eq!(answered["data"]["input"]["n"], json!(12_345_678_901_234_567_890_u64));
    let token = agents.left("one", "token");
    assert!(is_alive(pid), "it stays");
    let reported = agents.create("one", "please REPORT", &json!({}));
    assert_eq!(agents.done_by(&reported), pid);
    let refused = agents.create("one", "REFUSE", &json!({}));
    assert_eq!(ended(agents.path(), &refused, "failed")["error"]["code"], json!("not_my_job"));
    let last = agents.create("one", "answer", &json!({}));
    assert_eq!(agents.done_by(&last), pid);
    for id in [&first, &reported, &refused, &last] {
        assert_eq!(release(&agents, id), ("skipped".to_owned(), "executor_persists".to_owned(), false));
    }
    assert_ne!(agents.left("one", "token"), token, "each job has its own token");
    let body = json!({ "attempt_id": "attempt-x" });
    let (status, _) = call_as(agents.path(), &token, &format!("/jobs/{last}/heartbeat"), &body);
    assert_eq!(status, 404, "the first job's token is for the first job");
}

#[test]
fn other_folder_and_other_profile_have_a_command_of_their_own() {
    let agents = Agents::start("");
    let one = agents.done_by(&agents.create("one", "answer", &json!({})));
    let two = agents.done_by(&agents.create("two", "answer", &json!({})));
    let careful = agents.create("one", "answer", &json!({ "profile": "careful" }));
    let third = agents.done_by(&careful);
    assert!(one != two && two != third && one != third, "{one} {two} {third}");
    assert_eq!(ended(agents.path(), &careful, "completed")["data"]["words"], json!(["--plan"]));
}

// conforms: O80 R112
#[test]
fn cancel_ends_the_command_with_all_that_it_has_started_and_the_next_job_has_a_new_one() {
    let agents = Agents::start("");
    let id = agents.create("one", "WAIT", &json!({}));
    let (pid, child) = (agents.left("one", "pid"), agents.left("one", "child"));
    let waiting = agents.create("one", "answer", &json!({}));
    ok(agents.path(), &format!("/jobs/{id}/cancel"), &json!({}));
    until(agents.path(), &id, "cancelled");
    assert!(!is_alive(&pid) && !is_alive(&child), "cancelled means that nothing of it runs");
    assert_eq!(release(&agents, &id), ("released".to_owned(), "attempt_ended".to_owned(), true));
    assert_ne!(agents.done_by(&waiting).to_string(), pid);
}

#[test]
fn jobs_of_one_folder_wait_in_the_queue_and_are_in_nobodys_way() {
    let agents = Agents::start(", concurrency: 2");
    let first = agents.create("one", "WAIT", &json!({}));
    agents.left("one", "pid");
    let timeout = Duration::from_secs(5);
    let more = json!({ "timeout_seconds": timeout.as_secs() });
    let waiting: Vec<String> = (0..5).map(|_| agents.create("one", "answer", &more)).collect();
    let newest_since = Instant::now();
    agents.done_by(&agents.create("two", "answer", &json!({})));
    // None of its time goes by in the queue.
    within("the newest has waited for longer than it may take", || {
        assert_eq!(show(agents.path(), &waiting[4])["state"], json!("queued"), "it has not begun");
        (newest_since.elapsed() > timeout).then_some(())
    });
    for id in &waiting {
        assert_eq!(show(agents.path(), id)["state"], json!("queued"), "it has not begun");
    }
    ok(agents.path(), &format!("/jobs/{first}/cancel"), &json!({}));
    let by: Vec<i64> = waiting.iter().map(|id| agents.done_by(id)).collect();
    assert!(by.iter().all(|pid| *pid == by[0]), "{by:?}");
}

#[test]
fn operator_ends_no_job_of_a_command_and_one_ended_with_its_token_leaves_it_for_the_next() {
    let agents = Agents::start("");
    let id = agents.create("one", "WAIT", &json!({}));
    let (pid, child) = (agents.left("one", "pid"), agents.left("one", "child"));
    let token = agents.left("one", "token");
    let attempt = attempt_shown_to(agents.path(), &token, &id);
    let (path, done) = (format!("/jobs/{id}/complete"), json!({ "attempt_id": attempt, "result": 1 }));
    let (status, refused) = call(agents.path(), &path, &done);
    assert_eq!((status, &refused["code"]), (403, &json!("attempt_not_yours")), "an operator cancels instead");
    assert_eq!(call_as(agents.path(), &token, &path, &done).0, 200);
    assert_eq!(ended(agents.path(), &id, "completed")["data"], json!(1));
    // Only the command has the token: it has reported by itself, and is given the next job, which it does not read while it waits.
    let next = agents.create("one", "answer", &json!({}));
    until(agents.path(), &next, "running");
    assert!(is_alive(&pid) && is_alive(&child), "it stays");
    ok(agents.path(), &format!("/jobs/{next}/cancel"), &json!({}));
    until(agents.path(), &next, "cancelled");
    assert!(!is_alive(&pid) && !is_alive(&child), "cancelled means that nothing of it runs");
    assert_ne!(agents.done_by(&agents.create("one", "answer", &json!({}))).to_string(), pid);
}

#[test]
fn command_that_dies_in_a_job_fails_that_attempt_with_its_last_words() {
    let agents = Agents::start("");
    let before = agents.done_by(&agents.create("one", "answer", &json!({})));
    let id = agents.create("one", "DIE", &json!({}));
    let error = ended(agents.path(), &id, "failed")["error"].clone();
    assert_eq!(error["code"], json!("backend_ended"), "{error}");
    for part in ["exited with 3", "worn out"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    assert_ne!(agents.done_by(&agents.create("one", "answer", &json!({}))), before);
}

// conforms: O80
#[test]
fn idle_command_is_sent_away_and_the_longest_idle_one_gives_way_to_another_folder() {
    let agents = Agents::start(", max_persistent: 1");
    let one = agents.done_by(&agents.create("one", "answer", &json!({})));
    let two = agents.done_by(&agents.create("two", "answer", &json!({})));
    assert!(!is_alive(one), "there is room for one alone");
    drop(agents);
    gone(two);
    let agents = Agents::start(", idle_seconds: 1");
    gone(agents.done_by(&agents.create("one", "answer", &json!({}))));
    agents.done_by(&agents.create("one", "answer", &json!({})));
}

// conforms: O80
#[test]
fn killed_daemon_leaves_no_command_and_its_job_is_done_by_a_new_one() {
    let mut agents = Agents::start("");
    let id = agents.create("one", "WAIT", &json!({ "retry": { "max_attempts": 2 } }));
    let (pid, child) = (agents.left("one", "pid"), agents.left("one", "child"));
    agents.daemon.take().expect("it runs").kill();
    within("it is gone", || (!is_alive(&pid) && !is_alive(&child)).then_some(()));
    std::fs::remove_file(agents.folder("one").join("pid")).expect("it is there");
    agents.serve();
    assert_ne!(agents.left("one", "pid"), pid);
    ok(agents.path(), &format!("/jobs/{id}/cancel"), &json!({}));
    until(agents.path(), &id, "cancelled");
}

// conforms: R34 R101
#[test]
fn peer_that_works_in_the_folder_is_left_the_job_and_a_look_alike_or_one_that_is_gone_is_not() {
    let mut agents = Agents::start("");
    let register = |agents: &Agents, id: &str, more: &Value| {
        let mut body = json!({ "peer_id": id, "display_name": id, "backend": "claude-code" });
        for (key, value) in more.as_object().expect("an object") {
            body[key] = value.clone();
        }
        ok(agents.path(), "/peers", &body);
        call(agents.path(), "/jobs/next", &json!({ "peer_id": id, "wait_seconds": 0 }));
    };
    // Nobody has heard of it since the daemon was started again.
    register(&agents, "peer-gone", &json!({ "path": agents.folder("one") }));
    agents.daemon.take().expect("it runs").kill();
    agents.serve();
    register(&agents, "peer-other-backend", &json!({ "path": agents.folder("one"), "backend": "codex" }));
    register(&agents, "peer-other-folder", &json!({ "path": agents.folder("two") }));
    register(&agents, "peer-other-circle", &json!({ "path": agents.folder("one"), "circle": "elsewhere" }));
    agents.done_by(&agents.create("one", "answer", &json!({})));
    register(&agents, "peer-there", &json!({ "path": "/only/on/its/own/machine" }));
    let body = json!({ "backend": "claude-code", "path": "/only/on/its/own/machine", "process_scope": "persistent" });
    let id = ok(agents.path(), "/jobs", &body)["job_id"].as_str().expect("it has one").to_owned();
    let pull = json!({ "peer_id": "peer-there", "paths": ["/only/on/its/own/machine"], "wait_seconds": 10 });
    let handed = ok(agents.path(), "/jobs/next", &pull);
    assert_eq!(handed["job"]["job_id"], json!(id), "{handed}");
    let (status, problem) = call(agents.path(), "/jobs", &{
        let mut body = body.clone();
        body["path"] = json!("/on/nobodys/machine");
        body
    });
    assert_eq!((status, &problem["errors"][0]["type"]), (422, &json!("path_not_allowed")));
}
