//! The bench of the core: what a durable job costs, beside the raw database and the bare disk in the same run.
//!
//! It prints ratios; absolute figures differ from machine to machine.

mod daemon;
mod deferred;
mod latency;
mod peers;
mod pipelines;
mod postgres;
mod pulled;
mod raw;
mod sizes;
mod walks;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};
use measure::{cycle, disk};

/// Measures create + claim + complete of no-op jobs on SQLite, and raw SQLite writing the same rows.
#[derive(Parser)]
struct Arguments {
    /// Jobs at 256 callers; the other runs scale with it.
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

const ROUNDS: usize = 3;

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

    let syncs = disk::syncs_per_second(scratch)?;
    println!("bare disk: {syncs:.0} fdatasync/s of one appended 4 KiB page\n");

    println!(
        "| callers | jobs/s | commits/s | requests per transaction | raw jobs/s in such batches | ratio |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for (callers, jobs) in [(1, arguments.jobs / 30), (32, arguments.jobs / 3), (256, arguments.jobs)] {
        let jobs = jobs.max(callers);
        // Several short rounds in turns, and the middle one: a shared disk has moods.
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let path = fresh(scratch, &format!("ours-{callers}"))?;
            let cycle = runtime.block_on(cycle::run(&path, callers, jobs))?;
            let raw_path = fresh(scratch, "raw")?;
            let raw = raw::run(&raw_path, &path, jobs, cycle.requests_per_batch)?;
            rounds.push((cycle, raw));
        }
        let ratio = |(cycle, raw): &(cycle::Cycle, f64)| cycle.jobs_per_second / raw;
        rounds.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let (cycle, raw) = &rounds[ROUNDS / 2];
        println!(
            "| {callers} | {:.0} | {:.0} | {:.1} | {raw:.0} | {:.2} |",
            cycle.jobs_per_second,
            cycle.jobs_per_second * 3.0,
            cycle.requests_per_batch,
            cycle.jobs_per_second / raw,
        );
    }
    let (path, jobs) = (scratch.join("ours-256.sqlite"), arguments.jobs.max(256));

    println!();
    latency::print(&runtime, scratch)?;
    println!();
    sizes::print(&path, jobs)?;
    println!();
    walks::print(&path)?;
    Ok(())
}

/// The path of a database that is not there.
fn fresh(dir: &Path, name: &str) -> Result<PathBuf> {
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let path = dir.join(format!("{name}.sqlite{suffix}"));
        if path.exists() {
            std::fs::remove_file(path)?;
        }
    }
    Ok(dir.join(format!("{name}.sqlite")))
}
