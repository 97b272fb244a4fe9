//! The routes of Ductile's RFC-103 as they stand there, with stand-ins for the tools and the agent: every turn is a job of its own, the
//! answer of a tool resumes the agent, and which turn had asked is carried all the way.

use std::path::Path;

use serde_json::{Value, json};

use crate::given::{Daemon, expect, json as json_of, longhaul, verify, within};

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    path.canonicalize().expect("it is there").display().to_string()
}

/// The routes word for word as the RFC has them.
const SEED: &str = "
pipelines:
  - name: agentic-tool-fetch
    on: agentic.tool_request.jina-reader
    steps:
      - id: fetch
        uses: jina-reader
      - id: resume
        uses: agentic-loop

  - name: agentic-tool-fabric
    on: agentic.tool_request.fabric
    steps:
      - id: fabric
        uses: fabric
      - id: resume
        uses: agentic-loop
";
/// An agent that puts into the payload alone which turn asked.
const PAYLOAD_ALONE: &str = "config: { correlation: false }";

/// A daemon with these routes, whose agent is set up like this.
fn daemon(dir: &Path, routes: &str, agent: &str) -> Daemon {
    let tools = "jina-reader: { uses: page, retry: { max_attempts: 1 } }";
    daemon_with(dir, routes, agent, tools)
}

