//! The signals that ask a daemon to stop.

use std::fmt;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    Terminate,
    Interrupt,
}

impl Signals {
    /// From now on they are ours and end nothing by themselves.
    pub(super) fn listen() -> Result<Self> {
        let one = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self { terminate: one(SignalKind::terminate())?, interrupt: one(SignalKind::interrupt())? })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Terminate,
            _ = self.interrupt.recv() => Told::Interrupt,
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        })
    }
}
