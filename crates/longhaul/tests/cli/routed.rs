//! Events and runs on the command line, and through kill -9 of the real binary.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::given::{Daemon, binary, ended, expect, json as json_of, longhaul, verify, within};

const PIPELINES: &str = "
pipelines:
- { name: tides, on: tide, steps: [{ id: first, uses: noop }, { id: slow, uses: slow }, { id: last, uses: noop }] }
";

fn configured(dir: &Path) -> String {
    std::fs::write(dir.join("tides.yaml"), PIPELINES).expect("it is written");
    let config = dir.join("longhaul.yaml");
    std::fs::write(&config, "pipelines: [tides.yaml]\n").expect("it is written");
    config.display().to_string()
}

/// The same, and its second step lasts until there is this file.
fn gated(dir: &Path) -> (String, PathBuf) {
    let (config, gate) = (configured(dir), dir.join("gate"));
    let yaml = format!(
        "pipelines:\n- {{ name: tides, on: tide, steps: [{{ id: first, uses: noop }}, {{ id: slow, uses: command, \
         with: {{ argv: [sh, -c, 'while ! test -e {}; do sleep 0.05; done'] }} }}, {{ id: last, uses: noop }}] }}\n",
        gate.display()
    );
    std::fs::write(dir.join("tides.yaml"), yaml).expect("it is written");
    (config, gate)
}

fn run_of(dir: &Path, wanted: impl Fn(&Value) -> bool) -> Value {
    within("the run is as wanted", || {
        let id = json_of(dir, &["runs", "list"])["runs"][0]["run_id"].as_str()?.to_owned();
        let run = json_of(dir, &["runs", "show", &id])["run"].clone();
        wanted(&run).then_some(run)
    })
}

