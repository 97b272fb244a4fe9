//! A database, and nodes on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use test_postgres::{Schema, ServerClock};

use crate::given::{Daemon, binary, expect, json};

/// The shortest lease that there is.
pub const LEASE: Duration = Duration::from_secs(30);

/// A database of its own.
pub struct Database {
    pub schema: Schema,
}

/// A node in a directory of its own.
pub struct Node {
    pub dir: TempDir,
    pub daemon: Daemon,
}

impl Database {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("there is room");
        Self { schema: runtime.block_on(Schema::new()) }
    }

    /// One on a server whose clock the test sets.
    pub fn with_clock() -> (Self, ServerClock) {
        let mut database = Self::new();
        let runtime = tokio::runtime::Runtime::new().expect("there is room");
        let clock = runtime.block_on(ServerClock::going(&database.schema));
        database.schema.address.clone_from(&clock.address);
        (database, clock)
    }

    /// Sets the server's clock by so much.
    pub fn set(&self, clock: &ServerClock, seconds: i64) {
        let runtime = tokio::runtime::Runtime::new().expect("there is room");
        runtime.block_on(async { clock.set(&self.schema.client().await, seconds).await });
    }

    pub fn node(&self) -> Node {
        self.node_with(&[])
    }

    pub fn node_with(&self, arguments: &[&str]) -> Node {
        node_at(&self.schema.address, arguments)
    }

    /// A node with more in its configuration.
    pub fn node_knowing(&self, config: &str) -> Node {
        configured(&self.schema.address, config, &[])
    }

    /// A node in the directory of one that has ended: on the machine where that was.
    pub fn node_in(&self, dir: TempDir) -> Node {
        started_in(dir, &self.schema.address, "", &[])
    }

    /// The same, with more in its configuration.
    pub fn node_in_knowing(&self, dir: TempDir, config: &str) -> Node {
        started_in(dir, &self.schema.address, config, &[])
    }

    /// Carries a statement out beside the nodes.
    pub fn run(&self, statement: &str) {
        let runtime = tokio::runtime::Runtime::new().expect("there is room");
        runtime.block_on(async {
            self.schema.client().await.batch_execute(statement).await.expect("the statement is right");
        });
    }

    /// What the database answers to a question, as text; nothing if it has no answer.
    pub fn answer(&self, question: &str) -> Option<String> {
        let runtime = tokio::runtime::Runtime::new().expect("there is room");
        runtime.block_on(async {
            let row = self.schema.client().await.query_opt(question, &[]).await;
            row.expect("the question is right").map(|row| row.get(0))
        })
    }

    /// The clock that all nodes go by.
    pub fn now(&self) -> jiff::Timestamp {
        let micros = self.answer("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text");
        let micros = micros.and_then(|micros| micros.parse().ok()).expect("it has a clock");
        jiff::Timestamp::from_microsecond(micros).expect("it is a time")
    }

    /// The whole ledger.
    pub fn facts(&self) -> Vec<Value> {
        let exported = binary(&["export", "facts", "--database", &self.schema.address]).output();
        let lines = expect(0, &exported.expect("the binary runs"));
        lines.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
    }

    /// What a command says that finds a newer store.
    pub fn facts_refused(&self) -> String {
        let refused = binary(&["export", "facts", "--database", &self.schema.address]).output();
        let refused = refused.expect("the binary runs");
        expect(1, &refused);
        crate::given::stderr(&refused)
    }

    /// The jobs of the ledger, each with the kinds of its facts in their order.
    pub fn histories(&self) -> BTreeMap<String, Vec<String>> {
        let mut histories: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for fact in self.facts() {
            let kind = fact["kind"].as_str().expect("it has a kind").to_owned();
            if kind.starts_with("job.") {
                let job = fact["stream"].as_str().expect("it has a stream").to_owned();
                histories.entry(job).or_default().push(kind);
            }
        }
        histories
    }

    /// The facts of one job that are of this kind.
    pub fn facts_of(&self, job: &str, kind: &str) -> Vec<Value> {
        let mut facts = self.facts();
        facts.retain(|fact| fact["stream"] == job && fact["kind"].as_str() == Some(kind));
        facts
    }

    /// The store agrees with its ledger.
    #[track_caller]
    pub fn verify(&self) {
        let verified = binary(&["verify", "--database", &self.schema.address]).output();
        let printed = expect(0, &verified.expect("the binary runs"));
        assert!(printed.contains(" 0 differences"), "{printed}");
    }
}

/// A node on the database at this address.
pub fn node_at(address: &str, arguments: &[&str]) -> Node {
    configured(address, "", arguments)
}

fn configured(address: &str, more: &str, arguments: &[&str]) -> Node {
    started_in(tempfile::tempdir().expect("there is room"), address, more, arguments)
}

fn started_in(dir: TempDir, address: &str, more: &str, arguments: &[&str]) -> Node {
    let config = dir.path().join("longhaul.yaml");
    let text = format!("lease: {{ seconds: 30, renew_every_seconds: 10 }}\n{more}");
    std::fs::write(&config, text).expect("it can be written");
    let config = config.to_str().expect("it is text").to_owned();
    let serve = [&["--database", address, "--config", &config], arguments].concat();
    let daemon = Daemon::start_with(dir.path(), &serve);
    Node { dir, daemon }
}

impl Node {
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A token that all nodes know, and that may run commands: whoever has it is the same on each of them.
    pub fn shared_token(&self) -> String {
        let arguments = ["token", "create", "--name", "everywhere", "--role", "admin", "--scope", "exec"];
        let made = json(self.dir(), &arguments);
        made["secret"].as_str().expect("it has a secret").to_owned()
    }

    /// The id of this node, as it tells itself.
    pub fn id(&self) -> String {
        let list = json(self.dir(), &["nodes"]);
        let nodes = list["nodes"].as_array().expect("it is a list");
        let own = nodes.iter().find(|node| node["answering"] == true).expect("it is on its own list");
        own["id"].as_str().expect("it has an id").to_owned()
    }
}

/// When a fact happened.
pub fn time_of(fact: &Value) -> jiff::Timestamp {
    fact["at"].as_str().expect("it has a time").parse().expect("it is one")
}

/// Looks again and again until it is so, and says how long that took.
#[track_caller]
pub fn within(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    began.elapsed()
}

/// A size knob.
pub fn knob(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
