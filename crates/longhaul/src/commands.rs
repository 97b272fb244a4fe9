//! One file per verb.

pub mod backup;
pub mod bench;
pub mod bench_service;
pub mod claims;
pub mod clock;
pub mod completions;
pub mod config;
pub mod connector;
pub mod demo;
pub mod drill;
pub mod drill_service;
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
mod proof;
pub mod purge;
pub mod rebuild;
pub mod restore;
pub mod run;
pub mod runs;
pub mod serve;
pub mod supervise;
pub mod token;
pub mod verify;

use anyhow::{Result, bail};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Runs what has to wait for a server, in a command that has nothing else to do.
fn wait_for<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// From now on this process is killed when the one that started it ends, however that ends.
fn end_with(parent: u32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before that was said.
    let now = getppid().map(|pid| pid.as_raw_nonzero().get());
    if now != i32::try_from(parent).ok() {
        bail!("process {parent} has ended, or has not started this one");
    }
    Ok(())
}
