//! Events and runs on the command line, and through kill -9 of the real binary.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, expect, json as json_of, longhaul, verify, within};

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
    let config = configured(dir.path());
    let daemon = Daemon::start_with(dir.path(), &["--config", &config]);
    let publish = ["events", "publish", "tide", "--payload", r#"{"seconds":2}"#, "--dedupe-key", "k"];
    let event = json_of(dir.path(), &publish)["event_id"].as_str().unwrap().to_owned();
    run_of(dir.path(), |run| run["visits"][1]["state"] == "open");
    daemon.kill();
    let _daemon = Daemon::start_with(dir.path(), &["--config", &config]);
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
