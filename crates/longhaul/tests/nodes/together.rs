//! Nodes side by side: what one accepts another does, what one is told another hears, and nothing is done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::cluster::{Database, Node, knob, time_of, within};
use crate::given::{create, ended, expect, json, longhaul, show, until};

/// Longer than a hint takes, shorter than a heartbeat: who relies on the net alone is found out.
const PROMPTLY: Duration = Duration::from_secs(4);

/// The first fact of a job that is of this kind.
#[track_caller]
fn fact<'a>(facts: &'a [Value], job: &str, kind: &str) -> &'a Value {
    let is_it = |fact: &&Value| fact["stream"] == job && fact["kind"] == kind;
    facts.iter().find(is_it).unwrap_or_else(|| panic!("{job} has no {kind}"))
}

/// It happened soon enough, by the clock of the database: how long it takes to look does not count.
#[track_caller]
fn check_prompt(since: jiff::Timestamp, fact: &Value) {
    // Each node follows that clock by itself, so that what comes at once may seem to come before.
    let took = Duration::try_from(time_of(fact).duration_since(since)).unwrap_or_default();
    assert!(took < PROMPTLY, "it took {took:?}: {fact}");
}

#[test]
fn job_that_is_created_on_a_node_that_drains_is_run_by_another() {
    let database = Database::new();
    let (first, second) = (database.node(), database.node());
    let (one, other) = (first.id(), second.id());
    expect(0, &longhaul(first.dir(), &["nodes", "drain", &one]));
    let ids: Vec<String> =
        (0..20).map(|_| create(first.dir(), &["elsewhere", "--executor", "noop"])).collect();
    for id in &ids {
        ended(second.dir(), id, "completed");
    }
    let facts = database.facts();
    for id in &ids {
        let begun = fact(&facts, id, "job.dispatched/1");
        assert_eq!(begun["payload"]["dispatched"]["owner"], other.as_str(), "{begun}");
        check_prompt(time_of(fact(&facts, id, "job.created/1")), begun);
    }
    // The order is heard by the other node too, and takes effect there.
    expect(0, &longhaul(first.dir(), &["nodes", "drain", &other]));
    within(PROMPTLY, "the other has heard it", || second.daemon.log().contains("Drains"));
    let waiting = create(second.dir(), &["waits", "--executor", "noop"]);
    assert_eq!(show(second.dir(), &waiting)["state"], "queued");
    expect(0, &longhaul(second.dir(), &["nodes", "undrain", &one]));
    let told_at = database.now();
    ended(second.dir(), &waiting, "completed");
    let facts = database.facts();
    let begun = fact(&facts, &waiting, "job.dispatched/1");
    assert_eq!(begun["payload"]["dispatched"]["owner"], one.as_str(), "{begun}");
    check_prompt(told_at, begun);
}

