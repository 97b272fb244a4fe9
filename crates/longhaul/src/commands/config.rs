//! `longhaul config check`: reads a configuration as the daemon would, and says what is wrong with it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use engine::pipelines::load;

use super::serve::CONFIG_FILE;
use crate::config::Config;
use crate::exit::FAILED;
use crate::show::say;

const EXAMPLES: &str = "Example of a longhaul.yaml, with everything that there is:

  listen: 127.0.0.1:7420
  public_url: https://longhaul.example.org   # where services call back; left out: they are asked
  durability: full              # or relaxed: power loss may take the last commits (PostgreSQL: fsync may be off)
  lease: { seconds: 60, renew_every_seconds: 20 }
  retention: { completed_seconds: 604800, other_seconds: 2592000 }
  clock: { adopt_after: 5m }    # how long a step of the wall clock lasts before it is believed; see docs/time.md
  lanes:
    gpu: { limit: 1 }           # attempts at the same time, on all nodes together
  connectors: [printing.yaml]   # slow HTTP services, a file each; see `longhaul connector --help`
                                # one of a circle: { file: printing.yaml, circle: acme }
  pipelines: [pipelines]        # what follows which event: files and directories; see `longhaul pipeline --help`
  plugin_roots: [plugins]       # directories with plugins; see `longhaul plugin --help` and docs/plugins.md
  allow_symlinks: false
  plugins:
    greet: { config: { greeting: hello }, secrets: { KEY: { env: GREET_KEY } }, timeouts: { poll: 20 }, parallelism: 2 }
    welcome: { uses: greet }    # another name, with a configuration and a state of its own
  workspaces: { max_bytes: 1073741824, max_files: 10000 }   # what one step of a pipeline may leave to the next
                                # shared: true if several nodes have one directory; allowed_dirs: [DIR] that jobs may name
  sandbox: preferred            # or required, off: whether commands can reach the data directory; see docs/sandbox.md
  run_as: builder               # the user of commands, plugins and backends; needs a daemon that runs as root
  policy:                       # what work outside is granted, whatever its service says
    defaults: { max_ttl_seconds: 900, max_retry_after_seconds: 300 }
    kind_overrides: { printing: { max_ttl_seconds: 86400 } }
  executors:
    - name: resize
      circle: acme              # for the jobs of this circle; left out: for everybody's
      kind: process             # the job's input is on its standard input
      argv: [./resize.sh, --quality, '80']
      cwd: /srv/images
      env:
        allow: [PATH, HOME]     # from the daemon's environment, and nothing else
        set: { MODE: batch }
      concurrency: 4
      retry: { max_attempts: 3, backoff_seconds: 1, max_backoff_seconds: 60 }
      timeout_seconds: 600
      grace_seconds: 5          # between TERM and KILL
      output_limit_bytes: 16777216
      limits:                   # of the kernel, for each process of it; left out: as the daemon has it
        memory_bytes: 1073741824
        cpu_seconds: 3600
        open_files: 1024
        processes: 500          # of the daemon's user, all together
        new_privileges: false   # true lets sudo work
      sandbox: required         # its own, and its own user: run_as: '1001:1001'

Examples:
  longhaul config check                  ./longhaul.yaml
  longhaul config check examples/longhaul.yaml

Exit codes: 0 it can be used, 1 it cannot, or some of its pipelines cannot; the first mistake is printed with its line, column \
and a hint. Programs and directories that are not there, lanes that look like a slip of the pen, and plugins that are left out are \
warnings. The daemon starts without the pipelines that cannot be used.";

/// Check a configuration file
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct ConfigArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Read a configuration as the daemon would, and say what is wrong with it
    #[command(after_help = EXAMPLES)]
    Check {
        /// The file [default: ./longhaul.yaml]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The same, as `serve` takes it
        #[arg(long, env = "LONGHAUL_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

pub fn run(arguments: &ConfigArguments) -> Result<ExitCode> {
    let Verb::Check { file, config } = &arguments.verb;
    let path = file.as_deref().or(config.as_deref()).unwrap_or(Path::new(CONFIG_FILE));
    let config = Config::read(path)?;
    for doubt in config.doubts(path) {
        eprintln!("warning: {doubt}");
    }
    let names = config.executor_names();
    let executors = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let unusable = load(&config.pipelines).mistakes.len();
    let but = match unusable {
        0 => String::new(),
        _ => format!(", but not all of its pipelines ({unusable} mistakes)"),
    };
    let path = path.display();
    say(format_args!("{path} can be used{but}; executors besides the built-in ones: {executors}"));
    Ok(if unusable == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
