//! Events, pipelines and their runs.

pub(crate) mod events;
pub(crate) mod pipelines;
pub(crate) mod routed;
pub(crate) mod runs;
