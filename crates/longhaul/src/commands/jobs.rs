//! `longhaul jobs`: one file per verb or family of verbs, each thin over the HTTP API.

mod create;
mod follow;
mod list;
mod logs;
mod look;
mod steer;

use std::process::ExitCode;

use anyhow::Result;
use api::{CancelJob, JobStatus};
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::{AtDaemon, Call, Connection, job_path};
use crate::exit::{EXIT_CODES, Failed};
use crate::show::{self, PrintArgs, say};

pub use follow::{end_code, follow_on_a_line};

const EXAMPLES: &str = "Examples:
  longhaul jobs create 'render page 7' --executor slow --input '{\"seconds\": 5}'
  longhaul jobs list --state running
  longhaul jobs wait work-0123 --timeout 10m && longhaul jobs result work-0123
  longhaul jobs why work-0123                why it is not moving
  longhaul jobs logs work-0123 --follow      what its command says
  longhaul jobs cancel work-0123 --reason 'not needed any more'";

const SHOW: &str = "Examples:
  longhaul jobs show work-0123
  longhaul jobs show work-0123 --json | jq .runner.attempts";
const RUN: &str = "Example:
  longhaul jobs run work-0123

Answers when the attempt has begun, or has ended already. What it comes to: `longhaul jobs wait`.
Exit codes: 0 it was run; 1 refused, or nothing here can do it: the job is unavailable.";
const RETRY: &str = "Example:
  longhaul jobs retry work-0123

Makes a new attempt. The result of the one before leaves the job and stays with that attempt.
Exit codes: 0 it is tried again; 1 refused, or nothing here can do it: the job is unavailable.";
const RESULT: &str = "Examples:
  longhaul jobs result work-0123
  longhaul jobs result work-0123 --json | jq .data

Exit codes: 0 there is one, however the job ended; 1 the job is not over yet.";
const WHY: &str = "Example:
  longhaul jobs why work-0123";
const FACTS: &str = "Examples:
  longhaul jobs facts work-0123
  longhaul jobs facts work-0123 --json | jq -r '[.at, .kind, .actor] | @tsv'";

/// Create jobs, look at them, steer them, wait for them.
#[derive(Subcommand)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"), arg_required_else_help = true)]
pub enum Verb {
    /// Accept a job: when this answers, it survives a power cut
    Create(Box<create::Create>),
    /// List jobs, newest change first
    List(list::List),
    /// Where a job is
    #[command(after_help = SHOW)]
    Show(One),
    /// Follow a job to its end, every change as it comes
    Watch(follow::Watch),
    /// Run a queued, failed or unavailable job now, whatever its due time
    #[command(after_help = RUN)]
    Run(One),
    /// Try a failed, unavailable or delivered job again
    #[command(after_help = RETRY)]
    Retry(One),
    /// Report where a job is, as whoever does it
    Update(steer::Update),
    /// Hold a queued job: nothing begins it until it is resumed
    Pause(Pause),
    /// Let a paused job go on
    Resume(One),
    /// Ask to stop a job
    Cancel(steer::Cancel),
    /// The result of a job
    #[command(after_help = RESULT)]
    Result(One),
    /// Wait until a job is over; the exit code says how it ended
    Wait(follow::Wait),
    /// Why a job is not moving, and what to do about it
    #[command(after_help = WHY)]
    Why(One),
    /// What a job's command has said
    Logs(logs::Logs),
    /// What happened to a job, oldest first
    #[command(after_help = FACTS)]
    Facts(One),
    /// Answer what a job waits for
    Answer(steer::Answer),
}

/// One job.
#[derive(Args)]
pub struct One {
    /// The job's id
    id: String,
    #[command(flatten)]
    print: PrintArgs,
}

pub fn run(AtDaemon { connection, verb }: AtDaemon<Verb>) -> Result<ExitCode> {
    let connection = &connection;
    match verb {
        Verb::Create(create) => create::run(connection, *create)?,
        Verb::List(list) => list::run(connection, &list)?,
        Verb::Show(one) => look::show(connection, &one)?,
        Verb::Watch(watch) => return follow::watch(connection, &watch),
        Verb::Run(one) => steer::run_now(connection, &one, "run")?,
        Verb::Retry(one) => steer::run_now(connection, &one, "retry")?,
        Verb::Update(update) => steer::update(connection, update)?,
        Verb::Pause(pause) => hold(connection, "pause", &pause.one, pause.reason)?,
        Verb::Resume(one) => hold(connection, "resume", &one, None)?,
        Verb::Cancel(cancel) => steer::cancel(connection, cancel)?,
        Verb::Result(one) => return look::result(connection, &one),
        Verb::Wait(wait) => return follow::wait(connection, &wait),
        Verb::Why(one) => look::why(connection, &one)?,
        Verb::Logs(logs) => logs::run(connection, &logs)?,
        Verb::Facts(one) => look::facts(connection, &one)?,
        Verb::Answer(answer) => steer::answer(connection, &answer)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A pause of one job.
#[derive(Args)]
pub struct Pause {
    #[command(flatten)]
    one: One,
    /// Why
    #[arg(long)]
    reason: Option<String>,
}

fn hold(connection: &Connection, verb: &str, one: &One, reason: Option<String>) -> Result<()> {
    let (sent, path) = (CancelJob { reason, ..CancelJob::default() }, job_path(&one.id, &format!("/{verb}")));
    steer(connection, (verb, "Job"), &one.id, one.print.json, Call::post(&path, &sent)).map(drop)
}

/// A status as it came, not interpreted.
#[derive(Deserialize)]
struct RawStatus {
    status: Box<RawValue>,
}

/// Sends what answers with a status, and prints it: where the job is now.
fn steer(
    connection: &Connection,
    (verb, headline): (&str, &str),
    id: &str,
    json: bool,
    call: Call<'_>,
) -> Result<JobStatus<'static>> {
    let text = connection.client()?.text(call).map_err(|error| Failed::job(verb, id, error))?;
    let RawStatus { status: raw } = serde_json::from_str(&text)?;
    let status: JobStatus<'static> = serde_json::from_str(raw.get())?;
    if json {
        say(raw);
    } else {
        say(show::job(headline, &status));
    }
    Ok(status)
}

/// JSON of the command line: as it stands, `@file`, or `-` for standard input.
pub fn json_argument(what: &str, text: &str) -> Result<Box<RawValue>> {
    let unreadable =
        |from: &str, error: std::io::Error| Failed::usage(format!("{what}: cannot read {from}: {error}"));
    let text = match text.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(|error| unreadable(path, error))?,
        None if text == "-" => {
            std::io::read_to_string(std::io::stdin()).map_err(|error| unreadable("standard input", error))?
        }
        None => text.to_owned(),
    };
    RawValue::from_string(text.trim().to_owned())
        .map_err(|error| Failed::usage(format!("{what} is not JSON: {error}")).into())
}