#[test]
fn killed_daemon_goes_on_with_a_run_and_makes_one_job_for_each_step() {
    let dir = tempfile::tempdir().unwrap();
    let (config, gate) = gated(dir.path());
    let daemon = Daemon::start_with(dir.path(), &["--config", &config]);
    let publish = ["events", "publish", "tide", "--dedupe-key", "k"];
    let event = json_of(dir.path(), &publish)["event_id"].as_str().unwrap().to_owned();
    run_of(dir.path(), |run| run["visits"][1]["state"] == "open");
    daemon.kill();
    let _daemon = Daemon::start_with(dir.path(), &["--config", &config]);
    std::fs::write(&gate, "").unwrap();
    let run = run_of(dir.path(), |run| run["state"] == "completed");
    let steps: Vec<&str> =
        run["visits"].as_array().unwrap().iter().map(|visit| visit["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["first", "slow", "last"]);
    assert_eq!(json_of(dir.path(), &["jobs", "list"])["work"].as_array().unwrap().len(), 3);
    let shown = json_of(dir.path(), &["events", "show", &event])["event"].clone();
    assert_eq!(shown["routes"][0]["run_id"], run["run_id"]);
    verify(dir.path());
}

#[test]
fn pipeline_is_run_by_name_and_read_anew_and_a_mistake_takes_nothing_away() {
    let dir = tempfile::tempdir().unwrap();
    let config = configured(dir.path());
    let _daemon = Daemon::start_with(dir.path(), &["--config", &config]);
    let ran =
        json_of(dir.path(), &["pipeline", "run", "tides", "--payload", r#"{"seconds":0}"#, "--wait", "30"]);
    assert_eq!(ran["run"]["state"], "completed", "{ran}");
    let slow = ["pipeline", "run", "tides", "--payload", r#"{"seconds":60}"#, "--wait", "1"];
    expect(124, &longhaul(dir.path(), &slow));
    assert!(expect(0, &longhaul(dir.path(), &["pipeline", "show", "tides"])).contains("on tide"));
    std::fs::write(dir.path().join("tides.yaml"), "pipelines:\n- { name: tides, on: tide, stebs: [] }\n")
        .unwrap();
    let told = expect(1, &longhaul(dir.path(), &["pipeline", "reload"]));
    assert!(told.contains("tides"), "{told}");
    assert_eq!(json_of(dir.path(), &["pipeline", "list"])["pipelines"][0]["name"], json!("tides"));
    std::fs::write(dir.path().join("tides.yaml"), "pipelines: []\n").unwrap();
    expect(0, &longhaul(dir.path(), &["pipeline", "reload"]));
    assert_eq!(json_of(dir.path(), &["pipeline", "list"])["pipelines"], json!([]));
}

#[test]
fn tail_tells_of_every_event_as_it_is_published_and_settled() {
    let dir = tempfile::tempdir().unwrap();
    let config = configured(dir.path());
    let _daemon = Daemon::start_with(dir.path(), &["--config", &config]);
    let mut tail = binary(&["events", "tail"])
        .env("LONGHAUL_DATA_DIR", dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(tail.stdout.take().expect("it is ours")).lines();
    let mut next = || lines.next().expect("it goes on").expect("it is text");
    for (kind, came_to) in [("nobody.listens", "no_route"), ("tide", "tides started")] {
        let publish = ["events", "publish", kind, "--payload", r#"{"seconds":0}"#];
        let id = json_of(dir.path(), &publish)["event_id"].as_str().unwrap().to_owned();
        let published = next();
        assert!(published.ends_with(&format!(" event.published/1 {id} {kind}")), "{published}");
        let settled = next();
        assert!(settled.contains(&format!(" event.settled/1 {id} {kind} {came_to}")), "{settled}");
        let shown = expect(0, &longhaul(dir.path(), &["events", "show", &id]));
        assert!(shown.contains("payload: {\"seconds\":0}\n"), "{shown}");
        let listed = expect(0, &longhaul(dir.path(), &["events", "list", "--type", kind]));
        assert!(came_to == "no_route" || listed.contains(came_to), "{listed}");
    }
    tail.kill().expect("it follows until then");
    tail.wait().expect("it is ours");
    let shown = expect(0, &longhaul(dir.path(), &["events", "list", "--status", "no_route"]));
    assert!(shown.contains("nobody.listens") && !shown.contains("tide"), "{shown}");
}

#[test]
fn run_is_cancelled_with_what_it_began_and_retried_from_the_step_that_failed() {
    let dir = tempfile::tempdir().unwrap();
    let config = configured(dir.path());
    let mended = dir.path().join("mended");
    let yaml = format!(
        "{PIPELINES}- {{ name: mill, on: grain, steps: [{{ id: first, uses: noop }}, {{ id: grind, uses: command, retry: {{ max_attempts: 1 }}, \
         with: {{ argv: [test, -e, '{}'] }} }}, {{ id: last, uses: noop }}] }}\n",
        mended.display()
    );
    std::fs::write(dir.path().join("tides.yaml"), yaml).unwrap();
    let _daemon = Daemon::start_with(dir.path(), &["--config", &config]);
    let begun = json_of(dir.path(), &["pipeline", "run", "tides", "--payload", r#"{"seconds":600}"#]);
    let id = begun["run_id"].as_str().unwrap().to_owned();
    run_of(dir.path(), |run| run["visits"][1]["state"] == "open");
    let told = expect(0, &longhaul(dir.path(), &["runs", "cancel", &id, "--reason", "no longer needed"]));
    assert!(told.starts_with(&format!("{id}: tides is ")), "{told}");
    let run = run_of(dir.path(), |run| run["state"] == "cancelled");
    ended(dir.path(), run["visits"][1]["job_id"].as_str().unwrap(), "cancelled");
    assert_eq!(run["visits"].as_array().map(Vec::len), Some(2), "nothing follows: {run}");

    let failed = longhaul(dir.path(), &["pipeline", "run", "mill", "--wait", "30"]);
    let told = expect(1, &failed);
    let id = told.split(':').next().unwrap();
    assert!(told.contains("mill is failed"), "{told}");
    std::fs::write(&mended, "").unwrap();
    let told = expect(0, &longhaul(dir.path(), &["runs", "retry", id]));
    assert!(told.starts_with("Tried again: "), "{told}");
    let run = run_of(dir.path(), |run| run["pipeline"] == "mill" && run["state"] == "completed");
    let steps: Vec<&str> =
        run["visits"].as_array().unwrap().iter().map(|visit| visit["step"].as_str().unwrap()).collect();
    assert_eq!(
        steps,
        ["first", "grind", "last"],
        "what was done is not done again, what follows is done once"
    );
    expect(1, &longhaul(dir.path(), &["runs", "retry", id]));
    expect(4, &longhaul(dir.path(), &["runs", "cancel", "run-0"]));
}

#[test]
fn run_that_goes_on_keeps_its_definition_while_its_pipeline_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (config, gate) = gated(dir.path());
    let _daemon = Daemon::start_with(dir.path(), &["--config", &config]);
    json_of(dir.path(), &["events", "publish", "tide"]);
    let before = run_of(dir.path(), |run| run["visits"][1]["state"] == "open");
    let other = "pipelines: [{ name: tides, on: tide, steps: [{ id: another, uses: noop }] }]\n";
    std::fs::write(dir.path().join("tides.yaml"), other).unwrap();
    let told = json_of(dir.path(), &["pipeline", "reload"]);
    assert_eq!((&told["pipelines"], &told["mistakes"]), (&json!(["tides"]), &json!([])), "{told}");
    let after = json_of(dir.path(), &["pipeline", "run", "tides", "--wait", "30"])["run"].clone();
    assert_eq!(after["visits"].as_array().map(Vec::len), Some(1), "{after}");
    std::fs::write(&gate, "").unwrap();
    let id = before["run_id"].as_str().unwrap();
    let ended = within("the first run is over", || {
        let run = json_of(dir.path(), &["runs", "show", id])["run"].clone();
        (run["state"] == "completed").then_some(run)
    });
    let last: Vec<&str> =
        ended["visits"].as_array().unwrap().iter().map(|visit| visit["step"].as_str().unwrap()).collect();
    assert_eq!(last, ["first", "slow", "last"]);
    assert_ne!(ended["version"], after["version"], "{ended} {after}");
}
