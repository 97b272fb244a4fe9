//! The bench of PostgreSQL: a throw-away server with fsync on, several nodes on it beside one, and idle ones.
//!
//! The server, the nodes and the load generator share the machine. What is compared takes turns, and of several rounds the middle
//! one is shown.

mod idle;
mod nodes;
mod server;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Args;

use crate::daemon::Place;
use crate::daemon::report;
use crate::disk;
use server::Server;

/// Measures nodes on PostgreSQL: two and four beside one, and idle ones.
#[derive(Args)]
pub struct Postgres {
    #[command(flatten)]
    sizes: Sizes,
    /// The daemon; built if it is not named.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where the throw-away server goes: the disk that is measured. The server's own user must be able to enter it.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    server_dir: PathBuf,
    /// Only these figures: nodes, idle.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// How much of everything.
#[derive(Args)]
struct Sizes {
    /// Jobs per round of a rate.
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
    /// Rounds of each comparison.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long the idle nodes are watched.
    #[arg(long, default_value_t = 30)]
    idle_seconds: u64,
}

/// Measures some lines of the table.
type Measure = fn(&Place, &Server, &Sizes) -> Result<Vec<report::Line>>;

/// Prints the table; fails if a bound was missed.
pub fn run(postgres: &Postgres, scratch: &Path) -> Result<()> {
    let place = Place::new(postgres.binary.clone(), scratch)?;
    let server = Server::start(&postgres.server_dir);
    let syncs = disk::syncs_per_second(scratch)?;
    println!("bare disk: {syncs:.0} fdatasync/s of one appended 4 KiB page\n");
    let figures: [(&str, Measure); 2] = [("nodes", nodes::measure), ("idle", idle::measure)];
    let mut missed = 0;
    report::head();
    for (name, measure) in figures {
        if postgres.only.is_empty() || postgres.only.iter().any(|only| only == name) {
            let lines = measure(&place, &server, &postgres.sizes)?;
            missed += lines.iter().filter(|line| !line.print()).count();
        }
    }
    ensure!(missed == 0, "{missed} figures miss their bounds");
    Ok(())
}
