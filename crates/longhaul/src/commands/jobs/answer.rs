//! `longhaul jobs answer`.

use std::process::ExitCode;

use anyhow::Result;
use api::AnswerJob;
use clap::Args;

use super::{json_argument, steer};
use crate::client::{Call, Connection, job_path};

const EXAMPLES: &str = "Examples:
  longhaul jobs answer work-0123 '{\"approved\": true}'
  longhaul jobs answer work-0123 --text 'yes, go on'
  longhaul jobs answer work-0123 @answer.json";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Answer {
    /// The job's id
    #[arg(value_name = "ID")]
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

pub fn run(connection: &Connection, answer: &Answer) -> Result<ExitCode> {
    let sent = match (&answer.text, &answer.given) {
        (Some(text), _) => serde_json::value::to_raw_value(text)?,
        (None, given) => json_argument("the answer", given.as_deref().unwrap_or_default())?,
    };
    let path = job_path(&answer.id, "/answer");
    steer(connection, "answer", &answer.id, answer.json, Call::post(&path, &AnswerJob { answer: sent }))
}
