//! The routes of Ductile's RFC-103 as they stand there, with stand-ins for the tools and the agent: every turn is a job of its own, the
//! answer of a tool resumes the agent, and which turn had asked is carried all the way.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, expect, json as json_of, longhaul, verify, within};

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    path.canonicalize().expect("it is there").display().to_string()
}

/// A daemon with these routes, whose agent is set up like this.
fn daemon(dir: &Path, routes: &str, agent: &str) -> Daemon {
    let config = format!(
        "plugin_roots: ['{}']\npipelines: ['{routes}']\nplugins:\n  tally: {{ enabled: false }}\n  jina-reader: {{ uses: page, \
         retry: {{ max_attempts: 1 }} }}\n  fabric: {{ uses: page }}\n  agentic-loop: {{ uses: turn, {agent} }}\n",
        example("plugins")
    );
    let file = dir.join("longhaul.yaml");
    std::fs::write(&file, config).expect("it is written");
    let file = file.to_str().expect("it is text");
    Daemon::verb(dir, &["serve", "--listen", "127.0.0.1:0", "--config", file])
}

/// Begins a run of the agent, with a goal.
fn begin(dir: &Path, payload: &str) {
    expect(
        0,
        &longhaul(dir, &["plugin", "run", "agentic-loop", "--command", "handle", "--payload", payload]),
    );
}

fn events(dir: &Path, kind: &str) -> Vec<Value> {
    let listed = json_of(dir, &["events", "list", "--type", kind])["events"].clone();
    let ids =
        listed.as_array().expect("a list").iter().map(|event| event["event_id"].as_str().expect("an id"));
    ids.map(|id| json_of(dir, &["events", "show", id])["event"].clone()).collect()
}

fn the_event(dir: &Path, kind: &str) -> Value {
    let mut events = within(kind, || Some(events(dir, kind)).filter(|events| !events.is_empty()));
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

fn runs(dir: &Path) -> Vec<Value> {
    let runs = json_of(dir, &["runs", "list"])["runs"].as_array().expect("a list").clone();
    let shown = runs.iter().map(|run| run["run_id"].as_str().expect("it has an id"));
    let mut runs: Vec<Value> = shown.map(|id| json_of(dir, &["runs", "show", id])["run"].clone()).collect();
    runs.reverse();
    runs
}

/// All runs, once they are over.
fn over(dir: &Path, count: usize) -> Vec<Value> {
    within("the runs are over", || {
        let runs = runs(dir);
        let all = runs.len() == count && runs.iter().all(|run| run["state"] == "completed");
        all.then_some(runs)
    })
}

fn steps(run: &Value) -> Vec<&str> {
    run["visits"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|visit| visit["step"].as_str().expect("a step"))
        .collect()
}

// conforms: D28 D37
#[test]
fn routes_of_the_rfc_run_as_they_stand_there_and_every_turn_asks_for_a_tool_or_is_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path(), &example("pipelines/rfc-103/agentic-tools.yaml"), "");
    begin(dir.path(), r#"{"goal": "a critique", "run_id": "R1", "url": "http://127.0.0.1/"}"#);
    let done = the_event(dir.path(), "agent.completed");
    assert_eq!((&done["payload"]["run_id"], &done["payload"]["steps_taken"]), (&json!("R1"), &json!(2)));
    assert_eq!(done["payload"]["outcome"], "about the page http://127.0.0.1/");
    let runs = over(dir.path(), 2);
    assert_eq!(
        (runs[0]["pipeline"].as_str(), steps(&runs[0])),
        (Some("agentic-tool-fetch"), vec!["fetch", "resume"])
    );
    assert_eq!(
        (runs[1]["pipeline"].as_str(), steps(&runs[1])),
        (Some("agentic-tool-fabric"), vec!["fabric", "resume"])
    );
    let jobs = json_of(dir.path(), &["jobs", "list"])["work"].clone();
    let is_turn = |job: &&Value| {
        let title = job["title"].as_str().expect("it has a title");
        title == "agentic-loop handle" || title.ends_with(": resume")
    };
    let turns = jobs.as_array().unwrap().iter().filter(is_turn);
    let mut kinds: Vec<String> = turns
        .map(|job| {
            let result = json_of(dir.path(), &["jobs", "result", job["job_id"].as_str().unwrap()]);
            let events = result["data"]["events"].as_array().expect("a turn lists its events");
            assert_eq!(events.len(), 1, "a turn asks for one tool or is the last: {result}");
            events[0]["type"].as_str().unwrap().to_owned()
        })
        .collect();
    kinds.sort();
    assert_eq!(kinds, ["agent.completed", "agentic.tool_request.fabric", "agentic.tool_request.jina-reader"]);
    drop(daemon);
    verify(dir.path());
}

