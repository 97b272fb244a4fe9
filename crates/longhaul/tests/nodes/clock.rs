//! The server's clock is set under nodes of the real binary: all tell of it, nothing is taken, and a restart in between believes nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Database, Node, within};
use crate::given::{create, ended, expect, json as json_of, longhaul, show};

const HOUR: i64 = 3_600;
/// Until nodes that disagree with the server's clock have corrected it: two heartbeats, and what a busy machine adds.
const CORRECTED_WITHIN: Duration = Duration::from_mins(1);

/// The status and the answer, to the administrator.
fn send(node: &Node, method: &str, path: &str, body: &Value) -> (u16, String) {
    let token = std::fs::read_to_string(node.dir().join("admin.token")).expect("the daemon has made it");
    let request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("{}{path}", node.daemon.url))
        .header("authorization", format!("Bearer {}", token.trim()))
        .header("content-type", "application/json");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.run(request.body(body).expect("it is a request")).expect("the daemon answers");
    (answer.status().as_u16(), answer.body_mut().read_to_string().expect("it is text"))
}

fn step_seconds(node: &Node) -> i64 {
    json_of(node.dir(), &["clock"])["step_seconds"].as_i64().expect("it is a number")
}

fn is_an_hour(seconds: i64) -> bool {
    (seconds - HOUR).abs() <= 5
}

/// A job that is due in half an hour: whoever believes in a step of an hour begins it.
fn in_half_an_hour(node: &Node) -> String {
    let due = (jiff::Timestamp::now() + jiff::SignedDuration::from_mins(30)).to_string();
    create(node.dir(), &["later", "--executor", "noop", "--due-at", &due])
}

/// A job in the hands of a worker, and its attempt.
struct Pulled {
    id: String,
    attempt: Value,
}

impl Pulled {
    fn by_joan(node: &Node) -> Self {
        expect(0, &longhaul(node.dir(), &["peers", "register", "--id", "joan"]));
        let id = create(node.dir(), &["by hand", "--assigned-peer", "joan"]);
        let (_, handed) = send(node, "POST", "/jobs/next", &json!({ "peer_id": "joan", "wait_seconds": 5 }));
        let handed: Value = serde_json::from_str(&handed).expect("it is JSON");
        assert_eq!(handed["job"]["job_id"], id.as_str());
        Self { id, attempt: handed["job"]["attempt_id"].clone() }
    }

    #[track_caller]
    fn report(&self, node: &Node, verb: &str) {
        let path = format!("/jobs/{}/{verb}", self.id);
        let (status, body) = send(node, "POST", &path, &json!({ "attempt_id": self.attempt }));
        assert_eq!(status, 200, "{verb}: {body}");
    }
}

#[test]
fn step_of_the_servers_clock_is_told_and_takes_nothing() {
    let (database, clock) = Database::with_clock();
    let nodes = [database.node(), database.node()];
    let pulled = Pulled::by_joan(&nodes[0]);
    let later = in_half_an_hour(&nodes[1]);

    database.set(&clock, HOUR);
    let tells = |node: &Node| {
        pulled.report(&nodes[0], "heartbeat");
        is_an_hour(step_seconds(node))
    };
    for node in &nodes {
        within(CORRECTED_WITHIN, "the step is seen", || tells(node));
        let (status, ready) = send(node, "GET", "/readyz", &Value::Null);
        assert!(status == 200 && ready.contains("ahead of the store's time"), "{ready}");
        let (_, metrics) = send(node, "GET", "/metrics", &Value::Null);
        let gauge = metrics.lines().find_map(|line| line.strip_prefix("longhaul_clock_step_seconds "));
        assert!(gauge.is_some_and(|seconds| seconds.parse().is_ok_and(is_an_hour)), "{gauge:?}");
        let why = expect(0, &longhaul(node.dir(), &["jobs", "why", &later, "--json"]));
        assert!(why.contains("clock_step"), "{why}");
    }
    // Each has written it down, for the other to read, and then they have corrected it.
    let listed = |node: &Node| {
        let list = json_of(node.dir(), &["nodes"]);
        let nodes = list["nodes"].as_array().expect("it is a list").clone();
        nodes.iter().filter(|node| node["clock_step_seconds"].as_i64().is_some_and(is_an_hour)).count()
    };
    let correction = "SELECT value::text FROM meta WHERE name = 'clock_correction' AND value <> 0";
    for node in &nodes {
        within(CORRECTED_WITHIN, "each node is listed with the step", || tells(node) && listed(node) == 2);
    }
    within(CORRECTED_WITHIN, "it is corrected", || tells(&nodes[0]) && database.answer(correction).is_some());
    assert!(nodes.iter().all(tells), "it is told until it is adopted");

    database.set(&clock, -HOUR);
    for node in &nodes {
        within(CORRECTED_WITHIN, "the clock is right again", || step_seconds(node) == 0);
    }
    pulled.report(&nodes[0], "heartbeat");
    pulled.report(&nodes[0], "complete");
    let done = show(nodes[1].dir(), &pulled.id);
    let (state, attempts) = (&done["state"], &done["runner"]["attempt_count"]);
    assert_eq!((state, attempts), (&json!("completed"), &json!(1)), "{done}");
    assert_eq!(show(nodes[1].dir(), &later)["state"], "queued");

    // An operator says that the server's clock is right.
    database.set(&clock, HOUR);
    let told = expect(0, &longhaul(nodes[1].dir(), &["clock", "set-right", "--yes"]));
    assert!(told.contains("store time jumped by 36") || told.contains("store time jumped by 359"), "{told}");
    ended(nodes[0].dir(), &later, "completed");
    let shown = json_of(nodes[1].dir(), &["clock"]);
    assert_eq!((&shown["step_seconds"], &shown["steps_adopted"]), (&json!(0), &json!(1)), "{shown}");
    assert_ne!(shown["steps"][0]["adopted_by"], "clock");
    database.verify();
}

#[test]
fn node_that_is_restarted_within_a_glitch_starts_nothing() {
    let (database, clock) = Database::with_clock();
    let node = database.node();
    let pulled = Pulled::by_joan(&node);
    let later = in_half_an_hour(&node);
    let kept = "SELECT name FROM meta WHERE name >= 'clock_anchor_' AND name < 'clock_anchor`'";
    within(CORRECTED_WITHIN, "the first heartbeat", || database.answer(kept).is_some());

    database.set(&clock, HOUR);
    node.daemon.kill();
    let node = database.node_in(node.dir);
    assert!(is_an_hour(step_seconds(&node)), "{}", node.daemon.log());
    pulled.report(&node, "heartbeat");
    database.set(&clock, -HOUR);
    within(CORRECTED_WITHIN, "the clock is right again", || step_seconds(&node) == 0);
    pulled.report(&node, "complete");
    assert_eq!(show(node.dir(), &later)["state"], "queued");
    assert_eq!(json_of(node.dir(), &["clock"])["steps_adopted"], 0);
    // What is of this machine stays out of a backup.
    let elsewhere = tempfile::tempdir().expect("there is room");
    let backup = elsewhere.path().join("of.backup");
    let arguments = ["backup", backup.to_str().expect("it is text"), "--database", &database.schema.address];
    expect(0, &longhaul(node.dir(), &arguments));
    let backup = rusqlite::Connection::open(&backup).expect("it is a database");
    let carried: i64 = backup
        .query_row("SELECT count(*) FROM meta WHERE name LIKE 'clock_anchor%'", [], |row| row.get(0))
        .expect("it has the table");
    assert_eq!(carried, 0);
    database.verify();
}
