//! The example workers drain a queue while they are killed at random: every job ends once, on both stores. They outlive cancels and restarts.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::cluster::{Database, knob, within};
use crate::given::{Daemon, binary, create, ended, expect, longhaul, show, until};

/// Longer than a lease and its end: a job that was lost with its worker is done by another.
const DRAINED_WITHIN: Duration = Duration::from_mins(2);
const BETWEEN_KILLS: Duration = Duration::from_millis(200);

#[test]
fn example_workers_that_are_killed_at_random_end_every_job_once_on_a_file() {
    let dir = tempfile::tempdir().expect("there is room");
    let config = dir.path().join("longhaul.yaml");
    std::fs::write(&config, "lease: { seconds: 30, renew_every_seconds: 10 }\n").expect("it can be written");
    let daemon = Daemon::start_with(dir.path(), &["--config", config.to_str().expect("it is text")]);
    drain(dir.path(), &daemon.url);
    daemon.kill();
    let data = dir.path().to_str().expect("it is text");
    each_ended_once(&["export", "facts", "--data-dir", data]);
}

#[test]
fn example_workers_that_are_killed_at_random_end_every_job_once_on_postgresql() {
    let database = Database::new();
    let nodes = [database.node(), database.node()];
    drain(nodes[0].dir(), &nodes[1].daemon.url);
    each_ended_once(&["export", "facts", "--database", &database.schema.address]);
    database.verify();
}

/// Fills the queue and lets workers at it, whom death visits again and again.
fn drain(dir: &Path, url: &str) {
    let jobs = knob("LONGHAUL_WORKER_JOBS", 300);
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("it is there");
    let retry = json!({ "max_attempts": 20, "backoff_seconds": 0 });
    let job = json!({ "lane": "words", "input": { "text": "one two three" }, "retry": retry });
    let batch = json!({ "jobs": vec![job; jobs] });
    let made = call(url, &token, "/jobs/batch", &batch.to_string());
    assert_eq!(made["accepted"], jobs, "{made}");
    let mut workers = Worker::commands().map(|command| Worker::start(command, url, &token));
    let held = || count_of(url, &token, "delivered") + count_of(url, &token, "running");
    // All of them die at once, one at least with a job in its hands.
    within(DRAINED_WITHIN, "somebody dies at work", || {
        within(DRAINED_WITHIN, "somebody is at work", || held() > 0);
        workers.iter_mut().for_each(Worker::kill);
        let lost = held() > 0;
        for worker in &mut workers {
            worker.start_again(url, &token);
        }
        lost
    });
    let kills = knob("LONGHAUL_WORKER_KILLS", 9);
    for kill in 0..kills {
        std::thread::sleep(BETWEEN_KILLS);
        workers[kill % 3].kill();
        workers[kill % 3].start_again(url, &token);
    }
    within(DRAINED_WITHIN, "all jobs are over", || count_of(url, &token, "completed") == jobs);
    for accepted in made["results"].as_array().expect("each has a verdict") {
        let id = accepted["job_id"].as_str().expect("it was accepted");
        let result = read(url, &token, &format!("/jobs/{id}/result"));
        let result: Value = serde_json::from_str(&result).expect("it is JSON");
        assert_eq!(result["result"]["data"], json!({ "words": 3 }), "{result}");
    }
}

#[test]
fn example_workers_outlive_cancels_and_restarts() {
    std::thread::scope(|scope| {
        for command in Worker::commands() {
            scope.spawn(|| outlives_cancel_and_restart(command));
        }
    });
}

