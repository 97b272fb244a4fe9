//! What goes over the wire: the shapes of every request and answer, and the codes of every problem.
//!
//! Shared by the server and by its clients. Nothing here decides, reads or sends. Users' JSON is carried as raw text, so that
//! 64-bit integers and everything else survive word for word.

pub mod ask;
pub mod capability;
pub mod claim;
pub mod clock;
pub mod event;
pub mod facts;
pub mod job;
pub mod json;
pub mod limits;
pub mod node;
pub mod orphan;
pub mod peer;
pub mod pipeline;
pub mod problem;
mod protocols;
pub mod pull;
pub mod run;
pub mod token;
pub use protocols::{deferred, ductile, sensorium};

pub use ask::*;
pub use batch::*;
pub use capability::*;
pub use claim::*;
pub use clock::*;
pub use event::*;
pub use facts::*;
pub use job::*;
pub use json::*;
pub use node::*;
pub use orphan::*;
pub use peer::*;
pub use pipeline::*;
pub use problem::{FieldError, Problem, ProblemCode};
pub use pull::*;
pub use run::*;
pub use token::*;
pub use why::*;

/// The header that names a write, so that it can be repeated safely.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The header on an answer that was given before and is repeated byte for byte.
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";
/// The header on a piece of an artifact: the attempt that left it.
pub const ATTEMPT_ID: &str = "longhaul-attempt-id";
