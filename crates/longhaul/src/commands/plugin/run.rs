//! `longhaul plugin run`: one job of a plugin on the daemon, followed to its end.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use api::ductile::PluginDetail;
use api::{CreateJob, JobCreated, JobStatus, Retry, Why};
use clap::Args;
use serde_json::json;
use serde_json::value::RawValue;

use crate::client::{Attempt, Call, Connection, Stream, follow, job_path, segment};
use crate::commands::jobs::{end_code, json_argument};
use crate::commands::run::print_end;
use crate::exit::Failed;
use crate::show::{in_words, plain, say};

const EXAMPLES: &str = "Examples:
  longhaul plugin run greet                                  its command poll
  longhaul plugin run greet --command handle --payload '{\"name\": \"you\"}'
  longhaul plugin run greet --payload-file payload.json --json | jq .data.events

`handle` is given the payload as an event of the type `api.trigger`. It is tried once: --retry tries again what fails, after the \
waits of the configuration. The last lines of its standard error are shown for each attempt that fails; all of it: \
`longhaul jobs logs ID`.";

/// Lines of standard error that are shown of an attempt that failed.
const MAX_LAST_LINES: usize = 20;

/// Run one command of a plugin as a job and follow it to its end
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    connection: Connection,
    /// The plugin: `longhaul plugin list` names them
    name: String,
    /// What it is asked
    #[arg(long, default_value = "poll", value_name = "COMMAND")]
    command: String,
    /// What it is given: a JSON object, @file, or - for standard input
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// A file with what it is given
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// Try it again up to so many times when it fails
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    retry: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(run: &Run) -> Result<ExitCode> {
    let client = run.connection.client()?;
    let path = format!("/plugin/{}", segment(&run.name));
    client.ask::<PluginDetail>("run plugin", Call::get(&path))?;
    let sent = CreateJob {
        executor: Some(run.name.clone()),
        source_kind: Some("cli".to_owned()),
        input: Some(input(run)?),
        retry: Some(Retry { max_attempts: Some(run.retry.saturating_add(1)), ..Retry::default() }),
        ..CreateJob::titled(format!("{} {}", run.name, run.command))
    };
    let created: JobCreated<'static> = client.ask_of_job("create", "", Call::post("/jobs", &sent))?;
    let id = &created.job_id;
    eprintln!("longhaul: job {id}");
    let mut told = 0;
    let status = follow(&run.connection, id, None, &mut |status| {
        let failed = Attempt::of(status).filter(|one| status.state == "queued" && one.number > told);
        if let Some(failed) = failed {
            told = failed.number;
            tell_failed(&run.connection, status, &failed);
        }
    })?;
    if let Some(last) = Attempt::of(&status).filter(|_| status.state != "completed") {
        tell_last_lines(&run.connection, id, &last);
    }
    if run.json {
        say(client.result(id)?.0);
    } else {
        print_end(&run.connection, &status)?;
    }
    Ok(end_code(&status))
}

/// An attempt that failed and is made again: why, its last words, and when.
fn tell_failed(connection: &Connection, status: &JobStatus<'_>, failed: &Attempt) {
    tell_last_lines(connection, &status.job_id, failed);
    let because = in_words(failed.because.as_deref().unwrap_or("it failed"));
    let why = connection
        .client()
        .ok()
        .and_then(|client| client.call::<Why>(Call::get(&job_path(&status.job_id, "/why"))).ok());
    let next = why.and_then(|why| why.earliest_at).map(|at| format!(" at {at}")).unwrap_or_default();
    eprintln!("longhaul: attempt {} failed: {}; the next one is due{next}", failed.number, plain(&because));
}

/// What an attempt said last on its standard error. What cannot be read now is not worth the end of following.
fn tell_last_lines(connection: &Connection, id: &str, attempt: &Attempt) {
    let lines = connection
        .client()
        .ok()
        .and_then(|client| client.last_lines(id, &attempt.id, Stream::Stderr, MAX_LAST_LINES).ok());
    for line in lines.unwrap_or_default() {
        eprintln!("  {line}");
    }
}

fn input(run: &Run) -> Result<Box<RawValue>> {
    let payload = match (&run.payload, &run.payload_file) {
        (Some(text), _) => json_argument("--payload", text)?,
        (None, Some(path)) => json_argument("--payload-file", &format!("@{}", path.display()))?,
        (None, None) => RawValue::from_string("{}".to_owned())?,
    };
    if !payload.get().starts_with('{') {
        return Err(Failed::usage("the payload must be a JSON object").into());
    }
    let input = if run.command == "handle" {
        json!({ "command": run.command, "event": { "type": "api.trigger", "payload": payload } })
    } else {
        json!({ "command": run.command, "payload": payload })
    };
    Ok(serde_json::value::to_raw_value(&input)?)
}
