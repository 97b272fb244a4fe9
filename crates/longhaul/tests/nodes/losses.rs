//! Nodes that die, pause or are cut off: their work is taken over, and what they say too late counts for nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::cluster::{Database, LEASE, Node, knob, node_at, within};
use crate::given::{create, ended, json as json_of, show, until};
use crate::proxy::Proxy;

/// A command that hangs the first time and ends the second; it leaves its process id.
fn hangs_once(dir: &Path) -> String {
    let (first, pid) = (dir.join("first"), dir.join("pid"));
    let script = format!(
        "if [ -e {first} ]; then exit 0; fi; touch {first}; echo $$ > {pid}; exec sleep 600",
        first = first.display(),
        pid = pid.display()
    );
    json!({ "argv": ["sh", "-c", script] }).to_string()
}

fn attempts(dir: &Path, id: &str) -> u64 {
    show(dir, id)["runner"]["attempt_count"].as_u64().unwrap_or_default()
}

// conforms: A32 A38
#[test]
fn work_of_a_killed_node_is_taken_over_within_its_lease_and_two_seconds() {
    let database = Database::new();
    let (one, other) = (database.node(), database.node());
    let id = create(one.dir(), &["slow", "--executor", "slow", "--input", r#"{"seconds":3}"#]);
    let owner = until(one.dir(), &id, "running")["runner"]["runner_owner_id"].clone();
    let (first, second) = if owner == one.id().as_str() { (one, other) } else { (other, one) };
    first.daemon.kill();
    let limit = LEASE + Duration::from_secs(2);
    within(limit, "the second attempt has begun", || attempts(second.dir(), &id) == 2);
    assert_eq!(ended(second.dir(), &id, "completed")["data"]["attempt"], 2);
    assert_eq!(database.facts_of(&id, "job.requeued/1").len(), 1);
    database.verify();
}

/// All stand still at the same time, each with a command in its hands. The commands go on and end: those ends come too late.
// conforms: A29 A32
#[test]
fn nodes_that_were_paused_past_their_lease_change_nothing_afterwards() {
    let database = Database::new();
    // None takes anything by itself: each runs what it is told to run.
    let node = || database.node_with(&["--no-dispatch"]);
    let (paused, awake): (Vec<Node>, Node) =
        ((0..knob("LONGHAUL_PAUSES", 20)).map(|_| node()).collect(), node());
    let other = awake.id();
    // It says which attempt it was.
    let script = r#"sleep 8; echo "{\"attempt\": $LONGHAUL_ATTEMPT_NUMBER}""#;
    let input = json!({ "argv": ["sh", "-c", script] }).to_string();
    let run_on = |node: &Node, id: &str| json_of(node.dir(), &["jobs", "run", id]);
    let pause = |node: &Node| {
        let id = create(node.dir(), &["paused", "--executor", "command", "--input", &input]);
        assert_eq!(run_on(node, &id)["state"], "running");
        node.daemon.signal(Signal::STOP);
        id
    };
    let ids: Vec<String> = paused.iter().map(pause).collect();
    let limit = LEASE + Duration::from_secs(5);
    for id in &ids {
        within(limit, "the lease is seen to be lost", || show(awake.dir(), id)["state"] == "queued");
        run_on(&awake, id);
        assert_eq!(attempts(awake.dir(), id), 2);
    }
    for node in &paused {
        node.daemon.signal(Signal::CONT);
    }
    for (node, id) in paused.iter().zip(&ids) {
        // Asked of the node that came back: it says what everybody says.
        assert_eq!(ended(node.dir(), id, "completed")["data"]["attempt"], 2, "{id}");
    }
    let facts = database.facts();
    for id in &ids {
        let of = |kind: &str| {
            let mut facts = facts.clone();
            facts.retain(|fact| fact["stream"] == id.as_str() && fact["kind"] == kind);
            facts
        };
        assert_eq!(of("job.completed/1").len(), 1, "{:?}", of("job.completed/1"));
        let begun = of("job.dispatched/1");
        assert_eq!(begun.last().unwrap()["payload"]["dispatched"]["owner"], other.as_str(), "{begun:?}");
    }
    database.verify();
}

/// What it runs ends before the lease does; what it has to say of it arrives a minute later, and is refused.
// conforms: A29 A32
#[test]
fn node_that_is_cut_off_stops_its_work_before_the_lease_ends_and_its_late_results_are_refused() {
    let database = Database::new();
    let proxy = Proxy::before(&database.schema.address);
    let cut_off = node_at(&proxy.address, &[]);
    let hanging =
        create(cut_off.dir(), &["hangs", "--executor", "command", "--input", &hangs_once(cut_off.dir())]);
    let ending = create(cut_off.dir(), &["ends", "--executor", "slow", "--input", r#"{"seconds":8}"#]);
    until(cut_off.dir(), &hanging, "running");
    until(cut_off.dir(), &ending, "running");
    let other = database.node();
    let mut pid = String::new();
    within(LEASE, "the command has begun", || {
        pid = std::fs::read_to_string(cut_off.dir().join("pid")).unwrap_or_default();
        pid.ends_with('\n')
    });
    let (began, process) = (Instant::now(), format!("/proc/{}", pid.trim()));
    proxy.cut();
    within(
        LEASE.saturating_sub(Duration::from_secs(5)),
        "the command of the node that is cut off is over",
        || !Path::new(&process).exists(),
    );
    let limit = LEASE + Duration::from_secs(2);
    for id in [&hanging, &ending] {
        within(limit.saturating_sub(began.elapsed()), "it is taken over", || attempts(other.dir(), id) == 2);
    }
    for id in [&hanging, &ending] {
        ended(other.dir(), id, "completed");
    }
    std::thread::sleep((LEASE * 2).saturating_sub(began.elapsed()));
    let before = database.facts();
    proxy.heal();
    // It is one of them again, and has changed nothing.
    let again = create(cut_off.dir(), &["after", "--executor", "noop"]);
    ended(cut_off.dir(), &again, "completed");
    let own =
        |fact: &serde_json::Value| fact["stream"] == hanging.as_str() || fact["stream"] == ending.as_str();
    let count = |facts: &[serde_json::Value]| facts.iter().filter(|fact| own(fact)).count();
    assert_eq!(count(&database.facts()), count(&before));
    for id in [&hanging, &ending] {
        assert_eq!(database.facts_of(id, "job.completed/1").len(), 1);
    }
    database.verify();
}
