//! Nodes on the wire: the processes that work on one store.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One process that works on the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its id: the owner of its claims. New with every start.
    pub id: String,
    /// What its machine is called.
    pub name: String,
    /// Where it is served, as it sees itself.
    pub url: String,
    /// The longhaul that it runs.
    pub version: String,
    /// The schema that it works with.
    pub schema_version: i64,
    /// What can do work there.
    pub executors: Vec<String>,
    /// running, draining, or silent if nothing was heard of it for a while.
    pub state: String,
    /// When it was started.
    pub started_at: String,
    /// When it was last heard of.
    pub heartbeat_at: String,
    /// Attempts that it runs.
    pub attempts: u64,
    /// Questions to services that it has under way.
    pub polls: u64,
    /// The wall clock minus the time of the store on this node, in seconds; 0 while they agree. Of another node, as of its last heartbeat.
    #[serde(default)]
    pub clock_step_seconds: i64,
    /// Whether it is the one that answers.
    pub answering: bool,
}

/// All nodes that were heard of within the hour.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// The nodes, the one that was started last first.
    pub nodes: Vec<Node>,
}

/// One node after an order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeAnswer {
    /// The node.
    pub node: Node,
}
