//! `longhaul connector`: a connector file is read as the daemon would read it, held against a recorded exchange, or signed. The daemon never has a
//! private key.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Subcommand;
use domain::Timestamp;
use engine::ManualClock;
use executors::http::{Connector, Exchange, Secrets, SigningKey, replay, signature_path};

use crate::config::{Config, ConfigArgument};
use crate::exit::FAILED;
use crate::show::{plain, say};

const KEY_FILE_MODE: u32 = 0o600;
/// When exchanges are replayed: 2023-11-14T22:13:20Z.
const REPLAYED_AT: Timestamp = Timestamp::from_seconds(1_700_000_000);

const EXAMPLES: &str = "A connector makes an executor of a slow HTTP service: one file says how it takes work, how it is asked, how it is \
stopped, and where in its answers the id, the state, the progress and the result are. Recipes are in examples/connectors.

Examples:
  longhaul connector check printing.yaml
  longhaul connector test printing.yaml --exchange recorded.yaml
  longhaul serve --connector printing.yaml
  longhaul jobs create 'print it' --executor printing --input '{\"pages\": 12}'
  longhaul connector keygen --out operator.key
  longhaul connector sign printing.yaml --key operator.key

Nothing is sent by any of these verbs; to try a connector on its service, serve it and create a job.

Exit codes: 0 it can be used, 1 it cannot, or it differs from what was recorded; the reason is printed with its place.";

/// What a recorded exchange looks like. Lines of at most 80 columns: what is wrapped cannot be copied.
const EXCHANGE: &str = "A recorded exchange, for examples/connectors/accepted-location.yaml:

  input: { month: '2026-10' }         # the job's input
  secrets: { token: report-token-1 }  # made up where none is given
  steps:
    - call: submit                    # or submit_again, poll, cancel
      exchange:                       # the requests of this step, in order
        - request:
            method: POST
            url: https://reports.example.com/v1/reports
            headers: { idempotency-key: op-replay }
            body: { month: '2026-10' }  # compared if it is there
          answer:
            status: 202
            headers: { Location: /v1/reports/77, Retry-After: '10' }
      then: { deferred: { retry_after: 10, cancelable: true } }
    - call: poll
      exchange:
        - request:
            method: GET
            url: https://reports.example.com/v1/reports/77
          answer: { status: 200, body: { rows: 12 } }
      then: { completed: { rows: 12 } }

Of a request only what is written is compared: headers that are not named are not. The submit's key is always op-replay. \
`then` is what comes of the step; leave it out to have it printed. Replayed at 2023-11-14T22:13:20Z, whatever the clock says. \
examples/connectors/README.md has every field, examples/connectors/exchanges one exchange for each recipe.

Example:
  longhaul connector test printing.yaml --exchange recorded.yaml

Exit codes: 0 it came to what was recorded, 1 it differs, or a file cannot be read; the step and the difference are printed.";

/// What signatures are for.
const SIGNATURES: &str = "With `connector_keys: [PUBLIC KEY, ...]` in longhaul.yaml every connector file needs a signature by one of \
these keys beside it: FILE.sig, Ed25519, in base64. `serve`, `config check` and `connector check` refuse a file that has none, or that was \
changed after it was signed. Without connector_keys no signature is looked at. Keep the private key where the daemon does not run.

Examples:
  longhaul connector keygen --out operator.key      prints the public key
  longhaul connector sign printing.yaml --key operator.key
  longhaul connector check printing.yaml --config longhaul.yaml

Exit codes: 0 done, 1 a file cannot be read or written, or is no connector or key.";

