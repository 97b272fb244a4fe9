//! `longhaul run -- CMD ARGS…`: any command as a durable job, followed to its end.
//!
//! The end of the daemon is tried again by itself; the command's own failure only if asked: whoever runs a command expects one run.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use api::{CancelJob, CreateJob, JobCreated, JobEnd, JobResult, JobStatus, Retry, StatusAnswer};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use tokio::signal::unix::SignalKind;

use super::jobs::end_code;
use crate::builtin;
use crate::client::{Attempt, Call, Connection, Sink, Stream, follow_output, job_path};
use crate::due_time::duration;
use crate::exit::EXIT_CODES;
use crate::show::{self, in_words, plain, say};

const EXAMPLES: &str = "Examples:
  longhaul run -- make all
  longhaul run --title 'nightly backup' --timeout 2h --retry 2 -- ./backup.sh --full
  longhaul run --env STAGE=test -- ./deploy.sh             a variable that the command needs
  longhaul run --detach -- sh -c 'sleep 60; echo done'     prints the id and leaves it running

The daemon runs the command, in this directory. Ctrl-C leaves it running and says how to see its output \
(`longhaul jobs logs ID --follow`) and how to stop it (`longhaul jobs cancel ID`); the exit code is then 130. With \
--cancel-on-interrupt Ctrl-C asks to stop it and waits for its end, and a second one leaves it. If the daemon \
is killed, the command runs again from its start when the daemon is back, up to --max-attempts; a command that must not be \
run twice takes --max-attempts 1. A command that fails by itself is not repeated, unless --retry says so.

It has only PATH, HOME, LANG, LC_ALL, TZ and TMPDIR of the daemon's environment, and no way to gain privileges (no sudo); \
pass what it needs with --env. Everything that it has started is ended with it.";

const DEFAULT_ATTEMPTS: u32 = 3;
/// What a shell says of a command that was interrupted.
const INTERRUPTED: i32 = 130;

/// Run a command as a durable job and follow it to its end
#[derive(Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub struct Run {
    #[command(flatten)]
    connection: Connection,
    /// For people; the name of the program if left out
    #[arg(long)]
    title: Option<String>,
    /// How long one attempt may run
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Run it again up to so many times when it fails by itself
    #[arg(long, value_name = "NUMBER", conflicts_with = "max_attempts")]
    retry: Option<u32>,
    /// Attempts in all when the daemon is interrupted [default: 3]
    #[arg(long, value_name = "NUMBER")]
    max_attempts: Option<u32>,
    /// Print the job's id and do not wait
    #[arg(long)]
    detach: bool,
    /// Stop the command on Ctrl-C, instead of leaving it running
    #[arg(long, conflicts_with = "detach")]
    cancel_on_interrupt: bool,
    /// Where it runs; this directory if left out
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A variable of its environment; may be given several times. Whoever may read the job reads it: no secrets
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    argv: Vec<String>,
}

pub fn run(run: Run) -> Result<ExitCode> {
    let sent = sent(&run)?;
    let client = run.connection.client()?;
    let created: JobCreated<'static> = client.ask_of_job("create", "", Call::post("/jobs", &sent))?;
    let id = &created.job_id;
    if run.detach {
        say(id);
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("longhaul: job {id}");
    listen_to_interrupts(&run, id)?;
    let streams = vec![Stream::Stdout, Stream::Stderr];
    let status = follow_output(&run.connection, id, streams, Terminal)?;
    print_end(&run.connection, &status)?;
    Ok(end_code(&status))
}

/// Ctrl-C from now on: says that the job goes on, and how to see or stop it, or asks to stop it. Then the second one leaves it.
fn listen_to_interrupts(run: &Run, job_id: &str) -> Result<()> {
    let (connection, job_id, cancels) = (run.connection.clone(), job_id.to_owned(), run.cancel_on_interrupt);
    super::on_signals(&[SignalKind::interrupt()], move |time| {
        if time == 0 && cancels {
            eprintln!("\nlonghaul: asking to stop job {job_id}; Ctrl-C again leaves it");
            if let Err(told) = cancel(&connection, &job_id) {
                eprintln!("longhaul: not cancelled: {told}");
            }
            return;
        }
        eprintln!(
            "\nlonghaul: job {job_id} goes on; `longhaul jobs logs {job_id} --follow` shows its output, \
             `longhaul jobs cancel {job_id}` stops it"
        );
        std::process::exit(INTERRUPTED);
    })
}

fn cancel(connection: &Connection, job_id: &str) -> Result<StatusAnswer<'static>> {
    let sent = CancelJob { reason: Some("interrupted".to_owned()), requested_by_peer_id: None };
    Ok(connection.client()?.call(Call::post(&job_path(job_id, "/cancel"), &sent))?)
}

