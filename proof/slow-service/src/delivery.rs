//! The second reference service: `artifact.delivery.send?mode=deferred`, with a ledger of its own.
//!
//! A delivery is in the ledger before it is acknowledged; every attempt leaves a line in its `retry/history`; what was
//! interrupted or may be tried again is taken up by a recovery pass. A crash in mid-attempt may repeat a target that already
//! has the artifact, so adapters must take the same delivery twice without harm. It cannot be cancelled, and says why.

mod adapter;
mod attempt;
mod envelope;
mod runner;
mod service;
mod wire;

pub use adapter::{Adapter, DirectoryAdapter, Parcel, Sent};
pub use runner::Retry;
pub use service::{DeliveryOptions, DeliveryService};
