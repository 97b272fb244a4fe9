//! `longhaul run -- CMD ARGS…`: any command as a durable job, followed to its end.
//!
//! The end of the daemon is tried again by itself; the command's own failure only if asked: whoever runs a command expects one run.

mod interrupt;

use std::borrow::Cow;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use api::{CreateJob, JobCreated, JobEnd, JobResult, JobStatus, Retry};
use clap::Args;
use serde::Deserialize;
use serde_json::json;

use self::interrupt::OnInterrupt;
use super::jobs::end_code;
use crate::builtin;
use crate::client::{Attempt, Call, Connection, Followed, OutputFollower, Sink, Stream, follow};
use crate::due_time::duration;
use crate::exit::{EXIT_CODES, Failed, TIMED_OUT};
use crate::show::{self, Runner, in_words, plain, say};

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

/// Run a command as a durable job and follow it to its end
#[derive(Args)]
#[command(after_help = help())]
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

fn help() -> String {
    format!("{EXAMPLES}\n\n{EXIT_CODES}")
}

pub fn run(run: Run) -> Result<ExitCode> {
    let sent = sent(&run)?;
    let client = run.connection.client()?;
    let created: JobCreated<'static> =
        client.call(Call::post("/jobs", &sent)).map_err(|error| Failed::job("create", "", &error))?;
    let id = &created.job_id;
    if run.detach {
        say(format_args!("{id}"));
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("longhaul: job {id}");
    let first = if run.cancel_on_interrupt { OnInterrupt::Cancel } else { OnInterrupt::Leave };
    interrupt::listen(run.connection.clone(), id.to_string(), first)?;
    let streams = vec![Stream::Stdout, Stream::Stderr];
    let output = OutputFollower::start(run.connection.clone(), id.to_string(), streams, Terminal);
    let followed = follow(&run.connection, id, None, &mut |status| {
        if let Some(attempt) = attempt(status) {
            output.attempt(attempt);
        }
        ControlFlow::Continue(())
    });
    output.finish();
    match followed? {
        Followed::TimeOver => Ok(ExitCode::from(TIMED_OUT)),
        Followed::Over(status) => {
            print_end(&run.connection, &status)?;
            Ok(end_code(&status))
        }
    }
}

/// The current attempt, once there is one.
pub fn attempt(status: &JobStatus<'_>) -> Option<Attempt> {
    let runner = Runner::of(status)?;
    Some(Attempt {
        id: runner.current_attempt_id?,
        number: runner.attempt_count,
        because: runner.last_error.and_then(|error| error.reason).map(Cow::into_owned),
    })
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
    let (_, result) = connection
        .client()?
        .result(&status.job_id)
        .map_err(|error| Failed::job("read the result of", &status.job_id, &error))?;
    match result {
        JobResult::End(end) if end.state == "completed" => match end.summary.as_deref() {
            None | Some("exited with 0") => {}
            Some(summary) => eprintln!("longhaul: {}", plain(summary)),
        },
        JobResult::End(end) => eprintln!("longhaul: {} {}: {}", end.job_id, end.state, why(&end, status)),
        JobResult::NotReady(status) => say(format_args!("{}", show::job("Job", &status.status))),
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
    let limit = domain::limits::MAX_TITLE_BYTES;
    let mut title = name.into_owned();
    title.truncate(
        (0..=limit.min(title.len())).rev().find(|&at| title.is_char_boundary(at)).unwrap_or_default(),
    );
    title
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
