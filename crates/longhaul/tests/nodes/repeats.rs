//! What is said twice, to one node or to several at once, is done once; and no node needs to be told anything for it to be right.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Database, Node, node_at, within};
use crate::given::{create, ended, expect, longhaul, show};
use crate::proxy::Proxy;

const NODES: usize = 4;
/// Writes that race, each on all nodes.
const RACES: usize = 12;
/// The ends of a job.
const ENDS: [&str; 5] =
    ["job.completed/1", "job.failed/1", "job.cancelled/1", "job.expired/1", "job.became_unavailable/1"];

/// The same order to every node at the same time; what each of them says.
fn at_once(nodes: &[Node], order: impl Fn(usize, &Path) -> Output + Sync) -> Vec<Output> {
    let start = std::sync::Barrier::new(nodes.len());
    std::thread::scope(|scope| {
        let (start, order) = (&start, &order);
        let asking = |(place, node): (usize, &Node)| {
            let dir = node.dir().to_owned();
            scope.spawn(move || {
                start.wait();
                order(place, &dir)
            })
        };
        let asked: Vec<_> = nodes.iter().enumerate().map(asking).collect();
        asked.into_iter().map(|asked| asked.join().expect("it is answered")).collect()
    })
}

#[test]
fn create_that_several_nodes_are_sent_at_once_and_again_later_makes_one_job() {
    let database = Database::new();
    let nodes: Vec<Node> = (0..NODES).map(|_| database.node()).collect();
    let token = nodes[0].shared_token();
    let send = |key: &str, dir: &Path| {
        let arguments = ["jobs", "create", "once", "--executor", "noop", "--idempotency-key", key];
        longhaul(dir, &[&arguments[..], &["--token", &token, "--json"]].concat())
    };
    let id_of = |answered: &Output| {
        let status: Value = serde_json::from_str(&expect(0, answered)).expect("it is JSON");
        status["job_id"].as_str().expect("it has an id").to_owned()
    };
    let mut ids = Vec::new();
    for race in 0..RACES {
        let answers = at_once(&nodes, |_, dir| send(&format!("key-{race}"), dir));
        let first = id_of(&answers[0]);
        assert!(answers.iter().all(|answered| id_of(answered) == first), "{answers:?}");
        ids.push(first);
    }
    for id in &ids {
        ended(nodes[0].dir(), id, "completed");
    }
    let before = database.facts();
    for (race, id) in ids.iter().enumerate() {
        for node in &nodes {
            assert_eq!(id_of(&send(&format!("key-{race}"), node.dir())), *id);
        }
    }
    assert_eq!(database.facts(), before, "what was done before is not done again, not even in part");
    let created = before.iter().filter(|fact| fact["kind"] == "job.created/1").count();
    assert_eq!(created, RACES, "each key is one job");
}

// conforms: A35
#[test]
fn job_that_all_nodes_are_told_to_run_at_once_runs_once_and_never_again_after_its_end() {
    let database = Database::new();
    let nodes: Vec<Node> = (0..NODES).map(|_| database.node_with(&["--no-dispatch"])).collect();
    let effects = tempfile::NamedTempFile::new().expect("there is room");
    let input = json!({ "argv": ["sh", "-c", "echo run >> $0", effects.path()] }).to_string();
    for race in 1..=RACES {
        let id = create(nodes[0].dir(), &["once", "--executor", "command", "--input", &input]);
        at_once(&nodes, |_, dir| longhaul(dir, &["jobs", "run", &id]));
        ended(nodes[0].dir(), &id, "completed");
        let before = database.facts();
        let asked_again = at_once(&nodes, |_, dir| longhaul(dir, &["jobs", "run", &id]));
        assert!(asked_again.iter().all(|asked| !asked.status.success()), "{asked_again:?}");
        assert_eq!(database.facts(), before, "it has ended");
        let runs = std::fs::read_to_string(effects.path()).expect("it is there").lines().count();
        assert_eq!(runs, race, "it was run once");
    }
    database.verify();
}

