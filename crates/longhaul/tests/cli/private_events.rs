//! Events of private jobs: a real plugin that emits one, run for a private job and for a job of the circle.

use serde_json::{Value, json};

use crate::clock_steps::send;
use crate::given::{Daemon, ended, json as json_of, plugin, show};

const EMITS: &str = r#"cat > /dev/null
echo '{"status": "ok", "result": "done", "events": [{"type": "tide.changed", "payload": {"secret": "4711"}}]}'
"#;

// conforms: R110
#[test]
fn events_of_a_private_job_are_not_published() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    plugin(dir, "gauge", EMITS);
    std::fs::write(dir.join("longhaul.yaml"), "plugin_roots: [plugins]\n").unwrap();
    let config = dir.join("longhaul.yaml");
    let config = config.to_str().unwrap();
    let daemon = Daemon::verb(dir, &["serve", "--listen", "127.0.0.1:0", "--config", config]);
    let run = |visibility: &str| {
        let job = json!({ "title": "a gauge", "executor": "gauge", "input": {}, "visibility": visibility });
        let (status, made) = send(dir, &daemon, "POST", "/jobs", &job);
        assert_eq!(status, 200, "{made}");
        let id = made["job_id"].as_str().expect("it has an id");
        ended(dir, id, "completed");
        show(dir, id)
    };
    let events = || json_of(dir, &["events", "list"])["events"].as_array().expect("it is a list").len();
    let private = run("private");
    assert_eq!(events(), 0);
    let notes: Vec<&Value> = private["progress_events"].as_array().expect("it has notes").iter().collect();
    let note = "events not published: 1 (the job is private, and everybody in its circle reads events)";
    assert!(notes.iter().any(|kept| kept["note"] == note), "{private}");
    run("circle");
    assert_eq!(events(), 1);
}
