//! `longhaul jobs run | retry | update | cancel | answer`.

use anyhow::Result;
use api::{AnswerJob, CancelJob, JobResult, JobStatus, RunJob, UpdateJob};
use clap::Args;
use serde_json::Value;

use super::{One, json_argument, steer};
use crate::client::{Call, Connection, ENDS, job_path};
use crate::exit::Failed;
use crate::show::plain;

const UPDATE_EXAMPLES: &str = "Examples:
  longhaul jobs update work-0123 --state running --attempt-id attempt-4567 --note 'half way'
  longhaul jobs update work-0123 --state completed --attempt-id attempt-4567 --result-summary ok
  longhaul jobs update work-0123 --state completed --note 'done by hand'

A job that was never dispatched needs no attempt id.";

const CANCEL_EXAMPLES: &str = "Examples:
  longhaul jobs cancel work-0123
  longhaul jobs cancel work-0123 --reason 'wrong input' && longhaul jobs wait work-0123

A job that was dispatched is cancelled when its executor has stopped, or after 30 seconds.";

const ANSWER_EXAMPLES: &str = "Examples:
  longhaul jobs answer work-0123 '{\"approved\": true}'
  longhaul jobs answer work-0123 --text 'yes, go on'
  longhaul jobs answer work-0123 @answer.json";

#[derive(Args)]
#[command(after_help = UPDATE_EXAMPLES)]
pub struct Update {
    /// The job's id
    id: String,
    /// The state that it is in; the one that it has only adds a note
    #[arg(long)]
    state: String,
    /// Why, short and machine-readable
    #[arg(long)]
    reason: Option<String>,
    /// A free label
    #[arg(long)]
    phase: Option<String>,
    /// One line for the history
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// The result for people
    #[arg(long, value_name = "TEXT")]
    result_summary: Option<String>,
    /// The attempt that it is about; required once the job was dispatched
    #[arg(long, value_name = "ID")]
    attempt_id: Option<String>,
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = CANCEL_EXAMPLES)]
pub struct Cancel {
    /// The job's id
    id: String,
    /// Who asks
    #[arg(long, value_name = "PEER")]
    requested_by: Option<String>,
    /// Why
    #[arg(long, default_value = "cancel_requested")]
    reason: String,
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = ANSWER_EXAMPLES)]
pub struct Answer {
    /// The job's id
    id: String,
    /// The answer: JSON, @file, or - for standard input
    #[arg(value_name = "JSON", required_unless_present = "text", conflicts_with = "text")]
    given: Option<String>,
    /// The answer as a plain text
    #[arg(long)]
    text: Option<String>,
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

pub fn run_now(connection: &Connection, one: &One, verb: &str) -> Result<()> {
    let path = job_path(&one.id, &format!("/{verb}"));
    let status =
        steer(connection, (verb, "Job"), &one.id, one.print.json, Call::post(&path, &RunJob::default()))?;
    if status.state != "unavailable" {
        return Ok(());
    }
    let (why, id) = (why_unavailable(connection, &status), plain(&one.id));
    let told =
        format!("Failed to {verb} job: nothing here can do it: {why}; `longhaul jobs why {id}` says more");
    Err(Failed::because(told).into())
}

/// What the result of a job says about that, else its short reason.
fn why_unavailable(connection: &Connection, status: &JobStatus<'_>) -> String {
    let reason = plain(status.state_reason.as_deref().unwrap_or("unavailable"));
    let result = connection.client().and_then(|client| Ok(client.result(&status.job_id)?));
    let error = match result {
        Ok((_, JobResult::End(end))) => end.error,
        Ok((_, JobResult::NotReady(_))) | Err(_) => None,
    };
    let error = error.and_then(|error| serde_json::from_str::<Value>(error.get()).ok());
    match error.as_ref().and_then(|error| error["message"].as_str()) {
        Some(message) => format!("{} ({reason})", plain(message)),
        None => reason,
    }
}

pub fn update(connection: &Connection, update: Update) -> Result<()> {
    let sent = UpdateJob {
        attempt_id: update.attempt_id,
        state_reason: update.reason,
        phase: update.phase,
        progress_note: update.note,
        result_summary: update.result_summary,
        ..UpdateJob::to(update.state)
    };
    let path = job_path(&update.id, "");
    let call = Call { method: "PATCH", ..Call::post(&path, &sent) };
    steer(connection, ("update", "Job"), &update.id, update.json, call).map(drop)
}

pub fn cancel(connection: &Connection, cancel: Cancel) -> Result<()> {
    let sent = CancelJob { requested_by_peer_id: cancel.requested_by, reason: Some(cancel.reason) };
    let path = job_path(&cancel.id, "/cancel");
    let before = connection.client()?.status(&cancel.id);
    let before = before.map_err(|error| Failed::job("cancel", &cancel.id, error))?;
    if ENDS.contains(&&*before.state) {
        eprintln!("longhaul: the job was over already and stays as it ended; the request is on its record");
    }
    steer(connection, ("cancel", "Job"), &cancel.id, cancel.json, Call::post(&path, &sent)).map(drop)
}

pub fn answer(connection: &Connection, answer: &Answer) -> Result<()> {
    let sent = match (&answer.text, &answer.given) {
        (Some(text), _) => serde_json::value::to_raw_value(text)?,
        (None, given) => json_argument("the answer", given.as_deref().unwrap_or_default())?,
    };
    let (path, sent) = (job_path(&answer.id, "/answer"), AnswerJob { answer: sent });
    steer(connection, ("answer", "Job"), &answer.id, answer.json, Call::post(&path, &sent)).map(drop)
}
