//! What makes it happen: `execute(order)` is the only way to the ledger.
//!
//! Load, decide with its consequences, commit, and once more on a conflict. The clock is read in `clock.rs` and
//! randomness made in `ids.rs`, nowhere else.

mod clock;
mod engine;
mod error;
mod ids;
mod order;
mod plan;

pub use clock::{Clock, ManualClock, SystemClock};
pub use engine::Engine;
pub use error::EngineError;
pub use ids::{Ids, RandomIds};
pub use order::{Order, OrderBody, Outcome};
