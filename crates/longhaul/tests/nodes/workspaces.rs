//! A run whose steps have left files stays where they are, unless every node can read them.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::{Database, LEASE, Node, within};
use crate::given::{create, ended, json, show};

/// What a step waits for before it is taken from a node that is gone.
const TAKEN_OVER: Duration = LEASE.saturating_add(Duration::from_secs(20));

/// The first step leaves a file, the second hangs the first time that it is tried.
fn plugins(dir: &Path) -> String {
    let held = dir.join("held");
    let answer = r#"jq -n --arg result "$(tr '\n' , < notes)" '{status: "ok", result: $result}'"#;
    let two = format!("echo two >> notes; mkdir {0} 2> /dev/null && sleep 600", held.display());
    for (name, work) in [("one", "echo one > notes"), ("two", two.as_str())] {
        let home = dir.join("plugins").join(name);
        std::fs::create_dir_all(&home).expect("it can be");
        let manifest = format!("name: {name}\nprotocol: 2\nentrypoint: run\ncommands: [poll, handle]\n");
        std::fs::write(home.join("manifest.yaml"), manifest).expect("it can be");
        let run = home.join("run");
        let enter = r#"request=$(cat); cd "$(jq -r .workspace_dir <<< "$request")" || exit 1"#;
        std::fs::write(&run, format!("#!/bin/bash\n{enter}\n{work}\n{answer}\n")).expect("it can be");
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).expect("it can be");
    }
    let pipelines = "
pipelines:
- { name: line, on: line, steps: [{ id: one, uses: one }, { id: two, uses: two }] }
- { name: short, on: short, steps: [{ id: one, uses: one }] }
";
    std::fs::write(dir.join("line.yaml"), pipelines).expect("it can be");
    let retry = "{ retry: { max_attempts: 3, backoff_base_seconds: 1 } }";
    format!(
        "plugin_roots: ['{0}/plugins']\npipelines: ['{0}/line.yaml']\nplugins: {{ one: {retry}, two: {retry} }}\n",
        dir.display()
    )
}

/// A run in the middle of its second step, on the first of the nodes.
fn begun(node: &Node, plugins: &Path) -> (String, String) {
    let started = json(node.dir(), &["pipeline", "run", "line"]);
    let run = started["run_id"].as_str().expect("it has an id").to_owned();
    within(Duration::from_secs(30), "the second step has begun", || plugins.join("held").exists());
    let shown = json(node.dir(), &["runs", "show", &run])["run"].clone();
    let visits = shown["visits"].as_array().expect("it is a list");
    let job = visits.iter().find(|visit| visit["step"] == "two").expect("the walk came to it");
    (run, job["job_id"].as_str().expect("it has a job").to_owned())
}

fn state(node: &Node, job: &str) -> Value {
    show(node.dir(), job)["state"].clone()
}

/// Two nodes, of which the first has run the first step and is killed in the second.
#[test]
fn step_waits_for_the_node_that_has_its_files_and_why_says_so() {
    let (database, place) = (Database::new(), tempfile::tempdir().expect("there is room"));
    let config = plugins(place.path());
    let first = database.node_knowing(&config);
    let (run, job) = begun(&first, place.path());
    let second = database.node_knowing(&config);
    let node = first.id().rsplit_once('-').expect("it has a boot").0.to_owned();
    let Node { dir, daemon } = first;
    daemon.kill();
    within(TAKEN_OVER, "its lease is over", || state(&second, &job) == "queued");
    let why = || json(second.dir(), &["jobs", "why", &job]);
    within(TAKEN_OVER, "it is told where its files are", || {
        let reasons = why()["reasons"].clone();
        let told =
            reasons.as_array().and_then(|all| all.iter().find(|one| one["code"] == "workspace_elsewhere"));
        told.is_some_and(|told| {
            let detail = told["detail"].as_str().expect("it is told");
            detail.contains(&node) && detail.contains("which is not there")
        })
    });
    assert_eq!(state(&second, &job), "queued", "no other node takes it");
    let back = database.node_in_knowing(dir, &config);
    let result = ended(back.dir(), &job, "completed");
    assert_eq!(result["summary"], "one,two,", "{result}");
    assert_eq!(show(back.dir(), &job)["runner"]["attempt_count"], 2);
    let shown = json(back.dir(), &["runs", "show", &run]);
    assert_eq!(shown["run"]["state"], "completed", "{shown}");
    drop((back, second));
    database.verify();
}

