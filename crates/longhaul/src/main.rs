//! The binary: command line, wiring, exit codes. It is the only crate that names a database.
//!
//! Nothing here prints with `println!`, which panics when the reader is gone: `show::say` and `show::say_if_read` do not.

#![deny(clippy::print_stdout)]

mod builtin;
mod client;
mod commands;
mod config;
mod daemon;
mod database;
mod due_time;
mod exit;
mod log;
mod show;

use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

use database::Location;

/// longhaul keeps work that outlives the request that asked for it.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, after_help = help())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  longhaul demo                                   a daemon with work to look at: the quickest way in
  longhaul serve                                  the daemon, on 127.0.0.1:7420
  longhaul run -- make all                        any command as a durable job, followed to its end
  longhaul jobs create 'say hello' --executor noop --input '{\"hello\": \"world\"}'
  longhaul jobs list                              what there is
  longhaul jobs wait work-0123                    until it is over
  longhaul jobs logs work-0123 --follow           what its command says
  longhaul executors                              what --executor may name
  longhaul plugin new greet --lang bash           a plugin to begin with
  longhaul orphans list                           what may still run outside
  longhaul nodes                                  who works on this store
  longhaul peers list                             who pulls work, and who is there
  longhaul pipeline check                         what follows which event
  longhaul events publish tide.changed            starts the pipelines that listen
  longhaul drill --seconds 60                     killed again and again: is anything lost?
  longhaul bench                                  how fast is it here, beside the raw database?
  longhaul verify                                 compare every stored row with the ledger
  longhaul export facts > facts.jsonl             the whole ledger as JSON lines
  longhaul backup nightly.backup                  everything, beside the running daemon
  longhaul restore nightly.backup --data-dir new  a store again, on SQLite or PostgreSQL

Every verb has its own --help with examples.";

fn help() -> String {
    format!("{EXAMPLES}\n\n{}", exit::EXIT_CODES)
}

#[derive(Subcommand)]
enum Command {
    Serve(commands::serve::Serve),
    Demo(commands::demo::Demo),
    Drill(commands::drill::Drill),
    Bench(commands::bench::Bench),
    Run(commands::run::Run),
    Jobs(commands::jobs::Jobs),
    Token(commands::token::TokenArguments),
    Executors(commands::executors::Executors),
    Orphans(commands::orphans::OrphansArguments),
    Nodes(commands::nodes::NodesArguments),
    Claims(commands::claims::ClaimsArguments),
    Clock(commands::clock::ClockArguments),
    Peers(commands::peers::PeersArguments),
    Purge(commands::purge::Purge),
    Config(commands::config::ConfigArguments),
    Connector(commands::connector::ConnectorArguments),
    Plugin(commands::plugin::PluginArguments),
    Pipeline(commands::pipeline::PipelineArguments),
    Runs(commands::runs::RunsArguments),
    Events(commands::events::EventsArguments),
    Verify(commands::verify::Verify),
    /// Write views and agenda anew from the facts, all or nothing; refused while a daemon has the store
    #[command(after_help = REBUILD)]
    Rebuild(Location),
    Backup(commands::backup::BackupArguments),
    Restore(commands::restore::RestoreArguments),
    /// Write what is stored to standard output
    #[command(subcommand, after_help = EXPORT)]
    Export(Export),
    /// From inside a command that a job runs: say how it goes
    #[command(after_help = PROGRESS)]
    Progress(Progress),
    Completions(commands::completions::Completions),
    /// The service that a drill gives work to
    #[command(hide = true)]
    DrillService(commands::drill_service::DrillService),
    /// The service that a bench gives work to
    #[command(hide = true)]
    BenchService(commands::bench_service::BenchService),
}

const REBUILD: &str = "Example:
  longhaul rebuild --data-dir ./longhaul-data

Exit codes: 0 done, 1 nothing was changed, and the reason is printed.";
const EXPORT: &str = "Examples:
  longhaul export facts > facts.jsonl             the whole ledger as JSON lines
  longhaul export facts --after 1200              what came since
  longhaul export claims                          who holds what";
const PROGRESS: &str = "Examples:
  longhaul progress --note 'half way'
  longhaul progress --phase printing '{\"done\": 3, \"of\": 10}'      done and of make a bar";

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

#[derive(Subcommand)]
enum Export {
    /// The ledger, one fact per line as JSON, in the order of commits; may run beside a daemon
    Facts {
        #[command(flatten)]
        store: Location,
        /// Only facts after this position
        #[arg(long, default_value_t = 0, value_name = "POSITION")]
        after: u64,
    },
    /// Who holds what or held it last, one claim record per line as JSON; may run beside a daemon
    Claims(Location),
    /// The facts of work outside, with flat payloads
    Productions {
        #[command(flatten)]
        store: Location,
        /// Only facts after this position
        #[arg(long, default_value_t = 0, value_name = "POSITION")]
        after: u64,
    },
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Attempts wait for it: nothing is made of all the other verbs.
    if words.next().is_some_and(|verb| verb == executors::process::VERB) {
        return commands::supervise::run(words).unwrap_or_else(|error| exit::exit(&error));
    }
    let outcome = match Arguments::parse().command {
        Command::Serve(serve) => commands::serve::run(&serve),
        Command::Demo(demo) => commands::demo::run(&demo),
        Command::Drill(drill) => Ok(commands::drill::run(&drill)),
        Command::Bench(bench) => Ok(commands::bench::run(&bench)),
        Command::Run(run) => commands::run::run(run),
        Command::Jobs(jobs) => commands::jobs::run(jobs),
        Command::Token(token) => commands::token::run(token),
        Command::Executors(executors) => commands::executors::run(&executors),
        Command::Orphans(orphans) => commands::orphans::run(orphans),
        Command::Nodes(nodes) => commands::nodes::run(nodes),
        Command::Claims(claims) => commands::claims::run(claims),
        Command::Clock(clock) => commands::clock::run(clock),
        Command::Peers(peers) => commands::peers::run(peers),
        Command::Purge(purge) => commands::purge::run(&purge),
        Command::Config(config) => commands::config::run(&config),
        Command::Connector(connector) => commands::connector::run(&connector),
        Command::Plugin(plugin) => commands::plugin::run(plugin),
        Command::Pipeline(pipeline) => commands::pipeline::run(&pipeline),
        Command::Runs(runs) => commands::runs::run(runs),
        Command::Events(events) => commands::events::run(events),
        Command::Verify(verify) => commands::verify::run(&verify),
        Command::Rebuild(store) => commands::rebuild::run(&store),
        Command::Backup(backup) => commands::backup::run(&backup),
        Command::Restore(restore) => commands::restore::run(&restore),
        Command::Export(Export::Claims(store)) => commands::export::claims(&store),
        Command::Export(Export::Productions { store, after }) => commands::export::productions(&store, after),
        Command::Export(Export::Facts { store, after }) => commands::export::facts(&store, after),
        Command::Progress(Progress { note, phase, object }) => {
            commands::progress::run(note.as_deref(), phase.as_deref(), object.as_deref())
        }
        Command::Completions(completions) => commands::completions::run(&completions, Arguments::command()),
        Command::DrillService(service) => commands::drill_service::run(&service),
        Command::BenchService(service) => commands::bench_service::run(&service),
    };
    outcome.unwrap_or_else(|error| exit::exit(&error))
}
