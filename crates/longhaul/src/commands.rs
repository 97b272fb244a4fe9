//! One file per verb.

pub mod completions;
pub mod config;
pub mod connector;
pub mod demo;
pub mod events;
pub mod executors;
pub mod export;
pub mod jobs;
pub mod nodes;
pub mod orphans;
pub mod peers;
pub mod pipeline;
pub mod plugin;
pub mod progress;
pub mod purge;
pub mod rebuild;
pub mod run;
pub mod runs;
pub mod serve;
pub mod supervise;
pub mod token;
pub mod verify;

use anyhow::Result;

/// Runs what has to wait for a server, in a command that has nothing else to do.
fn wait_for<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
