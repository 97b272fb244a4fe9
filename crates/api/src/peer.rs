//! Peers: those who pull work, as they register. Unknown keys are refused.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::JsonObject as Object;

/// Registers a peer, or says anew what it is. The same id in the same circle is the same peer.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterPeer {
    /// Its id, which no other peer of its circle has; the one that the token speaks for, or a new one, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_id: Option<String>,
    /// What people call it; its id if left out. Others may be called so too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The circle that it works in; a token that is bound to one says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circle: Option<String>,
    /// What it may be picked by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// The folder that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// What it says of itself besides, at most 4 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// A peer, and whether it is there.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Peer {
    /// Its id; a peer of another circle may have the same.
    pub peer_id: String,
    /// What people call it.
    pub display_name: String,
    /// The circle that it works in.
    pub circle: Option<String>,
    /// What it may be picked by.
    pub labels: Vec<String>,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// The folder that it works in.
    pub path: Option<String>,
    /// What it runs on.
    pub backend: Option<String>,
    /// What it says of itself besides.
    pub metadata: Object,
    /// `present` or `absent`. An absent peer may live all the same: it was not heard of for 90 seconds.
    pub presence: String,
    /// When it was heard of, or came or went.
    pub seen_at: String,
    /// When it was registered first.
    pub registered_at: String,
}

/// One peer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PeerAnswer {
    /// The peer.
    pub peer: Peer,
}

/// Peers, by id.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PeerList {
    /// The peers. A page may be short: only one without `next_cursor` is the last.
    pub peers: Vec<Peer>,
    /// Asks for the next page.
    pub next_cursor: Option<String>,
}

/// A peer was forgotten. Its jobs stay as they are.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PeerForgotten {
    /// Which.
    pub peer_id: String,
    /// `true`.
    pub forgotten: bool,
}

/// One of several that a name may mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Candidate {
    /// Its id.
    pub peer_id: String,
    /// What people call it.
    pub display_name: String,
    /// The circle that it works in.
    pub circle: Option<String>,
}
