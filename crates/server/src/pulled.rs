//! Work that is pulled with nothing but HTTP: ask for a job, be heard of while it is done, say what came of it.

pub(crate) mod claims;
mod defer;
mod next;
mod report;

pub(crate) use defer::defer;
pub(crate) use next::{MAX_NAMES, pull};
pub(crate) use report::{ask, complete, fail, heartbeat};
