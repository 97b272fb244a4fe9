//! The binary: command line, wiring, exit codes. It is the only crate that names a database.

mod commands;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

/// longhaul keeps work that outlives the request that asked for it.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  longhaul verify --data-dir ./longhaul-data      compare every stored row with the ledger
  longhaul rebuild --data-dir ./longhaul-data     write views and agenda anew from the ledger
  longhaul export facts > facts.jsonl             the whole ledger as JSON lines
  longhaul progress --note 'half way'             from inside a job's command: say how it goes

Exit codes: 0 done and clean, 1 something differs or failed (the reason is printed), 2 wrong usage.";

#[derive(Subcommand)]
enum Command {
    /// Compare views, agenda, checksums and bodies with what the facts say; may run beside a daemon
    Verify(Store),
    /// Write views and agenda anew from the facts, all or nothing; refused while a daemon has the store
    Rebuild(Store),
    /// Write what is stored to standard output
    #[command(subcommand)]
    Export(Export),
    /// From inside a command that a job runs: say how it goes
    Progress(Progress),
    /// Run one command for the daemon and end everything that it starts
    #[command(hide = true)]
    Supervise(Supervise),
}

#[derive(Args)]
struct Progress {
    /// One line for people
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// A label of where it is
    #[arg(long, value_name = "LABEL")]
    phase: Option<String>,
    /// The progress, a JSON object such as '{"done": 3, "of": 10}'
    #[arg(value_name = "JSON")]
    object: Option<String>,
}

#[derive(Args)]
struct Supervise {
    /// Between TERM and KILL
    #[arg(long)]
    grace_ms: u64,
    /// The command
    #[arg(last = true, required = true)]
    argv: Vec<OsString>,
}

#[derive(Subcommand)]
enum Export {
    /// The ledger, one fact per line as JSON, in the order of commits; may run beside a daemon
    Facts {
        #[command(flatten)]
        store: Store,
        /// Only facts after this position
        #[arg(long, default_value_t = 0, value_name = "POSITION")]
        after: u64,
    },
    /// Who holds what or held it last, one claim record per line as JSON; may run beside a daemon
    Claims(Store),
}

/// Where the store is.
#[derive(Args)]
struct Store {
    /// The directory with longhaul.sqlite in it
    #[arg(long, default_value = "./longhaul-data", env = "LONGHAUL_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
}

impl Store {
    fn path(&self) -> PathBuf {
        self.data_dir.join("longhaul.sqlite")
    }
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Verify(store) => commands::verify::run(&store.path()),
        Command::Rebuild(store) => commands::rebuild::run(&store.path()),
        Command::Export(Export::Claims(store)) => commands::export::claims(&store.path()),
        Command::Export(Export::Facts { store, after }) => commands::export::facts(&store.path(), after),
        Command::Progress(Progress { note, phase, object }) => {
            commands::progress::run(note.as_deref(), phase.as_deref(), object.as_deref())
        }
        Command::Supervise(Supervise { grace_ms, argv }) => {
            commands::supervise::run(&argv, Duration::from_millis(grace_ms))
        }
    };
    outcome.unwrap_or_else(|error| commands::failed(&error))
}
