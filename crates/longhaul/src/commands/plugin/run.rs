//! `longhaul plugin run`: one job of a plugin on the daemon, followed to its end.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use api::ductile::PluginDetail;
use api::{CreateJob, JobCreated};
use clap::Args;
use serde_json::json;
use serde_json::value::RawValue;

use crate::client::{Call, Connection, Followed, follow, segment};
use crate::commands::jobs::{end_code, json_argument};
use crate::commands::run::print_end;
use crate::exit::{Failed, TIMED_OUT};
use crate::show::say;

const EXAMPLES: &str = "Examples:
  longhaul plugin run greet                                  its command poll
  longhaul plugin run greet --command handle --payload '{\"name\": \"you\"}'
  longhaul plugin run greet --payload-file payload.json --json | jq .data.events

`handle` is given the payload as an event of the type `api.trigger`. What the plugin writes to its standard error is kept: \
`longhaul jobs logs ID --stderr`.";

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
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(run: &Run) -> Result<ExitCode> {
    let client = run.connection.client()?;
    let path = format!("/plugin/{}", segment(&run.name));
    client.call::<PluginDetail>(Call::get(&path)).map_err(|error| Failed::to("run plugin", &error))?;
    let sent = CreateJob {
        executor: Some(run.name.clone()),
        source_kind: Some("cli".to_owned()),
        input: Some(input(run)?),
        ..CreateJob::titled(format!("{} {}", run.name, run.command))
    };
    let created: JobCreated<'static> =
        client.call(Call::post("/jobs", &sent)).map_err(|error| Failed::job("create", "", &error))?;
    let id = &created.job_id;
    eprintln!("longhaul: job {id}");
    match follow(&run.connection, id, None, &mut |_| ControlFlow::Continue(()))? {
        Followed::TimeOver => Ok(ExitCode::from(TIMED_OUT)),
        Followed::Over(status) => {
            if run.json {
                let (text, _) = client
                    .result(id)
                    .map_err(|error| Failed::job("read the result of", &status.job_id, &error))?;
                say(format_args!("{text}"));
            } else {
                print_end(&run.connection, &status)?;
            }
            Ok(end_code(&status))
        }
    }
}

fn input(run: &Run) -> Result<Box<RawValue>> {
    let payload = match (&run.payload, &run.payload_file) {
        (Some(text), _) => json_argument("--payload", text)?,
        (None, Some(path)) => json_argument("--payload-file", &format!("@{}", path.display()))?,
        (None, None) => RawValue::from_string("{}".to_owned())?,
    };
    if !payload.get().starts_with('{') {
        return Err(Failed::usage("the payload must be a JSON object".to_owned()).into());
    }
    let input = if run.command == "handle" {
        json!({ "command": run.command, "event": { "type": "api.trigger", "payload": payload } })
    } else {
        json!({ "command": run.command, "payload": payload })
    };
    Ok(serde_json::value::to_raw_value(&input)?)
}