#[test]
fn cancel_on_one_node_reaches_the_attempt_on_another_and_who_waits_there_is_told() {
    let database = Database::new();
    let (runs, asked) = (database.node(), database.node_with(&["--no-dispatch"]));
    let id = create(asked.dir(), &["slow", "--executor", "slow", "--input", r#"{"seconds":120}"#]);
    // Followed on a node that does not run it: every word of it comes from the other.
    until(asked.dir(), &id, "running");
    expect(0, &longhaul(asked.dir(), &["jobs", "cancel", &id]));
    ended(asked.dir(), &id, "cancelled");
    assert_eq!(show(runs.dir(), &id)["state"], "cancelled");
    let facts = database.facts();
    let cancelled = |fact: &&Value| fact["stream"] == id.as_str() && fact["kind"] == "job.cancelled/1";
    assert_eq!(facts.iter().filter(cancelled).count(), 1, "{facts:?}");
    let requested_at = time_of(fact(&facts, &id, "job.cancel_requested/1"));
    check_prompt(requested_at, fact(&facts, &id, "job.cancelled/1"));
}

/// The first node does not know the executor, and the second takes nothing for a while: the job waits, and does not fail.
#[test]
fn job_that_only_another_node_can_do_is_left_to_it() {
    let database = Database::new();
    let first = database.node();
    let second = database.node_knowing("executors: [{ name: special, kind: process, argv: [\"true\"] }]\n");
    expect(0, &longhaul(first.dir(), &["nodes", "drain", &second.id()]));
    within(PROMPTLY, "the other has heard it", || second.daemon.log().contains("Drains"));
    let id = create(second.dir(), &["special", "--executor", "special"]);
    // Longer than an executor may take to come.
    std::thread::sleep(Duration::from_secs(13));
    assert_eq!(show(first.dir(), &id)["state"], "queued");
    expect(0, &longhaul(first.dir(), &["nodes", "undrain", &second.id()]));
    ended(first.dir(), &id, "completed");
}

// conforms: R107
#[test]
fn four_nodes_never_run_a_job_twice() {
    let database = Database::new();
    let nodes: Vec<Node> = (0..4).map(|_| database.node()).collect();
    let each = knob("LONGHAUL_NODE_JOBS", 40);
    let ids: Vec<String> = std::thread::scope(|scope| {
        let creating = |node: &Node| {
            let dir = node.dir().to_owned();
            scope.spawn(move || {
                (0..each).map(|_| create(&dir, &["once", "--executor", "noop"])).collect::<Vec<_>>()
            })
        };
        let creators: Vec<_> = nodes.iter().map(creating).collect();
        creators.into_iter().flat_map(|creator| creator.join().expect("all are created")).collect()
    });
    for id in &ids {
        ended(nodes[0].dir(), id, "completed");
    }
    let mut begun: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for fact in database.facts() {
        if fact["kind"] == "job.dispatched/1" {
            begun
                .entry(fact["stream"].to_string())
                .or_default()
                .push(fact["payload"]["dispatched"]["owner"].clone());
        }
    }
    assert_eq!(begun.len(), ids.len());
    assert!(begun.values().all(|owners| owners.len() == 1), "{begun:?}");
    let owners: BTreeSet<String> = begun.values().flatten().map(Value::to_string).collect();
    assert!(owners.len() > 1, "one node did everything: {owners:?}");
    database.verify();
}

#[test]
fn follower_of_the_ledger_misses_no_fact_while_four_nodes_commit() {
    let database = Database::new();
    let nodes: Vec<Node> = (0..4).map(|_| database.node()).collect();
    let each = knob("LONGHAUL_NODE_JOBS", 40);
    let mut stream = follow(&nodes[0]);
    let created: Vec<String> = std::thread::scope(|scope| {
        let creating = |node: &Node| {
            let dir = node.dir().to_owned();
            scope.spawn(move || {
                (0..each).map(|_| create(&dir, &["told", "--executor", "noop"])).collect::<Vec<_>>()
            })
        };
        let creators: Vec<_> = nodes.iter().map(creating).collect();
        creators.into_iter().flat_map(|creator| creator.join().expect("all are created")).collect()
    });
    for id in &created {
        ended(nodes[1].dir(), id, "completed");
    }
    let ledger: Vec<u64> =
        database.facts().iter().map(|fact| fact["position"].as_u64().expect("it has a place")).collect();
    let mut followed = Vec::new();
    while followed.last() != ledger.last() {
        let mut line = String::new();
        stream.read_line(&mut line).expect("the stream goes on");
        if let Some(position) = line.strip_prefix("id: ") {
            followed.push(position.trim().parse::<u64>().expect("it is a place"));
        }
    }
    assert_eq!(followed, ledger);
}

/// The ledger as one node streams it, from its beginning.
fn follow(node: &Node) -> BufReader<TcpStream> {
    let address = node.daemon.url.strip_prefix("http://").expect("it is HTTP");
    let token = std::fs::read_to_string(node.dir().join("admin.token")).expect("it is there");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it is a time");
    let token = token.trim();
    write!(stream, "GET /facts/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n")
        .expect("it is taken");
    BufReader::new(stream)
}

#[test]
fn token_that_is_revoked_on_one_node_is_refused_by_every_other_within_a_second() {
    let database = Database::new();
    let (first, second) = (database.node(), database.node());
    let made = json(first.dir(), &["token", "create", "--name", "reader", "--role", "viewer"]);
    let (id, secret) = (made["token"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let list = || longhaul(second.dir(), &["jobs", "list", "--token", secret]);
    expect(0, &list());
    expect(0, &longhaul(first.dir(), &["token", "revoke", id]));
    std::thread::sleep(Duration::from_millis(900));
    expect(1, &list());
}
