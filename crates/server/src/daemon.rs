//! The daemon itself: tokens, clock, nodes, figures, probes.

pub(crate) mod clock;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod nodes;
pub(crate) mod tokens;