#[test]
fn node_that_reads_the_same_directory_goes_on_with_the_files_of_one_that_is_gone() {
    let (database, place) = (Database::new(), tempfile::tempdir().expect("there is room"));
    let config = format!("{}workspaces: {{ shared: true }}\n", plugins(place.path()));
    let shared = place.path().join("workspaces");
    std::fs::create_dir(&shared).expect("it can be");
    let home = || {
        let dir: TempDir = tempfile::tempdir().expect("there is room");
        symlink(&shared, dir.path().join("workspaces")).expect("it can be");
        dir
    };
    let first = database.node_in_knowing(home(), &config);
    let (_, job) = begun(&first, place.path());
    let second = database.node_in_knowing(home(), &config);
    first.daemon.kill();
    within(TAKEN_OVER, "the other node has done it", || state(&second, &job) == "completed");
    let result = ended(second.dir(), &job, "completed");
    assert_eq!(result["summary"], "one,two,", "{result}");
    database.verify();
}

/// What a node has of a run.
fn kept(node: &Node, run: &str) -> Option<PathBuf> {
    let below = |dirs: Vec<PathBuf>| -> Vec<PathBuf> {
        let entries = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten();
        entries.map(|entry| entry.expect("it can be read").path()).collect()
    };
    below(below(below(vec![node.dir().join("workspaces")]))).into_iter().find(|path| path.ends_with(run))
}

#[test]
fn what_a_run_left_goes_from_this_node_when_another_has_retired_it_and_what_lives_stays() {
    const LOOK_AFTER: usize = 4;
    let (database, place) = (Database::new(), tempfile::tempdir().expect("there is room"));
    let retention = "retention: { completed_seconds: 5 }\n";
    let config =
        format!("{}{retention}workspaces: {{ look_after_attempts: {LOOK_AFTER} }}\n", plugins(place.path()));
    let first = database.node_knowing(&config);
    let retired = json(first.dir(), &["pipeline", "run", "short"])["run_id"].as_str().unwrap().to_owned();
    let is = |state: &str| json(first.dir(), &["runs", "show", &retired])["run"]["state"] == state;
    within(Duration::from_secs(30), "the run is over", || is("completed"));
    first.daemon.signal(Signal::STOP);
    let second = database.node_knowing(retention);
    let is_known = || {
        database
            .facts()
            .iter()
            .any(|fact| fact["stream"] == retired.as_str() && fact["kind"] != "run.retired/1")
    };
    within(Duration::from_secs(30), "the other node has retired it", || !is_known());
    drop(second);
    first.daemon.signal(Signal::CONT);
    assert!(kept(&first, &retired).is_some(), "nobody has told this node");
    let (live, _) = begun(&first, place.path());
    let work = || {
        for _ in 0..LOOK_AFTER {
            ended(first.dir(), &create(first.dir(), &["a job", "--executor", "one"]), "completed");
        }
    };
    work();
    let look = Duration::from_secs(10);
    within(look, "what it left is gone", || kept(&first, &retired).is_none());
    // A look begins when the one before is over.
    let unknown = first.dir().join("workspaces/ab/cd/run-00000000000000000000000000000000");
    std::fs::create_dir_all(unknown.join("0-attempt-1")).expect("it can be");
    work();
    within(look, "what nobody knows is gone", || !unknown.exists());
    assert!(kept(&first, &live).is_some(), "what a run that goes on has left stays");
    drop(first);
    database.verify();
}
