//! The bench of the daemon: the release binary on 127.0.0.1 in directories of its own, with very much in its store.
//!
//! The load generator shares the machine with it. What is compared takes turns, and of several rounds the middle one is shown.

mod lanes;
mod memory;
mod overload;
mod poison;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
pub use measure::{connection, line as report, load, process};
use tokio::runtime::Runtime;

use report::Line;

/// Callers and connections.
const CALLERS: usize = 64;
pub const ROUNDS: usize = 3;

/// Measures the daemon over HTTP: its memory with many jobs in the queue, lanes beside a full one, overload, and jobs beside poison.
#[derive(Args)]
pub struct Daemon {
    /// Jobs per round of a rate.
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
    /// Jobs in the queue whose memory is measured.
    #[arg(long, default_value_t = 100_000)]
    many: usize,
    /// Due jobs that wait in the full lane.
    #[arg(long, default_value_t = 1_000_000)]
    lane_backlog: usize,
    /// The daemon; built if it is not named.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// How long each overload lasts.
    #[arg(long, default_value_t = 10)]
    overload_seconds: u64,
    /// Only these figures: memory, lanes, overload, poison.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// What every figure is measured with.
pub struct Place {
    pub binary: PathBuf,
    pub scratch: PathBuf,
    /// For the level of the store: both cores.
    pub runtime: Runtime,
}

impl Place {
    /// With this daemon, or the one of this source tree.
    pub fn new(binary: Option<PathBuf>, scratch: &Path) -> Result<Self> {
        let binary = binary.map_or_else(|| built("longhaul", "longhaul"), Ok)?.canonicalize()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        Ok(Self { binary, scratch: scratch.canonicalize()?, runtime })
    }

    /// An empty directory of this name.
    pub fn fresh(&self, name: &str) -> Result<PathBuf> {
        let dir = self.scratch.join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::create_dir(&dir)?;
        Ok(dir)
    }
}

/// Prints the table; fails if a bound was missed.
pub fn run(daemon: &Daemon, scratch: &Path) -> Result<()> {
    let place = Place::new(daemon.binary.clone(), scratch)?;
    let wanted = |name: &str| daemon.only.is_empty() || daemon.only.iter().any(|only| only == name);
    let mut missed = 0;
    let mut print = |line: Line| missed += usize::from(!line.print());
    report::head();
    if wanted("memory") {
        print(memory::measure(&place, daemon.many)?);
    }
    if wanted("lanes") {
        lanes::measure(&place, daemon.jobs, daemon.lane_backlog)?.into_iter().for_each(&mut print);
    }
    if wanted("overload") {
        overload::measure(&place, daemon.overload_seconds)?.into_iter().for_each(&mut print);
    }
    if wanted("poison") {
        print(poison::measure(&place, daemon.jobs)?);
    }
    ensure!(missed == 0, "{missed} figures miss their bounds");
    Ok(())
}

/// A program of this source tree, with the same settings as this one.
pub fn built(package: &str, program: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--release", "--package", package, "--bin", program]);
    command.arg("--manifest-path").arg(manifest);
    ensure!(command.status().context("cargo cannot be started")?.success(), "{program} was not built");
    Ok(std::env::current_exe()?.with_file_name(program))
}
