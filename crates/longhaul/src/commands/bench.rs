//! `longhaul bench`: how fast durable work goes on a disk or a database of the user's own, beside the raw database doing the same rows.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use measure::{Level, Setting};

use super::proof::{ReportFiles, Scratch, conditions, interruption};
use crate::due_time::seconds_up_to;
use crate::exit::{FAILED, VOID};
use crate::show::say_if_read;

const HELP: &str = "Examples:
  longhaul bench                                        everything, on a file: two and a half minutes
  longhaul bench --dir /mnt/that-disk                   on the disk that you mean
  longhaul bench --database postgres://user@db/scratch  on PostgreSQL
  longhaul bench --only store,http --seconds 60         some levels, and more time for each
  longhaul bench --only growth --records 1000000        beside a million records, 4 GB of disk

Levels: store (jobs through the core, in this process), http (the daemon over HTTP), executors \
(built in, a command, a plugin, a service that answers at once), operations (work at a service that is \
asked about), pipelines (events that start runs), growth (the same work beside more and more records), \
idle, start.

Everything happens in a store of its own: files in a scratch directory, or scratch schemas of the \
database, which are taken away afterwards. Beside every figure stands the raw database doing the same \
rows in the same run: read the ratios, absolute figures differ from machine to machine. What is compared \
takes turns, and the middle of three rounds is told. Let nothing else run on the machine. Ctrl-C (SIGTERM and SIGHUP too) ends it and \
prints what was measured so far.

Prints tables in Markdown; with --report, FILE.json for machines and FILE.html with plots too.

Exit codes:
    0  every bound holds
    1  a bound is missed
    2  wrong usage: also a --dir or --report that cannot be used
    5  interrupted, and no bound was missed before that
    6  something could not be measured, and the reason is printed";

/// A day.
const MAX_SECONDS: u64 = 86_400;
const MIN_RECORDS: u64 = 1_000;
const MAX_RECORDS: u64 = 10_000_000;

/// Measure how fast durable work goes here, beside the raw database doing the same rows
#[derive(Args)]
#[command(after_help = HELP)]
pub struct Bench {
    /// The time that is measured, shared out among the levels; starting daemons and filling stores comes on top
    #[arg(long, default_value_t = 120, value_name = "TIME", value_parser = seconds_up_to::<MAX_SECONDS>)]
    seconds: u64,
    // Not from the environment: what a daemon of yours works on is not measured by accident.
    /// A PostgreSQL database instead of a file; schemas are made in it and taken away afterwards
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Where the scratch directory is made: the disk that is measured [default: the temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only these levels
    #[arg(long, value_delimiter = ',', value_name = "LEVELS", value_parser = levels())]
    only: Vec<String>,
    /// The most records that growth is measured beside
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(MIN_RECORDS..=MAX_RECORDS))]
    records: u64,
    /// Where a report goes, without .json and .html
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// A bound that nothing keeps
    #[arg(long, hide = true)]
    plant_a_miss: bool,
}

fn levels() -> PossibleValuesParser {
    Level::ALL.map(|(level, _)| level.name()).into()
}

pub fn run(bench: &Bench) -> Result<ExitCode> {
    // First: whoever ends it from here on finds nothing left.
    let interrupted = interruption()?;
    let scratch = Scratch::make(bench.dir.as_deref(), &format!("longhaul-bench-{}", std::process::id()))?;
    let report = bench.report.as_deref().map(ReportFiles::open).transpose()?;
    let is_wanted =
        |level: Level| bench.only.is_empty() || bench.only.iter().any(|only| only == level.name());
    let setting = Setting {
        binary: std::env::current_exe().context("cannot find the program of this process")?,
        seconds: bench.seconds,
        database: bench.database.clone(),
        scratch: scratch.path().to_owned(),
        levels: Level::ALL.map(|(level, _)| level).into_iter().filter(|level| is_wanted(*level)).collect(),
        records: usize::try_from(bench.records)?,
        plant_a_miss: bench.plant_a_miss,
        interrupted,
        conditions: conditions(scratch.path(), bench.database.as_deref())?,
    };
    let outcome = measure::run(&setting)?;
    drop(scratch);
    say_if_read(outcome.table.trim_end());
    if outcome.missed > 0 {
        say_if_read(format_args!("\n{} missed", outcome.missed));
    }
    if let Some(level) = outcome.interrupted {
        say_if_read(format_args!(
            "\ninterrupted in {}: levels that were measured before it stand above",
            level.name()
        ));
    }
    if let Some(report) = report {
        say_if_read("");
        report.write(&outcome.json, &outcome.page)?;
    }
    Ok(match (outcome.missed, outcome.interrupted) {
        (0, None) => ExitCode::SUCCESS,
        (0, Some(_)) => ExitCode::from(VOID),
        (_, _) => ExitCode::from(FAILED),
    })
}