/// One worker and nobody else: whatever is done, it does.
fn outlives_cancel_and_restart(command: Vec<PathBuf>) {
    let dir = tempfile::tempdir().expect("there is room");
    let dir = dir.path();
    let config = dir.join("longhaul.yaml");
    std::fs::write(&config, "lease: { seconds: 30, renew_every_seconds: 1 }\n").expect("it can be written");
    let config = config.to_str().expect("it is text");
    let daemon = Daemon::start_with(dir, &["--config", config]);
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("it is there");
    let address = daemon.url.trim_start_matches("http://").to_owned();
    let mut worker = Worker::start(command, &daemon.url, &token);
    let make = |input: &str| create(dir, &["count", "--lane", "words", "--input", input]);

    let endless = make(r#"{"text": "one", "seconds": 600}"#);
    until(dir, &endless, "running");
    expect(0, &longhaul(dir, &["jobs", "cancel", &endless]));
    ended(dir, &endless, "cancelled");
    let facts = expect(0, &longhaul(dir, &["jobs", "facts", &endless, "--json"]));
    assert!(facts.contains(r#""cause":"confirmed""#), "{facts}");
    let next = make(r#"{"text": "one two"}"#);
    assert_eq!(ended(dir, &next, "completed")["data"], json!({ "words": 2 }));

    // Once at work, and once waiting for work.
    let begun = make(r#"{"text": "one two three", "seconds": 3}"#);
    until(dir, &begun, "running");
    daemon.kill();
    let again = || Daemon::verb(dir, &["serve", "--listen", &address, "--config", config]);
    let daemon = again();
    assert_eq!(ended(dir, &begun, "completed")["data"], json!({ "words": 3 }));
    assert_eq!(show(dir, &begun)["runner"]["attempt_count"], 1, "its first attempt goes on");
    within(DRAINED_WITHIN, "it waits for work", || pullers(&daemon.url, &token) == 1);
    daemon.kill();
    let _daemon = again();
    let last = make(r#"{"text": "one two three four"}"#);
    assert_eq!(ended(dir, &last, "completed")["data"], json!({ "words": 4 }));
    assert_eq!(worker.child.try_wait().expect("it is ours"), None, "it was never started again");
}

fn count_of(url: &str, token: &str, state: &str) -> usize {
    figure(url, token, &format!("longhaul_jobs{{state=\"{state}\"}} "))
}

fn pullers(url: &str, token: &str) -> usize {
    figure(url, token, "longhaul_pullers_waiting ")
}

fn figure(url: &str, token: &str, line: &str) -> usize {
    let text = read(url, token, "/metrics");
    text.lines().find_map(|found| found.strip_prefix(line)?.parse().ok()).unwrap_or_default()
}

fn read(url: &str, token: &str, path: &str) -> String {
    let request =
        ureq::get(format!("{url}{path}")).header("Authorization", format!("Bearer {}", token.trim()));
    request.call().expect("it answers").body_mut().read_to_string().expect("it is text")
}

/// What a node answers to whoever has this token.
pub fn call(url: &str, token: &str, path: &str, body: &str) -> Value {
    let request = ureq::post(format!("{url}{path}"))
        .header("Authorization", format!("Bearer {}", token.trim()))
        .header("Content-Type", "application/json");
    let text = request.send(body).expect("it is accepted").body_mut().read_to_string().expect("it is text");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Every job was completed, exactly once, by whichever attempt was current.
fn each_ended_once(export: &[&str]) {
    let exported = expect(0, &binary(export).output().expect("the binary runs"));
    let (mut ends, mut begins) = (BTreeMap::<String, usize>::new(), 0);
    for line in exported.lines() {
        let fact: Value = serde_json::from_str(line).expect("it is JSON");
        let stream = fact["stream"].as_str().expect("it is about a job").to_owned();
        match fact["kind"].as_str().expect("it has a kind") {
            "job.created/1" => drop(ends.entry(stream).or_default()),
            "job.completed/1" => *ends.entry(stream).or_default() += 1,
            "job.dispatched/1" => begins += 1,
            _ => {}
        }
    }
    assert_eq!(ends.len(), knob("LONGHAUL_WORKER_JOBS", 300));
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
    assert!(begins > ends.len(), "nobody died at work");
}

struct Worker {
    command: Vec<PathBuf>,
    child: Child,
}

impl Worker {
    fn commands() -> [Vec<PathBuf>; 3] {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers");
        let binary = Path::new(env!("CARGO_BIN_EXE_longhaul"));
        let built = binary.parent().expect("it is in a directory").join("examples/worker");
        [
            vec!["bash".into(), examples.join("worker.sh")],
            vec!["python3".into(), examples.join("worker.py")],
            vec![built],
        ]
    }

    fn start(command: Vec<PathBuf>, url: &str, token: &str) -> Self {
        let child = Command::new(&command[0])
            .args(&command[1..])
            .env("LONGHAUL_URL", url)
            .env("LONGHAUL_TOKEN", token.trim())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // With all that it has started: a curl that waits on would be handed a job in its worker's name.
            .process_group(0)
            .spawn()
            .expect("bash with curl, python3 and the example are there");
        Self { command, child }
    }

    fn kill(&mut self) {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }

    fn start_again(&mut self, url: &str, token: &str) {
        *self = Self::start(self.command.clone(), url, token);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}
