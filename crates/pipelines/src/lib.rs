//! Pipelines: what follows which event, as people write it in YAML files.
//!
//! `load.rs` reads files, `read.rs` makes definitions of what they say, `compile.rs` follows the calls and makes of each the shape that
//! a run walks and the plan of what its steps do. Predicates, templates and baggage are asked while it runs. `routing.rs` is
//! what the engine asks (`engine::Preparation`): what an event starts, and how a run goes on. All but the loading of files is pure.

mod agentic;
mod baggage;
mod compile;
mod definition;
mod graph;
mod load;
mod path;
mod plan;
mod predicate;
mod read;
mod routes;
mod routing;
mod template;
#[cfg(test)]
mod tests;
mod trigger;
mod written;

use domain::run::Shape;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use baggage::{Baggage, BaggageError, CORRELATION, MAX_CONTEXT_BYTES, is_own};
pub use graph::{Format, graph};
pub use load::{Loaded, load, parse};
pub use path::Roots;
pub use plan::{Detail, FailureTold, MAX_PLAN_BYTES, Plan, PlanError, Retry};
pub use predicate::{Predicate, PredicateError};
pub use routes::Routes;
pub use routing::{Router, event_id_of_key, run_id_of};
pub use template::{TemplateError, With};
pub use trigger::{Signal, Trigger};

/// Steps in each other, with everything that a pipeline calls.
pub const MAX_NESTING: usize = 16;

/// A pipeline, ready to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// What people call it.
    pub name: String,
    /// Which one of this name it is: changes with anything below.
    pub version: String,
    /// What starts it.
    pub trigger: Trigger,
    /// Who must have emitted the event.
    pub from_plugin: Option<String>,
    /// Whether it starts.
    pub condition: Option<Predicate>,
    /// Hops of a chain of events that it may be in; 0 for any.
    pub max_depth: Option<u32>,
    /// Whether whoever starts it by name waits.
    pub mode: Mode,
    /// How long they wait.
    pub timeout_seconds: u64,
    /// How long the key of an event is remembered.
    pub dedupe_window_seconds: u64,
    /// What its steps are given besides what they claim.
    pub carry: Carry,
    /// What follows what.
    pub shape: Shape,
    /// What is done.
    pub plan: Plan,
    /// Where its file says so.
    pub written: Written,
}

/// Where a pipeline is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The file, as it was named.
    pub file: String,
    /// Line and column of each step of the shape, counted from 1; of what is called, those of the call.
    pub steps: Vec<(u64, u64)>,
}

/// Whether whoever starts a pipeline by name waits for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They do not.
    Async,
    /// They do.
    Synchronous,
}

/// What of the event that starts a pipeline is carried to all of its steps, besides what they claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carry {
    /// Nothing.
    #[default]
    Claimed,
    /// Its whole payload: what a step claims later adds to it and changes nothing of it.
    Payload,
}

impl Pipeline {
    /// The version that belongs to what it says: the same on every host and after every start.
    fn version_of(&self) -> String {
        let says = (
            (&self.trigger, &self.from_plugin, &self.condition, self.max_depth),
            (self.mode, self.timeout_seconds, self.dedupe_window_seconds),
            (&self.shape, &self.plan),
        );
        let mut json = serde_json::to_vec(&says).expect("a pipeline is texts, numbers, lists and objects");
        match self.carry {
            // What was not there to be said does not change what has not changed.
            Carry::Claimed => {}
            Carry::Payload => json.extend(b"carry: payload"),
        }
        let first = Sha256::digest(&json).first_chunk().copied().map_or(0, u64::from_be_bytes);
        format!("{first:016x}")
    }
}
