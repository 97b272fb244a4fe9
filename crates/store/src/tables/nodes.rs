//! Nodes: the processes that work on one store, as they have written themselves down. Coordination, not part of the ledger.
//!
//! A row says who is there and how busy; it proves nothing. Who may do what is decided by claims alone.

use domain::timeline::Anchor;
use domain::{RecordId, Timestamp};

use crate::{Correction, Reply, Sight, Store, StoreError};

/// Nodes that a list holds at most.
pub const MAX_NODES: usize = 1_000;
/// Bytes of each text of a node.
pub const MAX_NODE_TEXT_BYTES: usize = 512;
/// Executors of a node.
pub const MAX_NODE_EXECUTORS: usize = 10_000;
/// A node that was not heard of for this long is silent: three heartbeats.
pub const SILENT_AFTER_SECONDS: u64 = 30;

/// One process that works on the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The owner of its claims: new with every start, and never used again.
    pub id: String,
    /// What its machine is called.
    pub name: String,
    /// Where it is served.
    pub url: String,
    /// The longhaul that it runs.
    pub version: String,
    /// The schema that it works with.
    pub schema_version: i64,
    /// What can do work there, by name.
    pub executors: Vec<String>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it was last heard of, by its own clock: the store's time, whatever the server's clock says at that moment.
    pub heartbeat_at: Timestamp,
    /// Attempts that it runs.
    pub attempts: u64,
    /// Questions to services that it has under way.
    pub polls: u64,
    /// Whether it takes work. Only an order changes it, never a heartbeat.
    pub taking: Taking,
}

/// Whether a node takes work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Taking {
    /// It does.
    #[default]
    Takes,
    /// Nothing new: it finishes what it has.
    Drains,
}

/// What a store that nodes share says of its time and of what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// Its time.
    pub time: Timestamp,
    /// When the next job is due.
    pub job_due_at: Option<Timestamp>,
    /// When the next operation is due.
    pub operation_due_at: Option<Timestamp>,
    /// When the next record of any other kind needs someone.
    pub routing_due_at: Option<Timestamp>,
    /// Whether a job is ready to be dispatched.
    pub ready: Ready,
    /// Whether a job is ready to be pulled.
    pub pulled: Ready,
    /// Whether the node that asks takes work; none if nothing is known of it.
    pub taking: Option<Taking>,
}

/// Whether a job is ready to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Some are.
    Some,
    /// None is.
    None,
}

/// What a store that nodes share can be asked besides.
pub trait SharedStore: Store {
    /// Writes down that a node lives, forgets those that were not heard of for long, and says what comes next: the one statement of
    /// an idle node.
    fn beat(&self, node: Node) -> Reply<'_, Pulse>;
    /// What comes next, as a node sees it. Nothing is written.
    fn pulse<'a>(&'a self, node_id: &'a str) -> Reply<'a, Pulse>;
    /// Writes down which step of the server's clock this node sees, or that it sees none, and says what all have written down.
    fn see_step<'a>(&'a self, node_id: &'a str, by_micros: Option<i64>) -> Reply<'a, Vec<Sight>>;
    /// Keeps where the store's time stands to the clock of a node's machine, as of this revision of it: for whoever is started there again.
    fn keep_anchor(&self, anchor: Anchor, revision: i64) -> Reply<'_, ()>;
    /// Changes the correction of the server's clock for all nodes; false if something else was changed first.
    fn correct_clock(&self, correction: Correction) -> Reply<'_, bool>;
    /// The newest version of each of these records that is there.
    fn versions<'a>(&'a self, ids: &'a [RecordId]) -> Reply<'a, Vec<(RecordId, u64)>>;
}

impl Node {
    /// Whether it was not heard of for a while. It may live all the same.
    pub fn is_silent(&self, now: Timestamp) -> bool {
        self.heartbeat_at.plus_seconds(SILENT_AFTER_SECONDS) < now
    }

    /// The executors as one text.
    pub fn encode_executors(&self) -> String {
        self.executors.join("\n")
    }

    /// The executors from one text.
    pub fn decode_executors(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    /// Refuses a node over its limits, before anything is queued.
    pub fn check(&self) -> Result<(), StoreError> {
        let texts = [&self.id, &self.name, &self.url, &self.version];
        if self.executors.len() > MAX_NODE_EXECUTORS {
            return Err(StoreError::TooLarge { what: "executors of a node", limit: MAX_NODE_EXECUTORS });
        }
        if texts.into_iter().chain(&self.executors).any(|text| text.len() > MAX_NODE_TEXT_BYTES) {
            return Err(StoreError::TooLarge { what: "text of a node", limit: MAX_NODE_TEXT_BYTES });
        }
        Ok(())
    }
}
