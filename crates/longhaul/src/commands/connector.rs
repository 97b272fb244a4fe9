//! `longhaul connector`: a connector file is read as the daemon would read it, or tried against a recorded exchange.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, Subcommand};
use domain::Timestamp;
use engine::SystemClock;
use engine::http::{Connector, Exchange, Secrets, replay};

use crate::show::say;

const EXAMPLES: &str = "A connector makes an executor of a slow HTTP service: one file says how it takes work, how it is asked, how it is \
stopped, and where in its answers the id, the state, the progress and the result are. Recipes are in examples/connectors.

Examples:
  longhaul connector check printing.yaml
  longhaul connector test printing.yaml --exchange recorded.yaml
  longhaul serve --connector printing.yaml
  longhaul jobs create 'print it' --executor printing --input '{\"pages\": 12}'

Exit codes: 0 it can be used, 1 it cannot, or it differs from what was recorded; the reason is printed with its place.";

/// Check and try connectors
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct ConnectorArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Read a connector as the daemon would, and say what is wrong with it
    #[command(after_help = EXAMPLES)]
    Check {
        /// The connector
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Replay a recorded exchange: what would be sent, and what the answers mean; nothing is sent
    #[command(after_help = EXAMPLES)]
    Test {
        /// The connector
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// What was recorded: YAML or JSON
        #[arg(long, value_name = "FILE")]
        exchange: PathBuf,
    },
}

pub fn run(arguments: &ConnectorArguments) -> Result<ExitCode> {
    match &arguments.verb {
        Verb::Check { file } => {
            let connector = Connector::read(file)?;
            let modes = connector.modes();
            say(format_args!(
                "{} can be used: executor {:?}, {}",
                file.display(),
                connector.name(),
                modes.support.as_str()
            ));
            // Where a file is checked is seldom where it is used.
            if let Err(missing) = Secrets::read(connector.secrets(), &|name| std::env::var(name).ok()) {
                say(format_args!("not from here: {missing}"));
            }
        }
        Verb::Test { file, exchange } => {
            let connector = Connector::read(file)?;
            let exchange = Exchange::read(exchange)?;
            let clock = Arc::new(SystemClock::starting_at(Timestamp::default()));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            for step in runtime.block_on(replay(connector, exchange, clock))? {
                say(format_args!("step {}: {}", step.step, step.outcome));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
