//! The limit of a lane holds for all nodes together.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::cluster::{Database, Node, within};
use crate::given::{create, ended, json};

/// Whoever finds the place taken leaves a word; longer than nodes take to hear of each other.
const PRESS: &str = "mkdir $PLACE/taken || touch $PLACE/clash; sleep 0.2; rmdir $PLACE/taken";

#[test]
fn nodes_together_keep_to_the_limit_of_a_lane_and_use_what_becomes_free_anywhere() {
    let (database, place) = (Database::new(), tempfile::tempdir().expect("there is room"));
    let path = place.path().display();
    let config = format!(
        "lanes: {{ press: {{ limit: 1 }} }}\n\
         executors: [{{ name: press, kind: process, argv: [sh, -c, \"{PRESS}\"], concurrency: 4, \
         env: {{ allow: [PATH], set: {{ PLACE: \"{path}\" }} }} }}]\n"
    );
    let nodes: Vec<Node> = (0..3).map(|_| database.node_knowing(&config)).collect();
    let ids: Vec<String> = (0..24)
        .map(|number| create(nodes[number % nodes.len()].dir(), &["sheet", "--executor", "press"]))
        .collect();
    for id in &ids {
        ended(nodes[0].dir(), id, "completed");
    }
    assert!(!place.path().join("clash").exists(), "two were at the press");
    database.verify();
}

/// A plugin that one may have at a time, and that leaves a file: what follows it in its run queues for the node that has it.
fn press(dir: &Path) -> String {
    let home = dir.join("plugins/press");
    std::fs::create_dir_all(&home).expect("it can be");
    let manifest = "name: press\nprotocol: 2\nentrypoint: run\nconcurrency_safe: false\ncommands: [handle]\n";
    std::fs::write(home.join("manifest.yaml"), manifest).expect("it can be");
    let (run, place) = (home.join("run"), dir.display());
    let enter = r#"request=$(cat); cd "$(jq -r .workspace_dir <<< "$request")" || exit 1"#;
    let work = format!("echo sheet >> notes; PLACE={place}; {PRESS}");
    let answer = r#"echo '{"status": "ok", "result": "done"}'"#;
    std::fs::write(&run, format!("#!/bin/bash\n{enter}\n{work}\n{answer}\n")).expect("it can be");
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).expect("it can be");
    let steps = "[{ id: one, uses: press }, { id: two, uses: press }, { id: three, uses: press }]";
    let pipelines = format!("pipelines: [{{ name: line, on: line, steps: {steps} }}]");
    std::fs::write(dir.join("line.yaml"), pipelines).expect("it can be");
    format!("plugin_roots: ['{place}/plugins']\npipelines: ['{place}/line.yaml']\n")
}

#[test]
fn plugin_that_one_may_have_at_a_time_is_had_once_also_by_steps_that_only_one_node_can_do() {
    let (database, place) = (Database::new(), tempfile::tempdir().expect("there is room"));
    let config = press(place.path());
    let nodes: Vec<Node> = (0..2).map(|_| database.node_knowing(&config)).collect();
    let runs: Vec<String> = (0..6)
        .map(|number| {
            let started = json(nodes[number % nodes.len()].dir(), &["pipeline", "run", "line"]);
            started["run_id"].as_str().expect("it has an id").to_owned()
        })
        .collect();
    for run in &runs {
        within(Duration::from_mins(1), "the run is over", || {
            json(nodes[0].dir(), &["runs", "show", run])["run"]["state"] == "completed"
        });
    }
    assert!(!place.path().join("clash").exists(), "two had the plugin");
    drop(nodes);
    database.verify();
}
