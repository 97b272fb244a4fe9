//! The bench of pulled work: many who pull over HTTP, held against claim, heartbeat and completion on the level of the store in the
//! same run; and what those cost who wait for nothing.

mod drain;
mod idle;
mod stored;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Args;

use crate::daemon::Place;
use crate::daemon::report::{self, Line};

/// Those who pull at the same time.
const PULLERS: usize = 64;

/// Measures work that is pulled: the rate over HTTP, questions to the store for each job, those who wait for nothing.
#[derive(Args)]
pub struct Pulled {
    /// Jobs per round of the rate.
    #[arg(long, default_value_t = 6_000)]
    jobs: usize,
    /// Peers that are connected and idle.
    #[arg(long, default_value_t = 10_000)]
    idle_peers: usize,
    /// How long those who wait for nothing are watched; shorter than they wait.
    #[arg(long, default_value_t = 20)]
    watched_seconds: u64,
    /// The daemon; built if it is not named.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only these figures: drain, idle.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// Prints the table; fails if a bound was missed.
pub fn run(pulled: &Pulled, scratch: &Path) -> Result<()> {
    let place = Place::new(pulled.binary.clone(), scratch)?;
    let wanted = |name: &str| pulled.only.is_empty() || pulled.only.iter().any(|only| only == name);
    let mut missed = 0;
    let mut print = |line: Line| missed += usize::from(!line.print());
    report::head();
    if wanted("drain") {
        drain::measure(&place, pulled.jobs)?.into_iter().for_each(&mut print);
    }
    if wanted("idle") {
        let watched = std::time::Duration::from_secs(pulled.watched_seconds);
        idle::measure(&place, PULLERS, watched)?.into_iter().for_each(&mut print);
        idle::measure(&place, pulled.idle_peers, watched)?.into_iter().for_each(&mut print);
    }
    ensure!(missed == 0, "{missed} figures miss their bounds");
    Ok(())
}
