//! Nodes that die, pause or are cut off: their work is taken over, and what they say too late counts for nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::{Database, LEASE, Node, knob, node_at, time_of, within};
use crate::given::{create, ended, expect, json as json_of, longhaul, show, until};
use crate::proxy::Proxy;
use crate::workers::call;

/// From the loss of a node to the moment at which its work may be taken by another.
const FREE_WITHIN: Duration = LEASE.saturating_add(Duration::from_secs(2));
/// From then to the second attempt: longer than the wait between two attempts, shorter than a heartbeat.
const TAKEN_WITHIN: Duration = Duration::from_secs(4);

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

/// Waits for the second attempt; how soon after the loss it came is judged by the clock of the database.
#[track_caller]
fn check_taken_over(database: &Database, dir: &Path, id: &str, lost_at: jiff::Timestamp) {
    within(LEASE * 4, "the second attempt has begun", || attempts(dir, id) == 2);
    let (freed, begun) = (database.facts_of(id, "job.requeued/1"), database.facts_of(id, "job.dispatched/1"));
    let free_after = after(lost_at, &freed[0]);
    assert!(free_after <= FREE_WITHIN, "{id} was free {free_after:?} after the loss");
    let taken_after = after(time_of(&freed[0]), &begun[1]);
    assert!(taken_after <= TAKEN_WITHIN, "{id} was taken {taken_after:?} after it was free");
}

/// How long after that moment this happened.
fn after(moment: jiff::Timestamp, fact: &Value) -> Duration {
    Duration::try_from(time_of(fact).duration_since(moment)).expect("it happened then")
}

// conforms: A32 A38
#[test]
fn work_of_a_killed_node_is_taken_over_within_its_lease_and_two_seconds() {
    let database = Database::new();
    let (one, other) = (database.node(), database.node());
    let of_one = one.id();
    let id = create(one.dir(), &["slow", "--executor", "slow", "--input", r#"{"seconds":10}"#]);
    let owner = until(one.dir(), &id, "running")["runner"]["runner_owner_id"].clone();
    let (first, second) = if owner == of_one.as_str() { (one, other) } else { (other, one) };
    let killed_at = database.now();
    first.daemon.kill();
    check_taken_over(&database, second.dir(), &id, killed_at);
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
    let (cut_off, other) = (node_at(&proxy.address, &[]), database.node());
    let of_other = other.id();
    // Until the cut it leaves everything to the one that is cut off.
    expect(0, &longhaul(other.dir(), &["nodes", "drain", &of_other]));
    let hanging =
        create(cut_off.dir(), &["hangs", "--executor", "command", "--input", &hangs_once(cut_off.dir())]);
    let mut pid = String::new();
    within(LEASE, "the command has begun", || {
        pid = std::fs::read_to_string(cut_off.dir().join("pid")).unwrap_or_default();
        pid.ends_with('\n')
    });
    let ending = create(cut_off.dir(), &["ends", "--executor", "slow", "--input", r#"{"seconds":8}"#]);
    let state = format!("SELECT state FROM jobs WHERE id = '{ending}'");
    within(LEASE, "the other job has begun", || database.answer(&state).as_deref() == Some("running"));
    let cut_at = database.now();
    let (began, process) = (Instant::now(), format!("/proc/{}", pid.trim()));
    proxy.cut();
    expect(0, &longhaul(other.dir(), &["nodes", "undrain", &of_other]));
    let limit = LEASE.saturating_sub(Duration::from_secs(5)).saturating_sub(began.elapsed());
    within(limit, "the command of the node that is cut off is over", || !Path::new(&process).exists());
    for id in [&hanging, &ending] {
        check_taken_over(&database, other.dir(), id, cut_at);
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
    let own = |fact: &Value| fact["stream"] == hanging.as_str() || fact["stream"] == ending.as_str();
    let count = |facts: &[Value]| facts.iter().filter(|fact| own(fact)).count();
    assert_eq!(count(&database.facts()), count(&before));
    for id in [&hanging, &ending] {
        assert_eq!(database.facts_of(id, "job.completed/1").len(), 1);
    }
    database.verify();
}

/// Nothing is said of retries: what is pulled is handed out again when its worker is lost, by whichever node is asked.
#[test]
fn work_of_a_lost_worker_is_handed_out_again_by_another_node() {
    let database = Database::new();
    let (one, other) = (database.node(), database.node());
    let id = create(one.dir(), &["print", "--lane", "print"]);
    let token = one.shared_token();
    let pull = |node: &Node, worker: &str, wait_seconds: u64| {
        let asked = json!({ "worker_id": worker, "lanes": ["print"], "wait_seconds": wait_seconds });
        call(&node.daemon.url, &token, "/jobs/next", &asked.to_string())["job"].clone()
    };
    let first = pull(&one, "press-1", 10);
    assert_eq!(first["job_id"], id.as_str());
    let handed_at = database.now();
    let mut again = Value::Null;
    within(LEASE * 3, "it is handed out again", || {
        again = pull(&other, "press-2", 20);
        !again.is_null()
    });
    assert_eq!(again["job_id"], id.as_str());
    assert_ne!(again["attempt_id"], first["attempt_id"]);
    assert_eq!(attempts(other.dir(), &id), 2);
    let (lost, begun) =
        (database.facts_of(&id, "job.requeued/1"), database.facts_of(&id, "job.dispatched/1"));
    assert!(after(handed_at, &lost[0]) <= FREE_WITHIN, "{lost:?}");
    assert!(after(time_of(&lost[0]), &begun[1]) <= TAKEN_WITHIN, "{begun:?}");
    database.verify();
}
