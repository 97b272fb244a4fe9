//! `longhaul jobs run | retry | update | cancel`.

use std::process::ExitCode;

use anyhow::Result;
use api::{CancelJob, JobResult, JobStatus, RunJob, StatusAnswer, UpdateJob};
use clap::Args;
use serde_json::Value;

use super::{One, steer, told};
use crate::client::{Call, Connection, ENDS, job_path};
use crate::exit::{FAILED, Failed};
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

#[derive(Args)]
#[command(after_help = UPDATE_EXAMPLES)]
pub struct Update {
    /// The job's id
    #[arg(value_name = "ID")]
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
    #[arg(value_name = "ID")]
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

pub fn run_now(connection: &Connection, one: &One, verb: &str) -> Result<ExitCode> {
    let path = job_path(&one.id, &format!("/{verb}"));
    let status = told(connection, verb, &one.id, one.json, Call::post(&path, &RunJob::default()))?;
    if status.state != "unavailable" {
        return Ok(ExitCode::SUCCESS);
    }
    let (why, id) = (why_unavailable(connection, &status), plain(&one.id));
    let message =
        format!("Failed to {verb} job: nothing here can do it: {why}; `longhaul jobs why {id}` says more");
    Err(Failed { code: FAILED, message }.into())
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

pub fn update(connection: &Connection, update: Update) -> Result<ExitCode> {
    let sent = UpdateJob {
        attempt_id: update.attempt_id,
        state_reason: update.reason,
        phase: update.phase,
        progress_note: update.note,
        result_summary: update.result_summary,
        ..UpdateJob::to(update.state)
    };
    steer(connection, "update", &update.id, update.json, Call::patch(&job_path(&update.id, ""), &sent))
}

pub fn cancel(connection: &Connection, cancel: Cancel) -> Result<ExitCode> {
    let sent = CancelJob { requested_by_peer_id: cancel.requested_by, reason: Some(cancel.reason) };
    let path = job_path(&cancel.id, "/cancel");
    let before: StatusAnswer<'static> = connection
        .client()?
        .call(Call::get(&job_path(&cancel.id, "")))
        .map_err(|error| Failed::job("cancel", &cancel.id, &error))?;
    if ENDS.contains(&&*before.status.state) {
        eprintln!("longhaul: the job was over already and stays as it ended; the request is on its record");
    }
    steer(connection, "cancel", &cancel.id, cancel.json, Call::post(&path, &sent))
}
