//! The signals that ask a daemon to stop.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on they are ours and end nothing by themselves.
    pub(super) fn listen() -> Result<Self> {
        let one = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self { terminate: one(SignalKind::terminate())?, interrupt: one(SignalKind::interrupt())? })
    }

    /// The name of the next one.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
