//! `longhaul drill`: kills the daemon again and again under load, on a disk or a database of the user's own, and says what came of it.

mod again;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::Jitter;
use drill::{Binary, Database, Kind, Outcome, Plant, Setting, Verdict};
use engine::{Ids, RandomIds};
use store_sql::ScratchSchema;
use tokio::runtime::Runtime;

use super::proof::{ReportFiles, Scratch, conditions, interruption};
use crate::due_time::seconds_up_to;
use crate::exit::{FAILED, Failed, VOID};
use crate::show::say_if_read;
use again::again;

const HELP: &str = "Examples:
  longhaul drill --seconds 60                           one daemon on a file in a temporary directory
  longhaul drill --seconds 1800 --dir /mnt/that-disk    half an hour on the disk that you mean
  longhaul drill --seconds 300 --database postgres://user@db/scratch --nodes 3
  longhaul drill --seconds 60 --seed 7                  the same decisions again

Starts daemons of its own on a store of its own (a scratch file, or a scratch schema of the database), gives them work of every \
kind, and kills them with -9 at random, while they recover too; pauses them, stops them, cuts connections, kills the service that \
work goes on at. After every round it checks over HTTP and with `longhaul verify` that nothing that was acknowledged is lost, \
nothing is there twice, no end changes, and every view equals the replay of its facts. Then it leaves them alone: everything that \
was accepted has to end. In between it takes backups, restores them elsewhere and looks whether all is in them. Nothing of yours is \
touched.

Prints a table and writes a report: FILE.json for machines, FILE.html with plots. Ctrl-C (SIGTERM and SIGHUP too) ends it: void, \
unless something was found.

Exit codes:
    0  green: enough was broken, and nothing was lost or doubled
    1  red: what should not be is printed; the scratch directory is kept, and the line that makes the same decisions again
    2  wrong usage: also a --dir or --report that cannot be used
    5  void: too little happened in the time to prove anything, or it was interrupted
    6  the drill could not be run, and the reason is printed";

/// Most nodes that a drill may have.
const MAX_NODES: u64 = 16;
/// A day.
const MAX_SECONDS: u64 = 86_400;
/// A scratch schema is named after this and the process.
const SCHEMA: &str = "longhaul_drill";
const DEFAULT_NODES: u64 = 3;

/// Kill the daemon again and again under load, and check that nothing is lost or doubled
#[derive(Args)]
#[command(after_help = HELP)]
pub struct Drill {
    /// How long things are broken; the calm afterwards takes a minute or two more
    #[arg(long, default_value_t = 60, value_name = "TIME", value_parser = seconds_up_to::<MAX_SECONDS>)]
    seconds: u64,
    /// What chance is drawn from; made up and printed if left out
    #[arg(long)]
    seed: Option<u64>,
    // Not from the environment: what a daemon of yours works on is not drilled by accident.
    /// A PostgreSQL database instead of a file; a schema is made in it and taken away afterwards
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Daemons at the same time; more than one needs --database [default: 1 on a file, 3 on a database]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MAX_NODES))]
    nodes: Option<u64>,
    /// Where the scratch directory is made [default: the temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keep the scratch directory and schema, also if nothing was found
    #[arg(long)]
    keep: bool,
    /// Where the report goes, without .json and .html
    #[arg(long, value_name = "FILE", default_value = "./drill-report")]
    report: PathBuf,
    /// Only work of these kinds
    #[arg(long, value_delimiter = ',', value_name = "KINDS", value_parser = kinds())]
    load: Vec<String>,
    /// A lie that must come out red
    #[arg(long, hide = true, value_parser = plants(), conflicts_with = "database")]
    plant: Option<String>,
    /// Rounds that there have to be: it goes on past its time for them, but not for ever
    #[arg(long, hide = true, value_name = "ROUNDS", default_value_t = 0)]
    at_least_rounds: u64,
}

fn kinds() -> PossibleValuesParser {
    Kind::ALL.map(|(_, kind)| kind.name()).into()
}

fn plants() -> PossibleValuesParser {
    Plant::ALL.map(Plant::name).into()
}