/// The same, with other tools, which may be plugins below `plugins` of this directory.
fn daemon_with(dir: &Path, routes: &str, agent: &str, tools: &str) -> Daemon {
    std::fs::create_dir_all(dir.join("plugins")).expect("it can be");
    let config = format!(
        "plugin_roots: ['{}', plugins]\npipelines: ['{routes}']\nplugins:\n  tally: {{ enabled: false }}\n  {tools}\n  \
         fabric: {{ uses: page }}\n  agentic-loop: {{ uses: turn, {agent} }}\n",
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

/// The routes of the seed as a file.
fn seed(dir: &Path) -> String {
    let file = dir.join("routes.yaml");
    std::fs::write(&file, SEED).expect("it is written");
    file.to_str().expect("it is text").to_owned()
}

fn plugin(dir: &Path, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let place = dir.join("plugins").join(name);
    std::fs::create_dir_all(&place).expect("it can be");
    let manifest = format!(
        "manifest_spec: ductile.plugin\nmanifest_version: 1\nname: {name}\nprotocol: 2\nentrypoint: run.py\ncommands:\n  - name: handle\n    type: write\n"
    );
    std::fs::write(place.join("manifest.yaml"), manifest).expect("it is written");
    std::fs::write(place.join("run.py"), script).expect("it is written");
    std::fs::set_permissions(place.join("run.py"), std::fs::Permissions::from_mode(0o755))
        .expect("it can be");
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

// conforms: D28
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

// conforms: D57
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

// conforms: D57
#[test]
fn routes_of_the_seed_resume_an_agent_that_has_payloads_alone() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = daemon(dir.path(), &seed(dir.path()), PAYLOAD_ALONE);
    // `plugin run` gives the payload as an event of the generic type.
    begin(dir.path(), r#"{"goal": "a critique", "run_id": "R1"}"#);
    assert_eq!(the_event(dir.path(), "agent.completed")["payload"]["steps_taken"], 2);
    assert!(over(dir.path(), 2).iter().all(|run| steps(run).len() == 2));
    // The agent was resumed by the event of the tool's own type.
    assert_eq!(events(dir.path(), "content_ready").len(), 2);
    assert_eq!(events(dir.path(), "agentic.tool_result"), Vec::<Value>::new());
}

#[test]
fn tool_that_fails_resumes_its_agent_with_an_error_result() {
    for agent in [PAYLOAD_ALONE, ""] {
        let dir = tempfile::tempdir().unwrap();
        let broken = "#!/usr/bin/env python3\nraise SystemExit(78)\n";
        plugin(dir.path(), "broken", broken);
        let tools = "jina-reader: { uses: broken }";
        let _daemon = daemon_with(dir.path(), &seed(dir.path()), agent, tools);
        begin(dir.path(), r#"{"goal": "a critique", "run_id": "R1"}"#);
        let escalated = the_event(dir.path(), "agent.escalated")["payload"].clone();
        let told = &escalated["result"];
        assert_eq!((&escalated["reason"], &told["status"]), (&json!("tool_error"), &json!("error")));
        assert_eq!(
            (&told["run_id"], &told["step"], &told["tool"], &told["result"]),
            (&json!("R1"), &json!(1), &json!("fetch"), &Value::Null)
        );
        assert_eq!(told["error"]["code"], "exit_code_78", "{told}");
        let run = over(dir.path(), 1).remove(0);
        assert_eq!(steps(&run), ["fetch", "on_error/resume"]);
    }
}

/// Writes a line at every turn into a file that it finds again, asks twice for a tool, and tells at the end what it has found.
const WRITER: &str = r#"#!/usr/bin/env python3
import json, pathlib, sys
request = json.load(sys.stdin)
place = pathlib.Path(request["workspace_dir"])
with (place / "trace.jsonl").open("a") as trace:
    trace.write("turn\n")
turns = (place / "trace.jsonl").read_text().count("turn")
step = {"run_id": "R1", "step": turns, "tool": "writer-tool"}
ask = {"type": "agentic.tool_request.tool", "payload": step}
found = sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())
done = {"type": "agent.completed", "payload": {"run_id": "R1", "turns": turns, "found": found}}
json.dump({"status": "ok", "result": "turn", "events": [ask if turns < 3 else done]}, sys.stdout)
"#;

/// Leaves a file for each time that it was asked.
const WRITERS_TOOL: &str = r#"#!/usr/bin/env python3
import json, pathlib, sys
request = json.load(sys.stdin)
artifacts = pathlib.Path(request["workspace_dir"]) / "artifacts"
artifacts.mkdir(exist_ok=True)
(artifacts / f"page-{request['event']['payload']['step']}.html").write_text("a page")
json.dump({"status": "ok", "result": "left"}, sys.stdout)
"#;

#[test]
fn files_of_an_agent_span_the_turns_of_its_run() {
    let dir = tempfile::tempdir().unwrap();
    plugin(dir.path(), "writer", WRITER);
    plugin(dir.path(), "writer-tool", WRITERS_TOOL);
    let routes = dir.path().join("routes.yaml");
    let pipelines = "
pipelines:
  - { name: start, on: agentic.start, steps: [{ id: first, uses: writer }] }
  - { name: ask, on: agentic.tool_request.tool, steps: [{ id: act, uses: writer-tool }, { id: resume, uses: writer }] }
";
    std::fs::write(&routes, pipelines).unwrap();
    let _daemon = daemon(dir.path(), routes.to_str().unwrap(), "");
    for round in 1..=2 {
        // A second run begins with nothing of the first.
        expect(0, &longhaul(dir.path(), &["events", "publish", "agentic.start"]));
        let done = within("the agent is done", || {
            Some(events(dir.path(), "agent.completed")).filter(|events| events.len() == round)
        });
        let told = &done[0]["payload"];
        assert_eq!(told["turns"], 3, "{told}");
        assert_eq!(told["found"], json!(["artifacts/page-1.html", "artifacts/page-2.html", "trace.jsonl"]));
    }
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

/// An agent that is its own tool, and writes down which job it does when each of its processes begins and ends.
const SOLO: &str = r#"#!/usr/bin/env python3
import json, pathlib, sys, time
request = json.load(sys.stdin)
log = (pathlib.Path(__file__).parent / "log").open("a", buffering=1)
log.write(f"begin {request['job_id']}\n")
time.sleep(0.05)
context = request["context"]
if context["ductile_step_id"] == "act":
    events = []
else:
    step = context.get("step", 0) + 1
    ask = {"type": "agentic.tool_request.solo", "payload": {"run_id": "R1", "step": step, "tool": "solo"}}
    done = {"type": "agent.completed", "payload": {"run_id": "R1", "steps_taken": step - 1}}
    events = [ask if step <= 2 else done]
log.write(f"end {request['job_id']}\n")
json.dump({"status": "ok", "result": "turn", "events": events}, sys.stdout)
"#;

// conforms: D1 D2
#[test]
fn agent_and_its_tools_take_turns_where_one_job_runs_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    plugin(dir.path(), "solo", SOLO);
    let routes = dir.path().join("routes.yaml");
    let pipelines = "
pipelines:
  - { name: start, on: agentic.start, steps: [{ id: first, uses: solo }] }
  - { name: ask, on: agentic.tool_request.solo, steps: [{ id: act, uses: solo }, { id: resume, uses: solo }] }
";
    std::fs::write(&routes, pipelines).unwrap();
    let _daemon = daemon(dir.path(), routes.to_str().unwrap(), "");
    // Two agents: where jobs could run beside each other, these would.
    for _ in 0..2 {
        expect(0, &longhaul(dir.path(), &["events", "publish", "agentic.start"]));
    }
    let done = within("both agents are done", || {
        Some(events(dir.path(), "agent.completed")).filter(|events| events.len() == 2)
    });
    assert!(done.iter().all(|event| event["payload"]["steps_taken"] == 2), "{done:?}");
    let log = std::fs::read_to_string(dir.path().join("plugins/solo/log")).unwrap();
    let jobs = json_of(dir.path(), &["jobs", "list"])["work"].clone();
    let text = |job: &Value, field: &str| job[field].as_str().expect("it has it").to_owned();
    let mut arrived: Vec<(String, String)> =
        jobs.as_array().unwrap().iter().map(|job| (text(job, "created_at"), text(job, "job_id"))).collect();
    arrived.sort();
    assert_eq!(arrived.len(), 10, "{arrived:?}");
    let expected: Vec<String> =
        arrived.iter().flat_map(|(_, id)| [format!("begin {id}"), format!("end {id}")]).collect();
    let ran: Vec<&str> = log.lines().collect();
    assert_eq!(ran, expected, "both loops in one lane, one job after the other, in order of arrival");
}
