//! `longhaul connector`: a connector file is read as the daemon would read it, or tried against a recorded exchange.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use domain::Timestamp;
use engine::ManualClock;
use engine::http::{Connector, Exchange, Secrets, replay};

use crate::config::Config;
use crate::exit::FAILED;
use crate::show::{plain, say};

/// When exchanges are replayed: 2023-11-14T22:13:20Z.
const REPLAYED_AT: Timestamp = Timestamp::from_seconds(1_700_000_000);

const EXAMPLES: &str = "A connector makes an executor of a slow HTTP service: one file says how it takes work, how it is asked, how it is \
stopped, and where in its answers the id, the state, the progress and the result are. Recipes are in examples/connectors.

Examples:
  longhaul connector check printing.yaml
  longhaul connector test printing.yaml --exchange recorded.yaml
  longhaul serve --connector printing.yaml
  longhaul jobs create 'print it' --executor printing --input '{\"pages\": 12}'

A recorded exchange is replayed at 2023-11-14T22:13:20Z, whatever the clock says.

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
            for doubt in connector.doubts() {
                eprintln!("longhaul: {doubt}");
            }
            // Where a file is checked is seldom where it is used.
            let missing = Secrets::read(connector.secrets(), &|name| std::env::var(name).ok()).err();
            let (name, mode) = (connector.name().to_owned(), connector.modes().support.as_str());
            let refused = !connector.doubts().is_empty();
            Config::default()
                .connect(None, connector)
                .map_err(|told| anyhow!("{}: {told}", file.display()))?;
            if refused {
                return Ok(ExitCode::from(FAILED));
            }
            say(format_args!("{} can be used: executor {name:?}, {mode}", file.display()));
            if let Some(missing) = missing {
                say(format_args!("not from here: {missing}"));
            }
        }
        Verb::Test { file, exchange } => {
            let connector = Connector::read(file)?;
            let exchange = Exchange::read(exchange)?;
            // As it was when the exchanges were recorded: what is sent may hold the time.
            let clock = Arc::new(ManualClock::at(REPLAYED_AT));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            for step in runtime.block_on(replay(connector, exchange, clock))? {
                for line in &step.wire {
                    say(format_args!("step {}: {}", step.step, plain(line)));
                }
                say(format_args!("step {}: {}", step.step, step.outcome));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
