//! The crash drill: real daemons under load, killed and paused at random, and an oracle beside them that believes only its own ledger.
//!
//! A crate of its own so that the judge shares no code with what it judges: it knows the binary, HTTP and the exported ledger, and
//! nothing of the rules, the store or the engine.
//!
//! | file | what it is |
//! | --- | --- |
//! | `plan.rs`, `random.rs` | everything that is left to chance, from the seed |
//! | `kind.rs` | the kinds of work: what is sent, how it may end |
//! | `scratch.rs`, `process.rs`, `nodes.rs` | the directory, the processes, the nodes |
//! | `wire.rs`, `stage.rs`, `client.rs`, `worker.rs` | the load over HTTP |
//! | `judge/`: `oracle.rs`, `history.rs`, `checks.rs` | what was told, what the store says, and what must hold between them: pure |
//! | `rounds.rs`, `judge/inspect.rs`, `calm.rs` | break, look, and wait for the end |
//! | `backups.rs` | backups in between, restored and looked at elsewhere |
//! | `figures.rs`, `report.rs` | what happened, for people and machines |
//! | `plant.rs` | lies, to see the oracle see |

mod backups;
mod calm;
mod client;
mod drill;
mod figures;
mod judge;
mod kind;
mod nodes;
mod plan;
mod plant;
mod process;
mod random;
mod report;
mod rounds;
mod scratch;
mod stage;
mod wire;
mod worker;
pub(crate) use judge::{checks, finding, history, inspect, oracle};

pub use drill::{Outcome, Setting, Verdict, run};
pub use figures::Threshold;
pub use finding::Finding;
pub use kind::Kind;
pub use plant::Plant;
pub use process::{Binary, FAILPOINT};
pub use rounds::Database;
