//! The deterministic simulator of the kernel: real `engine::Engine` on several nodes over one `store::MemoryStore`,
//! with every store call on an event heap of its own. No threads, no runtime, no clock but the heap.
//!
//! A seed draws a scene (`setting`) and what goes wrong in it (`faults`). Nodes (`node`, `executor`, `poller`, `api`) and
//! those outside (`client`, `peer`, `connector`) are tasks of the `world`; `wire` carries their store calls, `apply` has
//! their effect, `invariants` checks each of them. `routed` publishes events, and has the pipelines that they start. In half of the
//! seeds `workers` puts the engine's own workers in the nodes. `run` takes a seed to its verdict, `batch` many of them. `stepping` is
//! a world of its own, about clocks that are set.

mod api;
mod apply;
mod batch;
mod client;
mod clock;
mod connector;
mod counters;
mod executor;
mod faults;
mod heap;
mod invariants;
mod messages;
mod node;
mod orders;
mod peer;
mod poller;
mod rng;
mod routed;
mod run;
mod script;
mod setting;
mod slab;
mod stepping;
mod store;
mod wire;
mod workers;
mod world;

pub use batch::{Batch, batch};
pub use counters::{Counters, Sometimes, Struck};
pub use faults::Weather;
pub use invariants::Violation;
pub use run::{Failure, Report, Story, run, run_in};
pub use stepping::{SteppingCounters, run_stepping};
