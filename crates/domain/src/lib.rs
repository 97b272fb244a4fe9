//! The rules of longhaul: what may happen to a job, an operation, an event, a run and a claim, and nothing else.
//!
//! Everything here is pure. `decide(state, command, now)` answers with facts, with nothing ("already so") or
//! with a refusal; `apply(state, fact)` folds a fact into the state. No async, no clock, no I/O, no
//! randomness and no hash order in this crate: `clippy.toml` beside it refuses them.
//!
//! Read in this order: [`job`] (`state.rs`, `command.rs`, `decide.rs`, `apply.rs`), [`operation`], [`event`] and [`run`] (the
//! same files; their `kind.rs` is how [`record`] sees them), [`claim`], [`policy`], [`attention`], [`timeline`], [`timers`]; [`peer`], [`ask`] and [`breaker`] stand beside the ledger.

pub mod ask;
pub mod body;
pub mod breaker;
pub mod claim;
pub mod event;
pub mod follow;
pub mod id;
pub mod job;
pub mod json;
pub mod limits;
pub mod operation;
pub mod peer;
pub mod planted;
pub mod policy;
pub mod record;
pub mod retry;
pub mod run;
pub mod time;
mod words;
pub use limits::limit;
pub use record::{attention, checkpoint, decision, kind, refusal};
pub use time::{duration, timeline, timers};

pub use attention::Attention;
pub use body::{BodyName, BodyRef, Digest};
pub use checkpoint::{Checkpoint, Checksum};
pub use claim::{Claim, Fence, Lease};
pub use decision::{Consequence, Decision, MAX_CONSEQUENCES, MAX_NOTIFIED};
pub use event::EventId;
pub use id::{AttemptId, OwnerId};
pub use job::JobId;
pub use json::Json;
pub use kind::{Kind, Removal, Summary};
pub use operation::OperationId;
pub use record::{Command, Fact, Misfold, Record, RecordId, RecordKind};
pub use refusal::Refusal;
pub use retry::{Jitter, MAX_ATTEMPTS, MAX_BACKOFF_SECONDS, PULLED_ATTEMPTS, RetryPolicy};
pub use run::RunId;
pub use time::Timestamp;

/// For serde: whether a field is left out of what is stored, because it is read so where there is none.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
