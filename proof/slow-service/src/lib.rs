//! Services that longhaul is tested against and that its demo runs: none of them knows longhaul.
//!
//! - [`SlowService`] is scripted: each start says how long the work takes, how it ends, and how the service misbehaves
//!   meanwhile (`manner`, `zoo`).
//! - `redaction` is a durable connector that answers "later" and keeps its word over a restart.
//! - `delivery` sends artifacts with a ledger, retries and recovery, on the same durable `state`.
//!
//! `http` is the plain HTTP/1.1 under all of them.

mod callback;
mod clock;
mod counters;
mod delivery;
mod digest;
mod http;
mod ledger;
mod manner;
mod measures;
mod redaction;
mod service;
mod signature;
mod state;
mod tasks;
mod work;
mod zoo;

pub use clock::{Clock, HandClock};
pub use counters::Requests;
pub use delivery::{Adapter, DeliveryOptions, DeliveryService, DirectoryAdapter, Parcel, Retry, Sent};
pub use ledger::{AfterRestart, Start};
pub use manner::{Manner, Occasion, Sheet};
pub use measures::Measures;
pub use redaction::{RedactionOptions, RedactionService, validate_response};
pub use service::{Options, ServiceError, SlowService};
pub use signature::{WebhookSecret, WrongSecret};
