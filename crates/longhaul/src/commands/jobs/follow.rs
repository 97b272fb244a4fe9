//! `longhaul jobs watch | wait`: stays with a job to its end. Every change of state or note is a line; on a terminal one line moves besides.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use api::JobStatus;
use clap::Args;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::{Connection, follow};
use crate::due_time::duration;
use crate::exit::FAILED;
use crate::show::{self, Live, plain, say, say_json};

const WATCH_EXAMPLES: &str = "Examples:
  longhaul jobs watch work-0123
  longhaul jobs watch work-0123 --json | jq -c '[.state, .progress]'    every change as a line";

const WAIT_EXAMPLES: &str = "Examples:
  longhaul jobs wait work-0123 && echo completed
  longhaul jobs wait work-0123 --timeout 5m; test $? -eq 124 && echo 'still going'

Exit codes: 0 completed; 1 failed, cancelled, expired or unavailable; 3 the daemon cannot be reached; 4 no such job; \
124 the time is over, and the job goes on. A daemon that is started again meanwhile is waited for.";

#[derive(Args)]
#[command(after_help = WATCH_EXAMPLES)]
pub struct Watch {
    /// The job's id
    id: String,
    /// Print every change as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = WAIT_EXAMPLES)]
pub struct Wait {
    /// The job's id
    id: String,
    /// How long to wait at most
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Print the final status as JSON
    #[arg(long)]
    json: bool,
}

pub fn watch(connection: &Connection, watch: &Watch) -> Result<ExitCode> {
    let mut live = Live::new();
    // A terminal has the line that moves for that.
    let piped = !std::io::stdout().is_terminal();
    let mut last = String::new();
    let followed = follow(connection, &watch.id, None, &mut |status| {
        if watch.json {
            return say(serde_json::to_string(status).unwrap_or_default());
        }
        let progress = status.progress.as_deref().map(RawValue::get).filter(|text| piped && *text != "{}");
        let note = status.progress_events.as_deref().and_then(<[_]>::last).map(|note| &*note.note);
        let parts = [Some(&*status.state), progress, note];
        let now = parts.into_iter().flatten().map(plain).collect::<Vec<_>>().join("  ");
        if now != last {
            live.clear();
            say(format_args!("{}  {now}", told_at(status)));
            last = now;
        }
        live.show(status);
    });
    live.clear();
    let status = followed?;
    if !watch.json {
        say(show::job("Job", &status));
    }
    Ok(end_code(&status))
}

pub fn wait(connection: &Connection, wait: &Wait) -> Result<ExitCode> {
    let status = follow_on_a_line(connection, &wait.id, wait.timeout, Live::new())?;
    if wait.json {
        say_json(&status)?;
    } else {
        say(show::job("Job", &status));
    }
    Ok(end_code(&status))
}

/// When what is shown was told: a poll writes to its operation alone, and is then newer than the job.
fn told_at(status: &JobStatus<'_>) -> String {
    let runner = status.runner.as_deref().and_then(|runner| serde_json::from_str::<Value>(runner.get()).ok());
    let polled_at = runner.as_ref().and_then(|runner| runner["outside"]["last_polled_at"].as_str());
    // Both are written alike, so that the later one is also the larger text.
    polled_at.map_or(&*status.updated_at, |polled_at| polled_at.max(&status.updated_at)).to_owned()
}

/// Follows to the end with a line that moves.
pub fn follow_on_a_line(
    connection: &Connection,
    id: &str,
    within: Option<Duration>,
    mut live: Live,
) -> Result<JobStatus<'static>> {
    let followed = follow(connection, id, within, &mut |status| live.show(status));
    live.clear();
    followed
}

/// How a job that is over counts for scripts.
pub fn end_code(status: &JobStatus<'_>) -> ExitCode {
    if status.state == "completed" { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}