#[test]
fn what_an_agent_sets_is_carried_over_every_hop_into_other_pipelines_and_no_payload_changes_it() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = daemon(dir.path(), &example("pipelines/rfc-103/agentic-tools.yaml"), "");
    begin(dir.path(), r#"{"goal": "a critique", "run_id": "R1"}"#);
    let done = the_event(dir.path(), "agent.completed");
    let asked = |step: u32, tool: &str| json!({ "run_id": "R1", "step": step, "tool": tool });
    assert_eq!(the_event(dir.path(), "agentic.tool_request.jina-reader")["correlation"], asked(1, "fetch"));
    assert_eq!(the_event(dir.path(), "agentic.tool_request.fabric")["correlation"], asked(2, "critique"));
    // The tool said nothing of it, and its payload has a step and a tool of its own.
    let mut read = events(dir.path(), "content_ready");
    read.reverse();
    let carried: Vec<&Value> = read.iter().map(|event| &event["correlation"]).collect();
    assert_eq!(carried, [&asked(1, "fetch"), &asked(2, "critique")]);
    assert_eq!(read[0]["payload"]["step"], "read");
    assert_eq!(done["correlation"], asked(2, "critique"));
}

#[test]
fn what_an_agent_puts_into_the_payload_alone_is_in_its_context_where_the_file_carries_payloads() {
    let dir = tempfile::tempdir().unwrap();
    let as_it_stands = std::fs::read_to_string(example("pipelines/rfc-103/agentic-tools.yaml")).unwrap();
    let carrying = dir.path().join("routes.yaml");
    std::fs::write(&carrying, as_it_stands.replace("# carry: payload", "carry: payload")).unwrap();
    let agent = "config: { correlation: false }";
    let _daemon = daemon(dir.path(), carrying.to_str().unwrap(), agent);
    begin(dir.path(), r#"{"goal": "a critique", "run_id": "R1"}"#);
    assert_eq!(the_event(dir.path(), "agent.completed")["payload"]["steps_taken"], 2);
    assert!(over(dir.path(), 2).iter().all(|run| steps(run).len() == 2));
}

#[test]
fn answer_to_what_nobody_waits_for_is_ignored_and_what_is_published_carries_what_its_sender_says() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = daemon(dir.path(), &example("pipelines/rfc-103/agentic-tools.yaml"), "");
    let publish = |correlation: &str| {
        let kind = "agentic.tool_request.jina-reader";
        longhaul(dir.path(), &["events", "publish", kind, "--correlation", correlation, "--json"])
    };
    let stranger = r#"{"run_id": "R0", "step": 1, "tool": "fetch"}"#;
    expect(0, &publish(stranger));
    let run = over(dir.path(), 1).remove(0);
    let resumed = run["visits"][1]["job_id"].as_str().unwrap();
    assert_eq!(json_of(dir.path(), &["jobs", "result", resumed])["summary"], "ignored");
    assert_eq!(events(dir.path(), "content_ready")[0]["correlation"]["run_id"], "R0");
    assert_eq!(events(dir.path(), "agent.completed"), Vec::<Value>::new());
    expect(2, &publish("[1]"));
    let large = format!(r#"{{"run_id": "{}"}}"#, "x".repeat(2_048));
    let refused = publish(&large);
    expect(1, &refused);
    assert!(crate::given::stderr(&refused).contains("correlation"), "{}", crate::given::stderr(&refused));
}
