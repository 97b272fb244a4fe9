//! `/events`: what is published, and what came of it.
//!
//! Events and runs are listed alike (`routing/routed.rs`); whoever does not see a circle does not see its events either.

mod publish;
mod read;
mod shown;

pub(crate) use publish::{new_id, payload_of, publish};
pub(crate) use read::{list, read};
