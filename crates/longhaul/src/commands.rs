//! One file per verb, or for two that are alike.

pub mod backup;
pub mod bench;
pub mod claims;
pub mod clock;
pub mod completions;
pub mod config;
pub mod connector;
pub mod demo;
pub mod drill;
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
pub mod restore;
pub mod run;
pub mod runs;
pub mod serve;
pub mod service;
pub mod supervise;
pub mod token;
pub mod verify;

use std::future::poll_fn;
use std::task::Poll;

use anyhow::{Result, bail};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Runs what has to wait for a server, in a command that has nothing else to do.
fn wait_for<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    runtime()?.block_on(work)
}

/// For a command that waits now and then.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Runs what serves, on all processors.
fn with_workers<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

/// Has each of these signals told from now on, in a thread of its own: the first is 0.
fn on_signals(kinds: &[SignalKind], mut tell: impl FnMut(u32) + Send + 'static) -> Result<()> {
    let runtime = runtime()?;
    let mut signals = {
        let _in_runtime = runtime.enter();
        kinds.iter().map(|kind| signal(*kind)).collect::<std::io::Result<Vec<_>>>()?
    };
    std::thread::spawn(move || {
        for time in 0.. {
            runtime.block_on(poll_fn(|cx| {
                let came = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
                if came { Poll::Ready(()) } else { Poll::Pending }
            }));
            tell(time);
        }
    });
    Ok(())
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