pub fn run(drill: &Drill) -> Result<ExitCode> {
    let database = drill.database.as_deref();
    let nodes = drill.nodes.unwrap_or(if database.is_some() { DEFAULT_NODES } else { 1 });
    if nodes > 1 && database.is_none() {
        return Err(Failed::usage("a file has one daemon; give --database for more --nodes").into());
    }
    // First: whoever ends it from here on finds nothing left.
    let interrupted = interruption()?;
    let seed = drill.seed.unwrap_or_else(some_seed);
    let mark = format!("{seed}-{}", std::process::id());
    let scratch = Scratch::make(drill.dir.as_deref(), &format!("longhaul-drill-{mark}"))?;
    let report = ReportFiles::open(&drill.report)?;
    let dir = scratch.path().to_owned();
    let conditions = conditions(&dir, database)?;
    let schema = database.map(Schema::make).transpose()?;
    let place = match &schema {
        Some(schema) => format!("{} and in the schema {}", dir.display(), schema.made.name()),
        None => dir.display().to_string(),
    };
    let named = drill.load.iter().filter_map(|name| Kind::named(name)).collect::<Vec<_>>();
    let setting = Setting {
        binary: Binary(std::env::current_exe().context("cannot find the program of this process")?),
        seconds: drill.seconds,
        at_least_rounds: drill.at_least_rounds,
        seed,
        nodes: usize::try_from(nodes).unwrap_or(1),
        dir: dir.clone(),
        database: schema.map(|schema| Box::new(schema) as Box<dyn Database>),
        kinds: if named.is_empty() { Kind::ALL.map(|(_, kind)| kind).to_vec() } else { named },
        failpoints: cfg!(feature = "failpoints"),
        plant: drill.plant.as_deref().and_then(Plant::named),
        interrupted,
        conditions,
        again: again(drill, seed, nodes),
    };
    say_if_read(format_args!("seed {seed}, {} s, scratch in {place}", drill.seconds));
    let outcome = drill::run(&setting);
    let is_red = outcome.as_ref().is_ok_and(|outcome| outcome.verdict == Verdict::Red);
    if !drill.keep && !is_red {
        drop_schema(&setting);
    }
    // An error names a log that is in there.
    if drill.keep || is_red || outcome.is_err() {
        scratch.keep();
    }
    let outcome = outcome
        .with_context(|| format!("the drill did not begin; what it has left is in {}", dir.display()))?;
    if drill.keep && !is_red {
        say_if_read(format_args!("kept in {place}"));
    }
    say_if_read(&outcome.table);
    let code = told(&setting, &place, &outcome);
    // The verdict stands, whether it can be written down or not.
    if let Err(error) = report.write(&outcome.json, &outcome.page) {
        eprintln!("longhaul: {error:#}");
    }
    Ok(code)
}

/// The verdict and what it stands on.
fn told(setting: &Setting, place: &str, outcome: &Outcome) -> ExitCode {
    match outcome.verdict {
        Verdict::Green => {
            say_if_read("green: nothing was lost, nothing was doubled");
            ExitCode::SUCCESS
        }
        Verdict::Red => {
            for finding in &outcome.findings {
                say_if_read(format_args!("found: {finding}"));
            }
            say_if_read(format_args!(
                "red: {} findings; everything is kept in {place}",
                outcome.findings.len()
            ));
            say_if_read(format_args!("again with: {}", setting.again));
            ExitCode::from(FAILED)
        }
        Verdict::Void => {
            match outcome.interrupted_after {
                Some(seconds) if seconds < setting.seconds => {
                    say_if_read(format_args!("void: interrupted after {seconds} of {} s", setting.seconds));
                }
                Some(_) => {
                    say_if_read(format_args!("void: interrupted in the calm after {} s", setting.seconds));
                }
                None => say_if_read(format_args!(
                    "void: too little happened to prove anything; give it more --seconds, or a quieter machine"
                )),
            }
            ExitCode::from(VOID)
        }
    }
}

fn drop_schema(setting: &Setting) {
    if let Some(Err(error)) = setting.database.as_ref().map(|database| database.drop_schema()) {
        eprintln!("longhaul: the scratch schema is left: {error:#}");
    }
}

/// Short enough to be typed.
fn some_seed() -> u64 {
    let Jitter(share) = RandomIds.jitter();
    u64::from(share)
}

/// A scratch schema, for a caller that does not wait.
struct Schema {
    runtime: Runtime,
    server: String,
    made: ScratchSchema,
}

impl Schema {
    fn make(server: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let name = format!("{SCHEMA}_{}_{}", std::process::id(), some_seed());
        let made = runtime.block_on(ScratchSchema::make(server, &name))?;
        Ok(Self { runtime, server: server.to_owned(), made })
    }
}

impl Database for Schema {
    fn address(&self) -> &str {
        self.made.address()
    }

    fn end_sessions(&self) -> Result<u64> {
        Ok(self.runtime.block_on(self.made.end_sessions())?)
    }

    fn another(&self) -> Result<Box<dyn Database>> {
        Ok(Box::new(Self::make(&self.server)?))
    }

    fn drop_schema(&self) -> Result<()> {
        Ok(self.runtime.block_on(self.made.drop_it())?)
    }
}
