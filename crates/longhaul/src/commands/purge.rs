//! `longhaul purge`: deletes what is large or private of a job that is over. The record stays and says so.

use anyhow::Result;
use api::StatusAnswer;
use clap::Args;

use crate::client::{Call, Connection, job_path};
use crate::show::say;

const EXAMPLES: &str = "Example:
  longhaul purge work-0123

Deletes the request, prompt, input, result and artifacts of a job that is over, and what services said of its work; what happened when, and that it was purged, \
stays on the ledger until the job's retention is over.";

/// Delete the bodies and artifacts of a job that is over
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Purge {
    #[command(flatten)]
    connection: Connection,
    /// The job's id
    id: String,
}

pub fn run(Purge { connection, id }: &Purge) -> Result<()> {
    let (path, body) = (job_path(id, "/purge"), serde_json::json!({}));
    let answer: StatusAnswer<'static> =
        connection.client()?.ask_of_job("purge", id, Call::post(&path, &body))?;
    say(format_args!("Purged job {}", answer.status.job_id));
    Ok(())
}
