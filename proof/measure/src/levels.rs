//! One file per level: what is measured there, and what it is held to.

pub mod executors;
pub mod growth;
pub mod http;
pub mod idle;
pub mod operations;
pub mod pipelines;
pub mod start;
pub mod store;
