//! Events on several nodes, one of which dies in the middle: each event is settled once, each key starts one run of each pipeline, and every
//! step has one job.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::cluster::{Database, LEASE, Node, within};
use crate::given::longhaul;

/// Things that happen, each told to both nodes.
const TIDES: usize = 8;
/// Times that one event is sent before the test gives up.
const MAX_SENDS: usize = 40;

const PIPELINES: &str = "
pipelines:
- name: alert
  on: tide
  steps: [{ id: look, uses: noop }, { id: wait, uses: slow, with: { seconds: 1 } }, { id: tell, uses: noop }]
- { name: keep, on: tide, steps: [{ split: [{ id: store, uses: noop }, { id: index, uses: noop }] }, { id: done, uses: noop }] }
";
/// The jobs of one thing that happens.
const JOBS: usize = 3 + 3;

/// Tells a node of a tide, and if it is gone another one, under one key: the id of the event.
fn publish(dirs: &[&Path], token: &str, by: usize, tide: usize) -> String {
    let (dedupe, key, payload) =
        (format!("tide-{tide}"), format!("{by}-{tide}"), format!("{{\"n\":{tide}}}"));
    let named = ["--dedupe-key", &dedupe, "--idempotency-key", &key, "--payload", &payload];
    for send in 0..MAX_SENDS {
        let dir = dirs[(by + send) % dirs.len()];
        let told = [&["events", "publish", "tide", "--token", token, "--json"][..], &named].concat();
        let answered = longhaul(dir, &told);
        if answered.status.success() {
            let answer: Value = serde_json::from_slice(&answered.stdout).expect("it is JSON");
            return answer["event_id"].as_str().expect("it has an id").to_owned();
        }
    }
    panic!("tide {tide} was never taken from {by}");
}

// conforms: A38
#[test]
fn events_on_two_nodes_are_settled_once_and_start_one_run_for_each_key_although_a_node_is_killed() {
    let database = Database::new();
    let files = tempfile::tempdir().expect("there is room");
    std::fs::write(files.path().join("tides.yaml"), PIPELINES).expect("it can be written");
    let config = format!("pipelines: ['{}']\n", files.path().join("tides.yaml").display());
    let (dies, stays) = (database.node_knowing(&config), database.node_knowing(&config));
    let token = stays.shared_token();
    let Node { dir, daemon } = dies;
    let dirs = [dir.path(), stays.dir()];
    let events: BTreeSet<String> = std::thread::scope(|scope| {
        let tell = |by: usize| {
            let (dirs, token) = (&dirs, &token);
            move || (0..TIDES).map(|tide| publish(dirs, token, by, tide)).collect::<Vec<_>>()
        };
        let tellers = [scope.spawn(tell(0)), scope.spawn(tell(1))];
        // In the middle: some have begun, none can be over.
        within(LEASE, "work has begun", || started(&database.facts()) > 0);
        daemon.kill();
        tellers.into_iter().flat_map(|teller| teller.join().expect("all are taken")).collect()
    });
    assert_eq!(events.len(), 2 * TIDES, "each key is one event");
    let jobs = TIDES * JOBS;
    // An event that the dead node had taken is settled by the other one when the lease is over, also if it is a repeat that starts nothing.
    within(LEASE * 3, "all is over", || {
        let facts = database.facts();
        completed(&database) >= jobs && open_runs(&facts) == 0 && settled(&facts).len() >= events.len()
    });
    let facts = database.facts();
    let of = |kind: &str| facts.iter().filter(|fact| fact["kind"] == kind).collect::<Vec<_>>();
    let settled = settled(&facts);
    assert_eq!(settled.len(), events.len(), "each is settled");
    assert_eq!(settled.iter().copied().collect::<BTreeSet<_>>(), events.iter().map(String::as_str).collect());
    assert_eq!(of("run.started/1").len(), 2 * TIDES, "one run of each pipeline for each key");
    let histories = database.histories();
    assert_eq!(histories.len(), jobs, "one job for each step");
    for (id, history) in &histories {
        let ends = history.iter().filter(|kind| *kind == "job.completed/1").count();
        assert_eq!(ends, 1, "{id}: {history:?}");
    }
    let mut steps: BTreeMap<String, usize> = BTreeMap::new();
    for fact in of("run.step_started/1") {
        *steps.entry(format!("{}", fact["stream"])).or_default() += 1;
    }
    assert_eq!(steps.values().copied().collect::<BTreeSet<_>>(), [3].into(), "{steps:?}");
    database.verify();
}

fn started(facts: &[Value]) -> usize {
    facts.iter().filter(|fact| fact["kind"] == "run.started/1").count()
}

fn open_runs(facts: &[Value]) -> usize {
    started(facts) - facts.iter().filter(|fact| fact["kind"] == "run.ended/1").count()
}

/// The events that were settled, as often as they were.
fn settled(facts: &[Value]) -> Vec<&str> {
    let settled = facts.iter().filter(|fact| fact["kind"] == "event.settled/1");
    settled.map(|fact| fact["stream"].as_str().expect("a stream")).collect()
}

fn completed(database: &Database) -> usize {
    let over = |history: &Vec<String>| history.iter().any(|kind| kind == "job.completed/1");
    database.histories().values().filter(|history| over(history)).count()
}
