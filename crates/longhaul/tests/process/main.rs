//! The process executor with the real binary as supervisor and real commands: what they say, and that nothing of them stays.

mod artifacts;
mod crowd;
mod deaths;
mod given;
mod kept;
mod lifeline;
mod limits;
mod outputs;
mod progress;
mod teardown;
mod trees;
