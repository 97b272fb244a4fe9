//! `longhaul config check`: reads a configuration as the daemon would, and says what is wrong with it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use pipelines::load;

use crate::config::ConfigArgument;
use crate::exit::FAILED;
use crate::show::say;

/// Lines of at most 80 columns: what is wrapped cannot be copied.
const EXAMPLES: &str = "Example of a longhaul.yaml with what is set most; examples/longhaul.yaml has all:

  listen: 127.0.0.1:7420
  public_url: https://longhaul.example.org  # where services call back
  durability: full            # or relaxed: power loss may take the last commits
  lease: { seconds: 60, renew_every_seconds: 20 }
  retention: { completed_seconds: 7d, other_seconds: 30d }
  clock: { adopt_after: 5m }  # when a step of the clock is believed
  lanes:
    gpu: { limit: 1 }         # attempts at the same time, on all nodes together
  # slow HTTP services, a file each; see `longhaul connector --help`
  # one of a circle: { file: printing.yaml, circle: acme }
  connectors: [printing.yaml]
  # what follows which event; see `longhaul pipeline --help`
  pipelines: [pipelines]
  # directories with plugins; see `longhaul plugin --help`
  plugin_roots: [plugins]
  allow_symlinks: false
  plugins:
    greet:
      config: { greeting: hello }
      secrets: { KEY: { env: GREET_KEY } }
      timeouts: { poll: 20 }
      parallelism: 2
    welcome: { uses: greet }  # another name, with its own configuration
  webhooks:                   # messages from outside that become events
    - name: press
      path: /hooks/press
      event: press.called
      secret: { env: PRESS_SECRET }
      signature_header: X-Signature
  # what one step of a pipeline may leave to the next
  workspaces: { max_bytes: 1073741824, max_files: 10000 }
  sandbox: preferred          # or required, off; see docs/sandbox.md
  run_as: nobody              # the user of commands; the daemon must be root
  policy:                     # what work outside is granted
    job_ttl_seconds: 1d       # the life of work of a job without a deadline
    defaults: { max_retry_after_seconds: 5m }
    kind_overrides: { printing: { max_ttl_seconds: 2d } }
  executors:
    - name: resize
      circle: acme            # for its jobs; left out: for everybody's
      kind: process           # the job's input is on its standard input
      argv: [./resize.sh, --quality, '80']
      cwd: /srv/images
      env:
        allow: [PATH, HOME]   # from the daemon's environment, nothing else
        set: { MODE: batch }
      concurrency: 4
      retry: { max_attempts: 3, backoff_seconds: 1, max_backoff_seconds: 60 }
      timeout_seconds: 10m
      grace_seconds: 5        # between TERM and KILL
      output_limit_bytes: 16777216
      limits:                 # of the kernel, for each process of it
        memory_bytes: 1073741824
        cpu_seconds: 1h
        open_files: 1024
        processes: 500        # of the daemon's user, all together
        new_privileges: false # true lets sudo work
      sandbox: required       # its own; so may be its user, run_as

A duration is a number of seconds, or 90s, 5m, 1h30m, 7d.

Examples:
  longhaul config check                  ./longhaul.yaml
  longhaul config check examples/longhaul.yaml

Exit codes: 0 it can be used, 1 it cannot, or some of its pipelines cannot; the first mistake is printed with its line, column \
and a hint. Programs and directories that are not there, lanes that look like a slip of the pen, and plugins that are left out are \
warnings. The daemon starts without the pipelines that cannot be used.";

/// Check a configuration file
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub enum Verb {
    /// Read a configuration as the daemon would, and say what is wrong with it
    #[command(after_help = EXAMPLES)]
    Check {
        /// The file [default: ./longhaul.yaml]
        file: Option<PathBuf>,
        /// The same, as `serve` takes it
        #[arg(long, env = "LONGHAUL_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

pub fn run(Verb::Check { file, config }: Verb) -> Result<ExitCode> {
    let argument = ConfigArgument { config: file.or(config) };
    let (path, config) = (argument.path(), argument.read()?);
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
