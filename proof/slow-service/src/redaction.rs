//! A durable connector for `whisper.redaction.prepare`: takes private text, answers "later", and has a draft when asked.
//!
//! It speaks `sensorium-connector-deferred.v1` and `sensorium-connector-operation-status.v1`. What it accepts is in its own
//! SQLite file before it answers; after a restart pending work is done, work that was running is failed, and an id that it
//! does not know is `unknown`. The raw text stays in that file: no answer holds anything of it but the draft.

mod contract;
mod redact;
mod service;

pub use contract::validate_response;
pub use service::{RedactionOptions, RedactionService};
