//! Nodes are killed again and again under load: all that was accepted ends, once, and nothing that has ended is run again.
//!
//! Most come back where they were, and end the leases of the one before by themselves; each tenth is lost with its machine, and
//! whatever it held waits for its lease. From each kill to each take-over passes no more than a lease and two seconds, by the clock of
//! the database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::{Database, LEASE, Node, knob, time_of, within};
use crate::given::longhaul;

const NODES: usize = 3;
/// Whoever asks for work, at the same time.
const CLIENTS: usize = 2;
/// From one kill to the next.
const EVERY: Duration = Duration::from_secs(2);
/// Of so many nodes that are killed one is never seen again: the third of them, so that few are enough.
const ONE_OF_THEM_IS_LOST: usize = 10;
const THE_ONE: usize = 3;
/// Times that one create is sent before the test gives up: far more than there are nodes.
const MAX_SENDS: usize = 200;

/// From the kill of a node to the moment at which its work may be taken by another.
const TAKEN_OVER_WITHIN: Duration = LEASE.saturating_add(Duration::from_secs(2));
/// What is held for so long is no job that is over at once.
const HELD: Duration = Duration::from_millis(50);

/// Attempts that each job is given: more than can be killed under one.
const ENOUGH: &str = "20";

/// A node that was killed.
struct Kill {
    node: String,
    at: jiff::Timestamp,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    ComesBack,
    Lost,
}

/// What is asked for while nodes die.
struct Load<'a> {
    token: &'a str,
    effects: &'a Path,
    /// Where nodes may be found.
    dirs: Mutex<Vec<PathBuf>>,
    over: AtomicBool,
    keys: AtomicUsize,
    /// Creates that were not answered and were sent again under their key.
    repeated: AtomicUsize,
}

// conforms: A32 A38
#[test]
fn nodes_that_are_killed_every_few_seconds_lose_no_job_and_run_no_ended_one() {
    let database = Database::new();
    let mut nodes: Vec<Node> = (0..NODES).map(|_| database.node()).collect();
    let (kills, token) = (knob("LONGHAUL_NODE_KILLS", 7), nodes[0].shared_token());
    let effects = tempfile::NamedTempFile::new().expect("there is room");
    let load = Load {
        token: &token,
        effects: effects.path(),
        dirs: Mutex::new(nodes.iter().map(|node| node.dir().to_owned()).collect()),
        over: AtomicBool::new(false),
        keys: AtomicUsize::new(0),
        repeated: AtomicUsize::new(0),
    };
    let mut killed = Vec::new();
    let mut empty_handed = false;
    let accepted: BTreeSet<String> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| load.ask_until_over())).collect();
        for kill in 1..=kills {
            std::thread::sleep(EVERY);
            let slot = kill % NODES;
            // One that had nothing left when it died proves nothing: the next is lost too.
            let is_lost = kill % ONE_OF_THEM_IS_LOST == THE_ONE || empty_handed;
            let fate = if is_lost { Fate::Lost } else { Fate::ComesBack };
            let node = nodes[slot].id();
            if fate == Fate::Lost {
                within(LEASE, "it has work in its hands", || holds_work(&database, &node));
            }
            let Node { dir, daemon } = nodes.remove(slot);
            let at = database.now();
            daemon.kill();
            empty_handed = fate == Fate::Lost && held_by(&database, &node).is_none();
            killed.push(Kill { node, at, fate });
            let next = match fate {
                Fate::Lost => database.node(),
                Fate::ComesBack => database.node_in(dir),
            };
            load.dirs.lock().unwrap_or_else(PoisonError::into_inner)[slot] = next.dir().to_owned();
            nodes.insert(slot, next);
        }
        load.over.store(true, Ordering::SeqCst);
        clients.into_iter().flat_map(|client| client.join().expect("all is accepted")).collect()
    });
    assert_eq!(
        accepted.len(),
        load.keys.load(Ordering::SeqCst),
        "each key is one job, and each job has one key"
    );
    let ended = |history: &[String]| history.iter().any(|kind| kind == "job.completed/1");
    let mut open = Vec::new();
    let (calm, limit) = (Instant::now(), LEASE * 2);
    while calm.elapsed() < limit {
        open = database.histories().into_iter().filter(|(_, history)| !ended(history)).collect();
        if open.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(open.is_empty(), "what was accepted has not ended within {limit:?}: {open:?}");
    let took = calm.elapsed();
    let histories = database.histories();
    assert_eq!(histories.keys().cloned().collect::<BTreeSet<_>>(), accepted, "nothing else was made");
    let mut taken_over = 0;
    for (id, history) in &histories {
        let (last, before) = history.split_last().expect("it has a history");
        assert!(last == "job.completed/1" && !ended(before), "{id} goes on after its end: {history:?}");
        let count = |kind: &str| history.iter().filter(|fact| *fact == kind).count();
        assert_eq!(count("job.dispatched/1"), 1 + count("job.requeued/1"), "{id}: {history:?}");
        taken_over += count("job.requeued/1");
    }
    let run = load.check_effects(&database);
    println!(
        "{kills} kills, {} jobs, {run} attempts with an effect, {taken_over} taken over, {} creates repeated, calm after {took:?}",
        accepted.len(),
        load.repeated.load(Ordering::SeqCst)
    );
    assert!(taken_over > 0, "no node died with work in its hands");
    check_take_overs(&database, &killed);
    database.verify();
}

