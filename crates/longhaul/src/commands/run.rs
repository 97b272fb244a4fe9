//! `longhaul run -- CMD ARGS…`: any command as a durable job, followed to its end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use api::{CreateJob, JobCreated, JobEnd, JobResult, JobStatus, Retry};
use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::jobs::{end_code, followed};
use crate::builtin;
use crate::client::{Call, Connection, Followed};
use crate::due_time::duration;
use crate::exit::{EXIT_CODES, Failed, TIMED_OUT};
use crate::show;

const EXAMPLES: &str = "Examples:
  longhaul run -- make all
  longhaul run --title 'nightly backup' --timeout 2h --max-attempts 3 -- ./backup.sh --full
  longhaul run --detach -- sh -c 'sleep 60; echo done'     prints the id and leaves it running

The daemon runs the command, in this directory, with its own environment cut down to a few variables: it goes on when this
terminal is closed, and is stopped with everything that it started when the job is cancelled. Its whole output is kept in the
data directory under artifacts/.";

/// Run a command as a durable job and follow it to its end
#[derive(Args)]
#[command(after_help = help())]
pub struct Run {
    #[command(flatten)]
    connection: Connection,
    /// For people; the command itself if left out
    #[arg(long)]
    title: Option<String>,
    /// How long one attempt may run
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Attempts in all; the end of the daemon counts as one
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    max_attempts: u32,
    /// Print the job's id and do not wait
    #[arg(long)]
    detach: bool,
    /// Where it runs; this directory if left out
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A variable of its environment; may be given several times
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
        println!("{id}");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("longhaul: job {id}");
    match followed(&run.connection, id, None)? {
        Followed::TimeOver => Ok(ExitCode::from(TIMED_OUT)),
        Followed::Over(status) => {
            print_end(&run.connection, &status)?;
            Ok(end_code(&status))
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
    let input = json!({ "argv": run.argv, "cwd": cwd, "env": variables });
    Ok(CreateJob {
        executor: Some(builtin::COMMAND.to_owned()),
        source_kind: Some("cli".to_owned()),
        input: Some(serde_json::value::to_raw_value(&input)?),
        retry: Some(Retry { max_attempts: Some(run.max_attempts), ..Retry::default() }),
        timeout_seconds: run.timeout.map(|timeout| timeout.as_secs()),
        ..CreateJob::titled(run.title.clone().unwrap_or_else(|| title(&run.argv)))
    })
}

/// The end of what the command said, as far as the result holds it.
fn print_end(connection: &Connection, status: &JobStatus<'_>) -> Result<()> {
    let (_, result) = connection
        .client()?
        .result(&status.job_id)
        .map_err(|error| Failed::job("read the result of", &status.job_id, &error))?;
    match result {
        JobResult::End(end) if end.state == "completed" => print_output(&end),
        JobResult::End(end) => print_failure(&end),
        JobResult::NotReady(status) => println!("{}", show::job("Job", &status.status)),
    }
    Ok(())
}

fn print_output(end: &JobEnd<'_>) {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Said {
        stdout_tail: String,
        #[serde(rename = "exit_code")]
        _exit_code: i32,
    }
    let Some(data) = end.data.as_deref() else { return };
    match serde_json::from_str::<Said>(data.get()) {
        Ok(said) => print!("{}", said.stdout_tail),
        // Output that is one JSON value is the result itself.
        Err(_) => println!("{}", data.get()),
    }
}

fn print_failure(end: &JobEnd<'_>) {
    #[derive(Deserialize)]
    struct Error {
        code: Option<String>,
        message: Option<String>,
    }
    let error: Option<Error> = end.error.as_deref().and_then(|error| serde_json::from_str(error.get()).ok());
    let told = error
        .and_then(|error| error.message.or(error.code))
        .or_else(|| end.summary.as_deref().map(str::to_owned));
    eprintln!(
        "longhaul: {} {}: {}",
        end.job_id,
        end.state,
        told.unwrap_or_else(|| "no reason was given".to_owned())
    );
}

/// The command as one line of at most as many bytes as a title may have.
fn title(argv: &[String]) -> String {
    let mut title = argv.join(" ");
    let limit = domain::limits::MAX_TITLE_BYTES;
    if title.len() > limit {
        title.truncate((0..=limit).rev().find(|&at| title.is_char_boundary(at)).unwrap_or_default());
    }
    title
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
