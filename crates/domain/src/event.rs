//! Events: messages that may start work. An event is durable, is settled exactly once, and says for every pipeline that listens to its type
//! what came of it: nothing is dropped in silence.

mod agentic;
mod apply;
mod attention;
mod command;
mod decide;
mod fact;
mod kind;
mod state;
#[cfg(test)]
mod tests;

pub use agentic::{TOOL_REQUEST, TOOL_RESULT, is_between_turns};
pub use apply::apply;
pub use command::{EventCommand, NewEvent, Origin, Processed, Route, RouteAnswer, Settler};
pub use decide::{decide, decide_new};
pub use fact::{Disposition, EventFact, Routed, Settlement};
pub use state::{Event, EventStatus, Settled};

use crate::id::text_id;

text_id! {
    /// One event: `event-` and hex.
    EventId
}

/// The type of an event: 1 to this many bytes.
pub const MAX_TYPE_BYTES: usize = 256;
/// What names the same thing: an event with the same key for the same pipeline is a duplicate.
pub const MAX_DEDUPE_KEY_BYTES: usize = 512;
/// The object that is carried with everything that follows from an event.
pub const MAX_CORRELATION_BYTES: usize = 2_048;
/// The payload.
pub const MAX_PAYLOAD_BYTES: usize = 262_144;
/// Lists and objects in each other in a payload.
pub const MAX_PAYLOAD_NESTING: usize = 64;
/// Pipelines that may listen to one type.
pub const MAX_ROUTES: usize = 100;
/// Events of one event: how far a chain goes unless a pipeline of it says otherwise.
pub const DEFAULT_MAX_DEPTH: u32 = 32;