/// The command's output as it would be without us.
struct Terminal;

impl Sink for Terminal {
    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        // A reader that has gone away has seen enough; the job goes on.
        let _ = match stream {
            Stream::Stdout => std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()),
            Stream::Stderr => std::io::stderr().write_all(bytes),
        };
    }

    fn attempt(&mut self, attempt: &Attempt) {
        if attempt.number > 1 {
            let because = in_words(attempt.because.as_deref().unwrap_or("tried again"));
            eprintln!("longhaul: attempt {}, after {}", attempt.number, plain(&because));
        }
    }
}

fn sent(run: &Run) -> Result<CreateJob> {
    let cwd = match &run.cwd {
        Some(cwd) => std::path::absolute(cwd)?,
        None => std::env::current_dir()?,
    };
    let variables: serde_json::Map<_, _> =
        run.variables.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let max_attempts = match run.retry {
        Some(more) => more.saturating_add(1),
        None => run.max_attempts.unwrap_or(DEFAULT_ATTEMPTS),
    };
    let input = json!({ "argv": run.argv, "cwd": cwd, "env": variables, "final_exit": run.retry.is_none() });
    Ok(CreateJob {
        executor: Some(builtin::COMMAND.to_owned()),
        source_kind: Some("cli".to_owned()),
        input: Some(serde_json::value::to_raw_value(&input)?),
        retry: Some(Retry { max_attempts: Some(max_attempts), ..Retry::default() }),
        timeout_seconds: run.timeout.map(|timeout| timeout.as_secs()),
        ..CreateJob::titled(run.title.clone().unwrap_or_else(|| title(&run.argv)))
    })
}

/// How it ended, if there is more to say than that it did.
pub fn print_end(connection: &Connection, status: &JobStatus<'_>) -> Result<()> {
    let (_, result) = connection.client()?.result(&status.job_id)?;
    match result {
        JobResult::End(end) if end.state == "completed" => match end.summary.as_deref() {
            None | Some("exited with 0") => {}
            Some(summary) => eprintln!("longhaul: {}", plain(summary)),
        },
        JobResult::End(end) => eprintln!("longhaul: {} {}: {}", end.job_id, end.state, why(&end, status)),
        JobResult::NotReady(status) => say(show::job("Job", &status.status)),
    }
    Ok(())
}

/// Why it did not complete, without the output that was shown already.
fn why(end: &JobEnd<'_>, status: &JobStatus<'_>) -> String {
    #[derive(Deserialize)]
    struct Error {
        message: Option<String>,
        details: Option<Details>,
    }
    #[derive(Deserialize)]
    struct Details {
        #[serde(default)]
        stdout_tail: String,
        #[serde(default)]
        stderr_tail: String,
    }
    let error: Option<Error> = end.error.as_deref().and_then(|error| serde_json::from_str(error.get()).ok());
    let message = error.and_then(|error| {
        let message = error.message?;
        let Some(details) = error.details else { return Some(message) };
        let tails = [details.stderr_tail, details.stdout_tail];
        let without = tails.iter().find_map(|tail| message.strip_suffix(tail.trim())?.strip_suffix(": "));
        Some(without.unwrap_or(&message).to_owned())
    });
    let reason = || status.state_reason.as_deref().map_or_else(|| end.state.to_string(), in_words);
    plain(&message.or_else(|| end.summary.as_deref().map(str::to_owned)).unwrap_or_else(reason))
}

/// The name of the program. Arguments may be secrets, and a title outlives a purge.
fn title(argv: &[String]) -> String {
    let program = argv.first().map_or("", String::as_str);
    let name = Path::new(program).file_name().map_or_else(|| program.into(), |name| name.to_string_lossy());
    let mut title = name.into_owned();
    title.truncate(title.floor_char_boundary(domain::limits::MAX_TITLE_BYTES));
    title
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
