//! Runs: one pipeline at its work, from the event that started it to the end of its last step.

mod shape;

pub use shape::{MAX_NODES, Node, NodeIndex, NodeKind, OnError, Shape};