/// Whether a node has a job that it keeps for a while.
fn holds_work(database: &Database, node: &str) -> bool {
    held_by(database, node).is_some_and(|first| {
        std::thread::sleep(HELD);
        held_by(database, node).is_some_and(|second| second == first)
    })
}

fn held_by(database: &Database, node: &str) -> Option<String> {
    database.answer(&format!("SELECT record_id FROM agenda WHERE owner = '{node}' AND held = 1 LIMIT 1"))
}

/// Each job that a killed node held, from the kill to the fact that says that it is free again.
fn check_take_overs(database: &Database, killed: &[Kill]) {
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    let (mut from_lost, mut from_others) = (Vec::new(), Vec::new());
    for fact in database.facts() {
        let job = fact["stream"].as_str().expect("it has a stream").to_owned();
        if let Some(owner) = fact["payload"]["dispatched"]["owner"].as_str() {
            owners.insert(job, owner.to_owned());
        } else if fact["kind"] == "job.requeued/1" {
            let Some(kill) = killed.iter().find(|kill| kill.node == owners[&job]) else { continue };
            // One that was starved may have lost a lease while it lived.
            let Ok(took) = Duration::try_from(time_of(&fact).duration_since(kill.at)) else { continue };
            assert!(
                took <= TAKEN_OVER_WITHIN,
                "{job} was taken over {took:?} after the kill of {}",
                kill.node
            );
            match kill.fate {
                Fate::Lost => from_lost.push(took),
                Fate::ComesBack => from_others.push(took),
            }
        }
    }
    for (whose, took) in [("lost nodes", &mut from_lost), ("nodes that came back", &mut from_others)] {
        took.sort();
        let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
        let (count, most) = (took.len(), took.last().copied().unwrap_or_default());
        println!("{count} jobs of {whose} free after p50 {:.1?} p99 {:.1?} max {most:.1?}", at(50), at(99));
    }
    assert!(!from_lost.is_empty(), "nothing was taken over from a node that was lost");
}

impl Load<'_> {
    /// The jobs that were accepted.
    fn ask_until_over(&self) -> Vec<String> {
        let mut accepted = Vec::new();
        while !self.over.load(Ordering::SeqCst) {
            accepted.push(self.ask(self.keys.fetch_add(1, Ordering::SeqCst)));
        }
        accepted
    }

    /// One job, asked for until somebody has said that it is there.
    fn ask(&self, number: usize) -> String {
        let script = "echo $LONGHAUL_JOB_ID $LONGHAUL_ATTEMPT_NUMBER >> $0; sleep 0.3";
        let (executor, input) = match number % 3 {
            0 => ("noop", json!({})),
            1 => ("slow", json!({ "seconds": 1 })),
            _ => ("command", json!({ "argv": ["sh", "-c", script, self.effects] })),
        };
        let (key, input) = (format!("key-{number}"), input.to_string());
        for send in 0..MAX_SENDS {
            let dir =
                self.dirs.lock().unwrap_or_else(PoisonError::into_inner)[(number + send) % NODES].clone();
            let arguments = ["jobs", "create", "under fire", "--executor", executor, "--input", &input];
            let named =
                ["--idempotency-key", &key, "--max-attempts", ENOUGH, "--token", self.token, "--json"];
            let answered = longhaul(&dir, &[&arguments[..], &named].concat());
            if answered.status.success() {
                let status: Value = serde_json::from_slice(&answered.stdout).expect("it is JSON");
                return status["job_id"].as_str().expect("it has an id").to_owned();
            }
            self.repeated.fetch_add(1, Ordering::SeqCst);
        }
        panic!("{key} was never accepted");
    }

    /// No attempt has run twice, none that the ledger does not know of, and none after the one that ended its job.
    fn check_effects(&self, database: &Database) -> usize {
        let text = std::fs::read_to_string(self.effects).expect("it is there");
        let begun: Vec<&str> = text.lines().collect();
        assert_eq!(begun.iter().collect::<BTreeSet<_>>().len(), begun.len(), "an attempt has run twice");
        let histories = database.histories();
        for line in &begun {
            let (id, attempt) = line.split_once(' ').expect("a job and its attempt");
            let dispatched = histories[id].iter().filter(|kind| *kind == "job.dispatched/1").count();
            let attempt: usize = attempt.parse().expect("it is a number");
            assert!((1..=dispatched).contains(&attempt), "{id} ran {attempt} of {dispatched} attempts");
        }
        begun.len()
    }
}
