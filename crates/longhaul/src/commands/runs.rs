//! `longhaul runs`: pipelines at their work: where each is, how it is stopped, and how it goes on after a failure.

use anyhow::Result;
use api::{CancelRun, Run, RunAnswer, RunList, RunRetried};
use clap::{Args, Subcommand};

use crate::client::{Call, Client, query, segment};
use crate::show::{PageArgs, PrintArgs, Table, limit, plain};

const EXAMPLES: &str = "Examples:
  longhaul runs list --pipeline tide-alert --status failed
  longhaul runs show run-0123              where it has been, and the job of every step
  longhaul runs retry run-0123             does the steps again that failed
  longhaul runs cancel run-0123 --reason 'no longer needed'

A run keeps the definition that it began with. A step whose failure was handled is not done again; `longhaul jobs show` \
shows the job of a step.";

/// See, stop and retry runs of pipelines
#[derive(Subcommand)]
#[command(after_help = EXAMPLES, mut_subcommands = |verb| verb.after_help(EXAMPLES))]
pub enum Verb {
    /// Runs, newest first
    List(List),
    /// One run, and where it has been
    Show(Named),
    /// Ask to stop a run, with everything that it has begun
    Cancel {
        #[command(flatten)]
        run: Named,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Do the steps again that failed
    Retry(Named),
}

#[derive(Args)]
pub struct Named {
    /// The run
    id: String,
    #[command(flatten)]
    print: PrintArgs,
}

#[derive(Args)]
pub struct List {
    /// Only of this pipeline
    #[arg(long, value_name = "NAME")]
    pipeline: Option<String>,
    /// Only those that are running, cancelling, completed, failed or cancelled
    #[arg(long)]
    status: Option<String>,
    /// Only of this circle
    #[arg(long, short, value_name = "NAME")]
    circle: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

pub fn run(client: &Client, verb: Verb) -> Result<()> {
    match verb {
        Verb::List(List { pipeline, status, circle, page }) => {
            let asked =
                [("pipeline", &pipeline), ("status", &status), ("circle", &circle), ("cursor", &page.cursor)];
            let path = format!("/runs?{}", query(&asked));
            let found: RunList = client.ask("list runs", Call::get(&path))?;
            page.print(&found, found.next_cursor.as_deref(), table)
        }
        Verb::Show(Named { id, print }) => {
            let answer: RunAnswer = client.ask("show run", Call::get(&format!("/runs/{}", segment(&id))))?;
            print.print(&answer, |answer| shown(&answer.run))
        }
        Verb::Cancel { run: Named { id, print }, reason } => {
            let path = format!("/runs/{}/cancel", segment(&id));
            let answer: RunAnswer = client.ask("cancel run", Call::post(&path, &CancelRun { reason }))?;
            print.print(&answer, |answer| shown(&answer.run))
        }
        Verb::Retry(Named { id, print }) => {
            let path = format!("/runs/{}/retry", segment(&id));
            let answer: RunRetried = client.ask("retry run", Call::bare("POST", &path))?;
            print.print(&answer, |answer| {
                format!("Tried again: {}\n{}", answer.retried.join(", "), shown(&answer.run))
            })
        }
    }
}

fn table(list: &RunList) -> Table {
    let mut table = Table::new(&["ID", "Pipeline", "State", "Started", "Why"]);
    for run in &list.runs {
        let why = run.reason.as_deref().unwrap_or_default();
        table.row(&[&run.run_id, &run.pipeline, &run.state, &run.started_at, why]);
    }
    table
}

/// A run and where it has been.
pub(super) fn shown(run: &Run) -> String {
    let why = run.reason.as_deref().map(|why| format!(" ({})", plain(why))).unwrap_or_default();
    let mut lines = vec![format!("{}: {} is {}{why}", run.run_id, plain(&run.pipeline), run.state)];
    lines.extend(run.limits.iter().map(limit));
    let mut table = Table::new(&["Step", "State", "Job", "Why"]);
    for visit in run.visits.iter().flatten() {
        let (job, why) = (visit.job_id.as_deref(), visit.reason.as_deref());
        table.row(&[&visit.step, &visit.state, job.unwrap_or_default(), why.unwrap_or_default()]);
    }
    lines.push(table.to_string());
    lines.join("\n")
}
