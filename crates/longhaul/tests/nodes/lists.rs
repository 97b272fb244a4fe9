//! Who is there: the list of nodes, what an idle one asks, and one that finds a newer store.

use std::time::Duration;

use crate::cluster::{Database, Node, node_at, within};
use crate::given::{Daemon, expect, json, longhaul, stderr};
use crate::proxy::Proxy;

// conforms: A20
#[test]
fn every_node_is_on_the_list_under_an_id_of_its_own_and_leaves_it_when_it_ends() {
    let database = Database::new();
    let (first, second) = (database.node(), database.node());
    let (one, other) = (first.id(), second.id());
    assert_ne!(one, other);
    let list = json(first.dir(), &["nodes"]);
    let nodes = list["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2, "{list}");
    for node in nodes {
        assert_eq!(node["state"], "running", "{node}");
        assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
        assert!(node["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{node}");
    }
    expect(0, &longhaul(first.dir(), &["nodes", "drain", &other]));
    let table = expect(0, &longhaul(first.dir(), &["nodes"]));
    assert!(table.contains("draining") && table.contains(&one), "{table}");
    let refused = longhaul(first.dir(), &["nodes", "drain", "daemon-nobody"]);
    expect(4, &refused);
    assert!(stderr(&refused).contains("No node: daemon-nobody"), "{}", stderr(&refused));
    second.daemon.signal(rustix::process::Signal::TERM);
    let ids = || json(first.dir(), &["nodes"])["nodes"].as_array().unwrap().len();
    within(Duration::from_secs(15), "it has left", || ids() == 1);
}

// conforms: A20
#[test]
fn a_daemon_alone_on_its_file_shows_itself_and_nobody_who_was_there_before() {
    let dir = tempfile::tempdir().unwrap();
    let first = Daemon::start(dir.path());
    let before = json(dir.path(), &["nodes"])["nodes"][0]["id"].clone();
    first.kill();
    let _daemon = Daemon::start(dir.path());
    let list = json(dir.path(), &["nodes"]);
    let nodes = list["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 1, "{list}");
    assert_eq!((&nodes[0]["state"], &nodes[0]["answering"]), (&"running".into(), &true.into()));
    let id = nodes[0]["id"].as_str().unwrap();
    assert_ne!(before, id, "every start is another owner");
    expect(0, &longhaul(dir.path(), &["nodes", "drain", id]));
    assert_eq!(json(dir.path(), &["nodes"])["nodes"][0]["state"], "draining");
}

#[test]
fn list_shows_the_clock_step_of_each_node() {
    let database = Database::new();
    let (first, second) = (database.node(), database.node());
    let (one, odd) = (first.id(), second.id());
    // As a node writes it down whose clock is an hour off.
    let hour = 3_600;
    database.run(&format!(
        "INSERT INTO meta (name, value) VALUES ('clock_seen_{odd}', {hour} * 1000000::bigint)"
    ));
    let steps = |node: &Node| {
        let list = json(node.dir(), &["nodes"]);
        let nodes = list["nodes"].as_array().unwrap();
        let of = |id: &str| nodes.iter().find(|node| node["id"] == id).unwrap()["clock_step_seconds"].clone();
        [of(&one), of(&odd)]
    };
    assert_eq!(steps(&first), [0, hour]);
    // The one that answers knows itself better.
    assert_eq!(steps(&second), [0, 0]);
    let table = expect(0, &longhaul(first.dir(), &["nodes"]));
    assert_eq!(table.matches("+3600 s").count(), 1, "{table}");
}

/// Less than from one heartbeat to the next.
const SILENCE: Duration = Duration::from_secs(5);

#[test]
fn an_idle_node_sends_nothing_but_its_heartbeat() {
    let database = Database::new();
    let proxy = Proxy::before(&database.schema.address);
    let _node = node_at(&proxy.address, &[]);
    // What belongs to its start is over when nothing comes for a while.
    let mut asked = usize::MAX;
    while std::mem::replace(&mut asked, proxy.asked()) != asked {
        std::thread::sleep(SILENCE);
    }
    // The first over a connection also makes its statement known there.
    let before = proxy.asked();
    within(Duration::from_secs(20), "the first heartbeat", || proxy.asked() > before);
    std::thread::sleep(SILENCE);
    for _ in 0..2 {
        let before = proxy.asked();
        within(Duration::from_secs(20), "a heartbeat", || proxy.asked() > before);
        std::thread::sleep(SILENCE);
        assert_eq!(proxy.asked() - before, 1, "a heartbeat is one question, and none follows it");
    }
}

#[test]
fn node_that_runs_while_a_newer_longhaul_changes_the_schema_stops_and_says_what_to_do() {
    let database = Database::new();
    let node = database.node();
    database.run("UPDATE meta SET value = 1000 WHERE name = 'schema'");
    let refused = longhaul(node.dir(), &["jobs", "create", "too late"]);
    assert_ne!(refused.status.code(), Some(0), "nothing is written any more");
    let dir = node.dir;
    let log = node.daemon.log_path();
    assert_eq!(node.daemon.wait().code(), Some(1));
    let said = std::fs::read_to_string(log).unwrap();
    assert!(said.contains("schema 1000") && said.contains("the newer longhaul"), "{said}");
    drop(dir);
    assert!(database.facts_refused().contains("use a newer longhaul"));
}
