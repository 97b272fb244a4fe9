//! The bench of work outside: a daemon with very many open operations, with many that are due, and with a service that hangs.
//!
//! The service that it asks is another process on the same machine. What is compared takes turns, and of several rounds the middle
//! one is shown.

mod bare;
mod due;
mod flood;
mod host;
mod hung;
mod open;
mod parked;
mod service;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Args;

pub use bare::{BarePolls, run as bare_polls};
pub use service::{Service, serve};

use crate::daemon::Place;
use crate::daemon::report;
use service::ServiceProcess;

/// Measures the daemon with operations that go on outside.
#[derive(Args)]
pub struct Deferred {
    #[command(flatten)]
    sizes: Sizes,
    /// The daemon; built if it is not named.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only these figures: parked, due, hung, flood.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// How much of everything.
#[derive(Args)]
struct Sizes {
    /// Operations that are open and not due.
    #[arg(long, default_value_t = 1_000_000)]
    open: usize,
    /// Operations that are due within one window.
    #[arg(long, default_value_t = 10_000)]
    due: usize,
    /// Operations that are overdue when the daemon starts.
    #[arg(long, default_value_t = 50_000)]
    overdue: usize,
    /// How long the daemon is watched while nothing is due.
    #[arg(long, default_value_t = 20)]
    idle_seconds: u64,
}

/// Measures some lines of the table.
type Measure = fn(&Place, &ServiceProcess, &Sizes) -> Result<Vec<report::Line>>;

/// Prints the table; fails if a bound was missed.
pub fn run(deferred: &Deferred, scratch: &Path) -> Result<()> {
    let place = Place::new(deferred.binary.clone(), scratch)?;
    let service = ServiceProcess::start()?;
    let sizes = &deferred.sizes;
    let figures: [(&str, Measure); 4] = [
        ("parked", parked::measure),
        ("due", due::measure),
        ("hung", hung::measure),
        ("flood", flood::measure),
    ];
    let mut missed = 0;
    report::head();
    for (name, measure) in figures {
        if deferred.only.is_empty() || deferred.only.iter().any(|only| only == name) {
            let lines = measure(&place, &service, sizes)?;
            missed += lines.iter().filter(|line| !line.print()).count();
        }
    }
    ensure!(missed == 0, "{missed} figures miss their bounds");
    Ok(())
}
