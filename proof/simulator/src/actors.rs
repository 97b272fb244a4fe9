//! Everybody outside: clients, peers and people, and the messages that they send.

pub(crate) mod client;
pub(crate) mod messages;
pub(crate) mod orders;
pub(crate) mod peer;
pub(crate) mod routed;
pub(crate) mod stale;
