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

use std::process::{ExitCode, Termination};

use clap::{CommandFactory, Parser, Subcommand};

use client::{AtDaemon, Client};
use database::Location;
use exit::{FAILED, UNPROVEN};

/// longhaul keeps work that outlives the request that asked for it.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, after_help = format!("{EXAMPLES}\n\n{}", exit::EXIT_CODES))]
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

#[derive(Subcommand)]
enum Command {
    Serve(commands::serve::Serve),
    Demo(commands::demo::Demo),
    Drill(commands::drill::Drill),
    Bench(commands::bench::Bench),
    Run(commands::run::Run),
    Jobs(AtDaemon<commands::jobs::Verb>),
    Token(AtDaemon<commands::token::Verb>),
    Executors(commands::executors::Executors),
    Orphans(AtDaemon<commands::orphans::Verb>),
    Nodes(commands::nodes::NodesArguments),
    Claims(AtDaemon<commands::claims::Verb>),
    Clock(commands::clock::ClockArguments),
    Peers(AtDaemon<commands::peers::Verb>),
    Purge(commands::purge::Purge),
    #[command(subcommand)]
    Config(commands::config::Verb),
    #[command(subcommand)]
    Connector(commands::connector::Verb),
    #[command(subcommand)]
    Plugin(commands::plugin::Verb),
    Pipeline(AtDaemon<commands::pipeline::Verb>),
    Runs(AtDaemon<commands::runs::Verb>),
    Events(AtDaemon<commands::events::Verb>),
    Verify(commands::verify::Verify),
    /// Write views and agenda anew from the facts, all or nothing; refused while a daemon has the store
    #[command(after_help = commands::verify::REBUILD_EXAMPLE)]
    Rebuild(Location),
    Backup(commands::backup::BackupArguments),
    Restore(commands::restore::RestoreArguments),
    #[command(subcommand)]
    Export(commands::export::Export),
    Progress(commands::progress::Progress),
    Completions(commands::completions::Completions),
    #[command(flatten)]
    Service(commands::service::Service),
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Attempts wait for it: nothing is made of all the other verbs.
    if words.next().is_some_and(|verb| verb == executors::process::VERB) {
        return ended(commands::supervise::run(words));
    }
    match Arguments::parse().command {
        Command::Serve(serve) => ended(commands::serve::run(&serve)),
        Command::Demo(demo) => ended(commands::demo::run(&demo)),
        Command::Drill(drill) => proven(commands::drill::run(&drill)),
        Command::Bench(bench) => proven(commands::bench::run(&bench)),
        Command::Run(run) => ended(commands::run::run(run)),
        Command::Jobs(jobs) => ended(commands::jobs::run(jobs)),
        Command::Token(token) => ask(token, commands::token::run),
        Command::Executors(executors) => ended(commands::executors::run(&executors)),
        Command::Orphans(orphans) => ask(orphans, commands::orphans::run),
        Command::Nodes(nodes) => ended(commands::nodes::run(&nodes)),
        Command::Claims(claims) => ask(claims, commands::claims::run),
        Command::Clock(clock) => ended(commands::clock::run(&clock)),
        Command::Peers(peers) => ask(peers, commands::peers::run),
        Command::Purge(purge) => ended(commands::purge::run(&purge)),
        Command::Config(config) => ended(commands::config::run(config)),
        Command::Connector(connector) => ended(commands::connector::run(connector)),
        Command::Plugin(plugin) => ended(commands::plugin::run(plugin)),
        Command::Pipeline(pipeline) => ended(commands::pipeline::run(pipeline)),
        Command::Runs(runs) => ask(runs, commands::runs::run),
        Command::Events(events) => ask(events, commands::events::run),
        Command::Verify(verify) => ended(commands::verify::run(&verify)),
        Command::Rebuild(store) => ended(commands::verify::rebuild(&store)),
        Command::Backup(backup) => ended(commands::backup::run(&backup)),
        Command::Restore(restore) => ended(commands::restore::run(&restore)),
        Command::Export(what) => ended(commands::export::run(&what)),
        Command::Progress(progress) => ended(commands::progress::run(&progress)),
        Command::Completions(completions) => {
            ended(commands::completions::run(&completions, Arguments::command()))
        }
        Command::Service(service) => ended(commands::service::run(service)),
    }
}

/// A verb whose own verbs ask a daemon.
fn ask<V: Subcommand>(arguments: AtDaemon<V>, run: fn(&Client, V) -> anyhow::Result<()>) -> ExitCode {
    let AtDaemon { connection, verb } = arguments;
    ended(connection.client().and_then(|client| run(&client, verb)))
}

/// The end of a verb: the code that it says, or done, or an error.
fn ended(outcome: anyhow::Result<impl Termination>) -> ExitCode {
    outcome.map_or_else(|error| exit::exit_as(&error, FAILED), Termination::report)
}

/// The end of a proof. What kept it from being made is told by a code of its own: nothing was found out.
fn proven(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| exit::exit_as(&error, UNPROVEN))
}
