//! kill -9 at every step of a pipeline of plugins: started again, every child is there exactly once, and the store agrees with its ledger.

use std::path::Path;

use serde_json::Value;

use crate::given::{Daemon, create, json, plugin, verify, within};

/// A job of `field` emits `grain`; the pipeline `mill` grinds it in three steps, each of which emits `ground`; `watch` listens to that.
const JOBS: usize = 1 + 3 + 3;

const PIPELINES: &str = "
pipelines:
- name: mill
  on: grain
  steps: [{ id: one, uses: mill }, { id: two, uses: mill }, { id: three, uses: mill }]
- { name: watch, on: ground, steps: [{ id: look, uses: noop }] }
";

fn emitting(dir: &Path, name: &str, emits: &str) {
    let answer = format!(
        r#"{{"status":"ok","result":"done","state_updates":{{"seen":true}},"events":[{{"type":"{emits}","payload":{{"by":"{name}"}}}}]}}"#
    );
    plugin(dir, name, &format!("cat > /dev/null\nsleep 0.05\necho '{answer}'"));
}

fn start(dir: &Path) -> Daemon {
    let config = dir.join("longhaul.yaml");
    Daemon::verb(dir, &["serve", "--listen", "127.0.0.1:0", "--config", config.to_str().expect("it is text")])
}

fn jobs(dir: &Path) -> Vec<Value> {
    json(dir, &["jobs", "list"])["work"].as_array().expect("it is a list").clone()
}

fn completed(dir: &Path) -> usize {
    jobs(dir).iter().filter(|job| job["state"] == "completed").count()
}

#[test]
fn killed_at_every_step_a_pipeline_leaves_exactly_one_of_each_child() {
    let dir = tempfile::tempdir().expect("there is room");
    let path = dir.path();
    emitting(path, "field", "grain");
    emitting(path, "mill", "ground");
    std::fs::write(path.join("mill.yaml"), PIPELINES).expect("it can be");
    let tried = "retry: { max_attempts: 20, backoff_base_seconds: 1 }";
    let config = format!(
        "plugin_roots: [plugins]\npipelines: [mill.yaml]\nplugins: {{ field: {{ {tried} }}, mill: {{ {tried} }} }}\n"
    );
    std::fs::write(path.join("longhaul.yaml"), config).expect("it can be");
    let mut daemon = start(path);
    create(path, &["sown", "--executor", "field"]);
    for step in 1..=JOBS {
        // As soon as one more is there: its attempt has just begun, or is about to.
        within("one more job", || (jobs(path).len() >= step).then_some(()));
        daemon.kill();
        daemon = start(path);
    }
    within("all are done", || (completed(path) == JOBS).then_some(()));
    let all = jobs(path);
    assert_eq!(all.len(), JOBS, "{all:?}");
    let of = |title: &str| all.iter().filter(|job| job["title"] == title).count();
    for (title, times) in [("mill: one", 1), ("mill: two", 1), ("mill: three", 1), ("watch: look", 3)] {
        assert_eq!(of(title), times, "{title}");
    }
    drop(daemon);
    verify(path);
}