/// Check and sign connector files, and replay recorded exchanges
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub enum Verb {
    /// Read a connector as the daemon would, and say what is wrong with it
    #[command(after_help = EXAMPLES)]
    Check {
        /// The connector
        file: PathBuf,
        /// The configuration that says whose signature is wanted [default: ./longhaul.yaml if it is there]
        #[arg(long, env = "LONGHAUL_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Replay a recorded exchange: what would be sent, and what the answers mean; nothing is sent
    #[command(after_help = EXCHANGE)]
    Test {
        /// The connector
        file: PathBuf,
        /// What was recorded: YAML or JSON
        #[arg(long, value_name = "FILE")]
        exchange: PathBuf,
    },
    /// Sign a connector: write FILE.sig beside it
    #[command(after_help = SIGNATURES)]
    Sign {
        /// The connector
        file: PathBuf,
        /// The private key: Ed25519 in PEM, of `keygen` or of `openssl genpkey -algorithm ed25519`
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Make a key to sign connectors with, and print its public key for `connector_keys`
    #[command(after_help = SIGNATURES)]
    Keygen {
        /// Where the private key is written, for its user alone; refused if the file exists
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Check { file, config } => return check(&file, &ConfigArgument { config }),
        Verb::Test { file, exchange } => test(&file, &exchange)?,
        Verb::Sign { file, key } => sign(&file, &key)?,
        Verb::Keygen { out } => keygen(&out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// With the signatures that are wanted by the configuration that was named, or by the one that lies here.
fn check(file: &Path, config: &ConfigArgument) -> Result<ExitCode> {
    let signers = config.found().map(Config::signers_in).transpose()?.unwrap_or_default();
    let connector = Connector::read_signed(file, &signers)?;
    for doubt in connector.doubts() {
        eprintln!("longhaul: {doubt}");
    }
    // Where a file is checked is seldom where it is used.
    let missing = Secrets::read(connector.secrets(), &|name| std::env::var(name).ok()).err();
    let (name, mode) = (connector.name().to_owned(), connector.modes().support.as_str());
    let refused = !connector.doubts().is_empty();
    let calls_back = connector.gives_callback_url();
    let digest = connector.digest();
    Config::default().connect(None, connector).map_err(|told| anyhow!("{}: {told}", file.display()))?;
    if refused {
        return Ok(ExitCode::from(FAILED));
    }
    say(format_args!("{} can be used: executor {name:?}, {mode}", file.display()));
    say(format_args!("catalog digest: sha256:{digest}"));
    if calls_back {
        say(
            "callbacks: ${operation.callback_url} is empty unless longhaul.yaml has public_url; without it the service is only polled",
        );
    }
    if let Some(missing) = missing {
        say(format_args!("not from here: {missing}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn test(file: &Path, exchange: &Path) -> Result<()> {
    let (connector, exchange) = (Connector::read(file)?, Exchange::read(exchange)?);
    // As it was when the exchanges were recorded: what is sent may hold the time.
    let clock = Arc::new(ManualClock::at(REPLAYED_AT));
    for step in super::wait_for(async { Ok(replay(connector, exchange, clock).await?) })? {
        for line in &step.wire {
            say(format_args!("step {}: {}", step.step, plain(line)));
        }
        say(format_args!("step {}: {}", step.step, step.outcome));
    }
    Ok(())
}

/// Writes the signature of a connector beside it. What the daemon could not read is not signed.
fn sign(file: &Path, key: &Path) -> Result<()> {
    let pem = fs::read_to_string(key).with_context(|| format!("cannot read {}", key.display()))?;
    let key = SigningKey::from_pem(&pem).map_err(|told| anyhow!("{}: {told}", key.display()))?;
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Connector::parse(&file.display().to_string(), &text)?;
    let beside = signature_path(file);
    fs::write(&beside, key.sign(text.as_bytes()))
        .with_context(|| format!("cannot write {}", beside.display()))?;
    say(format_args!("{} is signed by {}: {}", file.display(), key.public_key(), beside.display()));
    Ok(())
}

/// Writes a new private key, and prints the public one.
fn keygen(out: &Path) -> Result<()> {
    let (key, pem) = SigningKey::generate().map_err(|told| anyhow!(told))?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(KEY_FILE_MODE)
        .open(out)
        .with_context(|| format!("cannot write {}", out.display()))?;
    file.write_all(pem.as_bytes())?;
    file.sync_all()?;
    say(format_args!("connector_keys: [{}]", key.public_key()));
    Ok(())
}
