//! `longhaul runs`: pipelines at their work: where each is, how it is stopped, and how it goes on after a failure.

use std::process::ExitCode;

use anyhow::Result;
use api::{CancelRun, Run, RunAnswer, RunList, RunRetried};
use clap::{Args, Subcommand};

use super::events::query;
use crate::client::{Call, Client, Connection, segment};
use crate::exit::Failed;
use crate::show::{Table, plain, say, say_limit};

const EXAMPLES: &str = "Examples:
  longhaul runs list --pipeline tide-alert --status failed
  longhaul runs show run-0123              where it has been, and the job of every step
  longhaul runs retry run-0123             does the steps again that failed
  longhaul runs cancel run-0123 --reason 'no longer needed'

A run keeps the definition that it began with. A step whose failure was handled is not done again; `longhaul jobs show` \
shows the job of a step.";

/// See, stop and retry runs of pipelines
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct RunsArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Runs, newest first
    #[command(after_help = EXAMPLES)]
    List(List),
    /// One run, and where it has been
    #[command(after_help = EXAMPLES)]
    Show(Named),
    /// Ask to stop a run, with everything that it has begun
    #[command(after_help = EXAMPLES)]
    Cancel {
        #[command(flatten)]
        run: Named,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Do the steps again that failed
    #[command(after_help = EXAMPLES)]
    Retry(Named),
}

#[derive(Args)]
struct Named {
    /// The run
    #[arg(value_name = "ID")]
    id: String,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct List {
    /// Only of this pipeline
    #[arg(long, value_name = "NAME")]
    pipeline: Option<String>,
    /// Only those that are running, cancelling, completed, failed or cancelled
    #[arg(long)]
    status: Option<String>,
    /// Only of this circle
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    /// Go on after this one
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Print JSON for machines
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: RunsArguments) -> Result<ExitCode> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        Verb::List(list) => show_list(&client, &list)?,
        Verb::Show(Named { id, json }) => {
            let path = format!("/runs/{}", segment(&id));
            let answer: RunAnswer =
                client.call(Call::get(&path)).map_err(|error| Failed::to("show run", &error))?;
            if json { say(format_args!("{}", serde_json::to_string(&answer)?)) } else { show(&answer.run) }
        }
        Verb::Cancel { run: Named { id, json }, reason } => {
            let path = format!("/runs/{}/cancel", segment(&id));
            let answer: RunAnswer = client
                .call(Call::post(&path, &CancelRun { reason }))
                .map_err(|error| Failed::to("cancel run", &error))?;
            if json { say(format_args!("{}", serde_json::to_string(&answer)?)) } else { show(&answer.run) }
        }
        Verb::Retry(Named { id, json }) => {
            let path = format!("/runs/{}/retry", segment(&id));
            let call = Call { method: "POST", path: &path, body: None, idempotency_key: None };
            let answer: RunRetried = client.call(call).map_err(|error| Failed::to("retry run", &error))?;
            if json {
                say(format_args!("{}", serde_json::to_string(&answer)?));
            } else {
                say(format_args!("Tried again: {}", answer.retried.join(", ")));
                show(&answer.run);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show_list(client: &Client, list: &List) -> Result<()> {
    let parts = [
        ("pipeline", &list.pipeline),
        ("status", &list.status),
        ("circle", &list.circle),
        ("cursor", &list.cursor),
    ];
    let path = format!("/runs?{}", query(&parts));
    let found: RunList = client.call(Call::get(&path)).map_err(|error| Failed::to("list runs", &error))?;
    if list.json {
        say(format_args!("{}", serde_json::to_string(&found)?));
        return Ok(());
    }
    let mut table = Table::new(&["ID", "Pipeline", "State", "Started", "Why"]);
    for run in &found.runs {
        let why = run.reason.as_deref().unwrap_or_default();
        table.row(&[&run.run_id, &run.pipeline, &run.state, &run.started_at, why]);
    }
    say(format_args!("{}", table.text()));
    if let Some(next) = &found.next_cursor {
        eprintln!("longhaul: there may be more; go on with --cursor {next}");
    }
    Ok(())
}

/// A run and where it has been.
pub(super) fn show(run: &Run) {
    let why = run.reason.as_deref().map(|why| format!(" ({})", plain(why))).unwrap_or_default();
    say(format_args!("{}: {} is {}{why}", run.run_id, plain(&run.pipeline), run.state));
    run.limits.iter().for_each(say_limit);
    let mut table = Table::new(&["Step", "State", "Job", "Why"]);
    for visit in run.visits.iter().flatten() {
        let (job, why) = (visit.job_id.as_deref(), visit.reason.as_deref());
        table.row(&[&visit.step, &visit.state, job.unwrap_or_default(), why.unwrap_or_default()]);
    }
    say(format_args!("{}", table.text()));
}
