//! `longhaul purge`: deletes what is large or private of a job that is over. The record stays and says so.

use std::process::ExitCode;

use anyhow::Result;
use api::StatusAnswer;
use clap::Args;

use crate::client::{Call, Connection, job_path};
use crate::exit::Failed;
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
    #[arg(value_name = "ID")]
    id: String,
}

pub fn run(purge: &Purge) -> Result<ExitCode> {
    let path = job_path(&purge.id, "/purge");
    let answer: StatusAnswer<'static> = purge
        .connection
        .client()?
        .call(Call::post(&path, &serde_json::json!({})))
        .map_err(|error| Failed::job("purge", &purge.id, &error))?;
    say(format_args!("Purged job {}", answer.status.job_id));
    Ok(ExitCode::SUCCESS)
}
