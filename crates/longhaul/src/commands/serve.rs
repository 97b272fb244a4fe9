//! `longhaul serve`: the daemon, until a signal.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args;
use engine::Dispatching;
use executors::http::Connector;

use crate::client::DATA_DIR;
use crate::config::{Config, ConfigArgument, SandboxWord};
use crate::daemon::{self, DaemonOptions, Running};
use crate::database::DatabaseArgument;
use crate::log;

const EXAMPLES: &str = "Examples:
  longhaul serve                                      on 127.0.0.1:7420, data in ./longhaul-data
  longhaul serve --listen 127.0.0.1:0 --data-dir /var/lib/longhaul
  longhaul serve --connector printing.yaml            a slow HTTP service as an executor
  longhaul serve --database postgres://db/longhaul    on PostgreSQL, with other nodes
  longhaul serve --config longhaul.yaml               executors, lanes, retention

`longhaul connector --help` and `longhaul config check --help` explain the files.

When it is ready it prints one line with its URL, and leaves daemon.json (URL, process id) and admin.token (the first \
administrator's token, for its user alone) in the data directory, where the other commands find them.

SIGTERM or SIGINT stop it: nothing new begins, what runs has ten seconds, a question to a service thirty; exit code 0. \
A second signal ends it at once. What did not finish goes on after the next start.

Exit code 1: it could not start, or the disk failed. Log lines go to standard error; LONGHAUL_LOG=debug says more.";

/// Accept jobs over HTTP, keep them, get them done
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Where everything is kept; made if it is not there
    #[arg(long, default_value = DATA_DIR, env = "LONGHAUL_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
    #[command(flatten)]
    database: DatabaseArgument,
    /// Where to listen; port 0 takes any that is free [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The configuration [default: ./longhaul.yaml if it is there]
    #[arg(long, env = "LONGHAUL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// A service that can do jobs; may be given more than once
    #[arg(long, value_name = "FILE")]
    connector: Vec<PathBuf>,
    /// Take no job by itself; jobs are run only when someone asks
    #[arg(long)]
    no_dispatch: bool,
    /// Start although the store is damaged or has lost acknowledged commits, and write that down; restore a backup instead if there is one
    #[arg(long)]
    accept_loss: bool,
    /// Whether commands, plugins and backends run in the sandbox, whatever the configuration says [default: preferred]
    #[arg(long, env = "LONGHAUL_SANDBOX", value_name = "WORD")]
    sandbox: Option<SandboxWord>,
    /// End at once when the process with this id, which has started it, ends
    #[arg(long, hide = true, value_name = "PID")]
    end_with: Option<u32>,
}

pub fn run(serve: &Serve) -> Result<ExitCode> {
    if let Some(parent) = serve.end_with {
        super::end_with(parent)?;
    }
    let mut config = config(&ConfigArgument { config: serve.config.clone() })?;
    for path in &serve.connector {
        let connector = Connector::read_signed(path, &config.signers)?;
        for doubt in connector.doubts() {
            crate::log::say!("warning: {doubt}");
        }
        config.connect(None, connector).map_err(|told| anyhow!("{}: {told}", path.display()))?;
    }
    let options = DaemonOptions {
        data_dir: serve.data_dir.clone(),
        database: serve.database.clone(),
        listen: serve.listen,
        config,
        accept_loss: serve.accept_loss,
        sandbox: serve.sandbox,
        dispatching: if serve.no_dispatch { Dispatching::Off } else { Dispatching::On },
    };
    log::to_standard_error();
    daemon::make_room(options.config.connections());
    super::with_workers(async {
        let running = Running::start(options).await?;
        // Whoever started it may not read on: that is no reason to end.
        let _ = writeln!(std::io::stdout(), "longhaul is ready at {}", running.url);
        running.until_told().await
    })
}

/// The configuration that was named, or the one that lies here, or none.
fn config(argument: &ConfigArgument) -> Result<Config> {
    let Some(path) = argument.found() else { return Ok(Config::default()) };
    if argument.config.is_none() {
        crate::log::say!("longhaul: using ./{}", path.display());
    }
    let config = Config::read(path)?;
    for doubt in config.doubts(path) {
        crate::log::say!("warning: {doubt}");
    }
    Ok(config)
}
