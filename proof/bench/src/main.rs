//! The deep benches: what `longhaul bench` has no time for. Without a word: what a finished job takes on disk, and how fast a store of them
//! is verified and rebuilt.

mod daemon;
mod deferred;
mod peers;
mod pipelines;
mod postgres;
mod pulled;
mod sizes;
mod walks;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};
use measure::{cycle, disk};

/// Measures the bytes of finished jobs on SQLite, and verify and rebuild beside raw SQLite reading the same rows.
#[derive(Parser)]
struct Arguments {
    /// Jobs in the store.
    #[arg(long, default_value_t = 60_000)]
    jobs: usize,
    /// Where the scratch databases go: the disk that is measured. They are deleted afterwards.
    #[arg(long, default_value = ".", global = true)]
    dir: PathBuf,
    #[command(subcommand)]
    other: Option<Other>,
}

/// What else there is to measure.
#[derive(Subcommand)]
enum Other {
    Daemon(daemon::Daemon),
    Deferred(deferred::Deferred),
    Pipelines(pipelines::Pipelines),
    Postgres(postgres::Postgres),
    Pulled(pulled::Pulled),
    #[command(hide = true)]
    PeersOurs(peers::Ours),
    #[command(hide = true)]
    PollService(deferred::Service),
    #[command(hide = true)]
    BarePolls(deferred::BarePolls),
}

/// Those who fill the store.
const CALLERS: usize = 256;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let scratch = || tempfile::Builder::new().prefix("longhaul-bench-").tempdir_in(&arguments.dir);
    match &arguments.other {
        Some(Other::Daemon(daemon)) => daemon::run(daemon, scratch()?.path()),
        Some(Other::Deferred(deferred)) => deferred::run(deferred, scratch()?.path()),
        Some(Other::Pipelines(pipelines)) => pipelines::run(pipelines, scratch()?.path()),
        Some(Other::Postgres(postgres)) => postgres::run(postgres, scratch()?.path()),
        Some(Other::Pulled(pulled)) => pulled::run(pulled, scratch()?.path()),
        Some(Other::PeersOurs(ours)) => peers::run(ours),
        Some(Other::PollService(_)) => deferred::serve(),
        Some(Other::BarePolls(bare)) => deferred::bare_polls(bare),
        None => core(&arguments, scratch()?.path()),
    }
}

fn core(arguments: &Arguments, scratch: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (path, jobs) = (scratch.join("longhaul.sqlite"), arguments.jobs.max(CALLERS));
    runtime.block_on(cycle::run(&path, CALLERS, jobs))?;
    sizes::print(&path, jobs)?;
    println!();
    walks::print(&path)
}
