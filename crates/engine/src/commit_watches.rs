//! What follows every commit of this node: whoever waits is woken, and the log is written.

pub(crate) mod asks_watched;
pub(crate) mod changes;
pub(crate) mod commit_log;
pub(crate) mod wakes;
