//! `longhaul drill`: kills the daemon again and again under load, on a disk or a database of the user's own, and says what came of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::Jitter;
use drill::{Binary, Database, Kind, Outcome, Plant, Setting, Verdict};
use engine::{Ids, RandomIds};
use store_sql::ScratchSchema;
use tokio::runtime::Runtime;

use super::interruption;
use crate::exit::Failed;

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

Prints a table and writes a report: FILE.json for machines, FILE.html with plots.

Exit codes:
    0  green: enough was broken, and nothing was lost or doubled
    1  red: what should not be is printed; the scratch directory is kept, and the line that makes the same decisions again
    2  void: too little happened in the time to prove anything";

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
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS))]
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
}

fn kinds() -> PossibleValuesParser {
    Kind::ALL.map(|(_, kind)| kind.name()).into()
}

fn plants() -> PossibleValuesParser {
    Plant::ALL.map(Plant::name).into()
}

pub fn run(drill: Drill) -> Result<ExitCode> {
    let database = drill.database.as_deref();
    let nodes = drill.nodes.unwrap_or(if database.is_some() { DEFAULT_NODES } else { 1 });
    if nodes > 1 && database.is_none() {
        return Err(Failed::usage("a file has one daemon; give --database for more --nodes").into());
    }
    let seed = drill.seed.unwrap_or_else(some_seed);
    let mark = format!("{seed}-{}", std::process::id());
    let dir = drill.dir.clone().unwrap_or_else(std::env::temp_dir).join(format!("longhaul-drill-{mark}"));
    let schema = match database {
        Some(server) => Some(Schema::make(server)?),
        None => None,
    };
    let named = drill.load.iter().filter_map(|name| Kind::named(name)).collect::<Vec<_>>();
    let setting = Setting {
        binary: Binary(std::env::current_exe().context("cannot find the program of this process")?),
        seconds: drill.seconds,
        seed,
        nodes: usize::try_from(nodes).unwrap_or(1),
        dir: dir.clone(),
        database: schema.map(|schema| Box::new(schema) as Box<dyn Database>),
        kinds: if named.is_empty() { Kind::ALL.map(|(_, kind)| kind).to_vec() } else { named },
        failpoints: cfg!(feature = "failpoints"),
        plant: drill.plant.as_deref().and_then(Plant::named),
        interrupted: interruption()?,
    };
    println!("seed {seed}, {} s, scratch in {}", drill.seconds, dir.display());
    let outcome = drill::run(&setting);
    let keep = drill.keep || outcome.as_ref().map_or(true, |outcome| outcome.verdict == Verdict::Red);
    tidy(&setting, keep);
    let outcome = outcome?;
    write(&drill.report, "json", &outcome.json)?;
    write(&drill.report, "html", &outcome.page)?;
    Ok(told(&drill, nodes, seed, &dir, &outcome))
}

/// The verdict and what it stands on.
fn told(drill: &Drill, nodes: u64, seed: u64, dir: &Path, outcome: &Outcome) -> ExitCode {
    println!("{}", outcome.table);
    println!("report: {0}.json, {0}.html", drill.report.display());
    match outcome.verdict {
        Verdict::Green => {
            println!("green: nothing was lost, nothing was doubled");
            ExitCode::SUCCESS
        }
        Verdict::Red => {
            for finding in &outcome.findings {
                println!("found: {finding}");
            }
            let database = drill.database.as_deref().map(|_| " --database ...").unwrap_or_default();
            println!("red: {} findings; everything is kept in {}", outcome.findings.len(), dir.display());
            let load = if drill.load.is_empty() {
                String::new()
            } else {
                format!(" --load {}", drill.load.join(","))
            };
            println!(
                "again with: longhaul drill --seconds {} --seed {seed} --nodes {nodes}{load}{database}",
                drill.seconds
            );
            ExitCode::FAILURE
        }
        Verdict::Void => {
            println!(
                "void: too little happened to prove anything; give it more --seconds, or a quieter machine"
            );
            ExitCode::from(2)
        }
    }
}

fn tidy(setting: &Setting, keep: bool) {
    if keep {
        return;
    }
    if let Err(error) = std::fs::remove_dir_all(&setting.dir) {
        eprintln!("longhaul: {} is left: {error}", setting.dir.display());
    }
    if let Some(Err(error)) = setting.database.as_ref().map(|database| database.drop_schema()) {
        eprintln!("longhaul: the scratch schema is left: {error:#}");
    }
}

fn write(report: &Path, kind: &str, text: &str) -> Result<()> {
    let path = PathBuf::from(format!("{}.{kind}", report.display()));
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
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