#[test]
fn job_that_is_ended_on_several_nodes_at_once_has_one_end() {
    let database = Database::new();
    let nodes: Vec<Node> = (0..NODES).map(|_| database.node()).collect();
    for _ in 0..RACES {
        let id = create(nodes[0].dir(), &["by hand"]);
        let orders: [&[&str]; NODES] = [
            &["jobs", "update", &id, "--state", "completed", "--result-summary", "one"],
            &["jobs", "update", &id, "--state", "failed", "--reason", "broken"],
            &["jobs", "cancel", &id],
            &["jobs", "update", &id, "--state", "completed", "--result-summary", "other"],
        ];
        at_once(&nodes, |place, dir| longhaul(dir, orders[place]));
        let is_end = |fact: &Value| {
            fact["stream"] == id.as_str() && fact["kind"].as_str().is_some_and(|kind| ENDS.contains(&kind))
        };
        let told: Vec<Value> = nodes.iter().map(|node| show(node.dir(), &id)["state"].clone()).collect();
        assert!(told.iter().all(|state| *state == told[0]), "{told:?}");
        // Once more, when it is over: nobody has a second word.
        at_once(&nodes, |place, dir| longhaul(dir, orders[place]));
        let ends: Vec<Value> = database.facts().into_iter().filter(is_end).collect();
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert_eq!(show(nodes[0].dir(), &id)["state"], told[0]);
    }
    database.verify();
}

/// Longer than from one heartbeat to the next: the only thing that a node does by itself that hears nothing of the others.
const BY_THE_HEARTBEAT: Duration = Duration::from_secs(25);

/// Hints are lost without exception, and what was due or wanted is found all the same.
// conforms: A39
#[test]
fn nodes_that_never_hear_of_each_other_end_all_work_and_do_nothing_twice() {
    let database = Database::new();
    let proxies: Vec<Proxy> = (0..2).map(|_| Proxy::without_hints_before(&database.schema.address)).collect();
    let deaf: Vec<Node> = proxies.iter().map(|proxy| node_at(&proxy.address, &[])).collect();
    let make = |node: &Node, arguments: &[&str]| -> Vec<String> {
        let noop = |_| create(node.dir(), &[&["found", "--executor", "noop"], arguments].concat());
        (0..RACES).map(noop).collect()
    };
    let done = |ids: &[String]| {
        for id in ids {
            within(BY_THE_HEARTBEAT, "it is done", || show(deaf[0].dir(), id)["state"] == "completed");
        }
    };
    // Whoever made them is gone when they are due, and nobody else has ever done anything: only the heartbeat tells of them.
    let gone = database.node_with(&["--no-dispatch"]);
    let due = make(&gone, &["--due-at", "in 3s"]);
    gone.daemon.kill();
    done(&due);
    let speaks = database.node_with(&["--no-dispatch"]);
    done(&make(&speaks, &[]));
    let slow = create(speaks.dir(), &["slow", "--executor", "slow", "--input", r#"{"seconds":120}"#]);
    within(BY_THE_HEARTBEAT, "it runs", || show(speaks.dir(), &slow)["state"] == "running");
    expect(0, &longhaul(speaks.dir(), &["jobs", "cancel", &slow]));
    // A cancel that is not heard is settled without the executor after half a minute: that would be too late here.
    within(BY_THE_HEARTBEAT, "the cancel has arrived", || show(speaks.dir(), &slow)["state"] == "cancelled");
    for (id, history) in database.histories() {
        let count = |kind: &str| history.iter().filter(|fact| *fact == kind).count();
        assert_eq!(count("job.dispatched/1"), 1, "{id}: {history:?}");
    }
    for proxy in &proxies {
        assert!(proxy.lost_hints() > 0, "there was nothing to miss");
    }
    database.verify();
}
