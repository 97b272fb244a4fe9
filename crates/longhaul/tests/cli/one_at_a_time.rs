//! The jobs of a plugin in their lane: one at a time, in order of arrival, whoever made them, and none waits inside another.

use std::path::Path;

use serde_json::Value;

use crate::given::{Daemon, create, expect, json, longhaul, within};

/// Writes down when it begins and ends. As long as there is a file `hold` the first one does not end.
const SCRIPT: &str = r#"#!/usr/bin/env bash
home=$(dirname "$0"); id=$(jq -r .job_id)
echo "begin $id" >> "$home/log"
while [ -e "$home/hold" ]; do sleep 0.02; done
echo "end $id" >> "$home/log"
echo '{"status": "ok", "result": "done", "events": [{"type": "turned", "payload": {}}]}'
"#;

const PIPELINES: &str = "
pipelines:
- { name: chain, on: go, steps: [{ id: a, uses: press }, { id: b, uses: press }] }
- { name: after, on: turned, from_plugin: press, max_depth: 1, if: { path: payload.no, op: exists }, steps: [{ uses: press }] }
";

fn put(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be");
    std::fs::write(path, text).expect("it can be");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it can be");
}

/// Publishes an event, and gives the job of the first step that it starts.
fn begun(dir: &Path, number: usize) -> String {
    expect(0, &longhaul(dir, &["events", "publish", "go"]));
    within("its run has begun", || {
        let runs = json(dir, &["runs", "list"])["runs"].as_array()?.clone();
        let newest = runs.first().filter(|_| runs.len() == number)?["run_id"].as_str()?.to_owned();
        let run = json(dir, &["runs", "show", &newest])["run"].clone();
        Some(run["visits"][0]["job_id"].as_str()?.to_owned())
    })
}

// conforms: D2
#[test]
fn steps_and_plain_jobs_of_a_plugin_are_done_one_at_a_time_in_order_of_arrival_and_none_waits_inside_another()
{
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let home = path.join("plugins/press");
    put(&home.join("manifest.yaml"), "name: press\nprotocol: 2\nentrypoint: run\ncommands: [poll, handle]\n");
    put(&home.join("run"), SCRIPT);
    put(&home.join("hold"), "");
    put(&path.join("p.yaml"), PIPELINES);
    let config = path.join("longhaul.yaml");
    put(&config, "plugin_roots: [plugins]\npipelines: [p.yaml]\n");
    let _daemon =
        Daemon::verb(path, &["serve", "--listen", "127.0.0.1:0", "--config", config.to_str().unwrap()]);
    let log = || std::fs::read_to_string(home.join("log")).unwrap_or_default();
    let first = create(path, &["first", "--executor", "press"]);
    within("the first has begun", || log().contains("begin").then_some(()));
    let one = begun(path, 1);
    let plain = create(path, &["plain", "--executor", "press"]);
    let two = begun(path, 2);
    assert_eq!(log().lines().count(), 1, "nobody overtakes: {}", log());
    std::fs::remove_file(home.join("hold")).unwrap();
    let done = within("both runs are over", || {
        let runs = json(path, &["runs", "list"])["runs"].as_array()?.clone();
        runs.iter().all(|run| run["state"] == "completed").then_some(runs)
    });
    let last = |run: &Value| {
        let shown = json(path, &["runs", "show", run["run_id"].as_str().unwrap()])["run"].clone();
        shown["visits"][1]["job_id"].as_str().unwrap().to_owned()
    };
    // The second steps arrive when the first ones are over: behind all that was there by then.
    let arrived = [first, one, plain, two, last(&done[1]), last(&done[0])];
    let expected: Vec<String> =
        arrived.iter().flat_map(|id| [format!("begin {id}"), format!("end {id}")]).collect();
    assert_eq!(log().lines().collect::<Vec<_>>(), expected);
}
