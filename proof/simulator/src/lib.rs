//! The deterministic simulator of the kernel: real `engine::Engine` on several nodes over one `store::MemoryStore`,
//! with every store call on an event heap of its own. No threads, no runtime, no clock but the heap.
//!
//! A seed draws a scene (`setting`) and what goes wrong in it (`faults`). Nodes (`node`, `executor`, `poller`, `api`) and
//! those outside (`client`, `peer`, `connector`) are tasks of the `world`; `wire` carries their store calls, `apply` has
//! their effect, `invariants` checks each of them. `routed` publishes events, and has the pipelines that they start. In half of the
//! seeds `workers` puts the engine's own workers in the nodes. `stale` repeats reports after the end. `run` takes a seed to its verdict,
//! `batch` many of them. `stepping` and `agreeing` are worlds of their own, about clocks that are set.

mod actors;
mod agreeing;
mod batch;
mod connector;
mod counters;
mod faults;
mod invariants;
mod node;
mod run;
mod scheduler;
mod setting;
mod stepping;
mod store;
mod world;
pub(crate) use actors::{client, messages, orders, peer, routed, stale};
pub(crate) use node::{api, executor, poller, script, workers};
pub(crate) use scheduler::{clock, heap, rng, slab};
pub(crate) use store::{apply, wire};

pub use agreeing::{AgreeingCounters, run_agreeing};
pub use batch::{Batch, batch};
pub use counters::{Counters, Sometimes, Struck};
pub use faults::Weather;
pub use invariants::Violation;
pub use run::{Failure, Report, Story, run, run_in};
pub use stepping::{SteppingCounters, run_stepping};
