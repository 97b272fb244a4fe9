//! `longhaul progress`: one line on the descriptor that an attempt has for it. Says what is wrong instead of writing what would be dropped.

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use domain::limits::{
    MAX_LABEL_BYTES, MAX_NOTE_BYTES, MAX_PROGRESS_BYTES, check_optional, check_optional_bytes,
};
use executors::process::{MAX_LINE_BYTES, PROGRESS_DESCRIPTOR};
use serde_json::{Map, Value};
use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;

const EXAMPLES: &str = "Examples:
  longhaul progress --note 'half way'
  longhaul progress --phase printing '{\"done\": 3, \"of\": 10}'      done and of make a bar";

/// From inside a command that a job runs: say how it goes
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Progress {
    /// One line for people
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// A label of where it is
    #[arg(long, value_name = "LABEL")]
    phase: Option<String>,
    /// The progress, a JSON object such as '{"done": 3, "of": 10}'
    #[arg(value_name = "JSON")]
    object: Option<String>,
}

pub fn run(Progress { note, phase, object }: &Progress) -> Result<()> {
    let line = line(note.as_deref(), phase.as_deref(), object.as_deref())?;
    let Some(descriptor) = env::var_os(PROGRESS_DESCRIPTOR) else {
        bail!(
            "not inside an attempt: {PROGRESS_DESCRIPTOR} is not set; call this from a command that a job runs"
        );
    };
    let descriptor: u32 = descriptor.to_str().and_then(|number| number.parse().ok()).with_context(|| {
        format!("{PROGRESS_DESCRIPTOR} is {}, and must be a number", descriptor.display())
    })?;
    let mut pipe =
        OpenOptions::new().write(true).open(format!("/proc/self/fd/{descriptor}")).with_context(|| {
            format!("descriptor {descriptor} is not open; whoever starts this must pass it on")
        })?;
    // A program that lost the descriptor may have opened something else under its number.
    ensure!(pipe.metadata()?.file_type().is_fifo(), "descriptor {descriptor} is not the attempt's pipe");
    pipe.write_all(line.as_bytes()).context("the daemon does not listen any more")?;
    Ok(())
}

fn line(note: Option<&str>, phase: Option<&str>, progress: Option<&str>) -> Result<String> {
    check_optional("note", note, MAX_NOTE_BYTES)?;
    check_optional("phase", phase, MAX_LABEL_BYTES)?;
    check_optional_bytes("progress", progress, MAX_PROGRESS_BYTES)?;
    let mut fields = Map::new();
    if let Some(text) = progress {
        let object: Map<String, Value> =
            serde_json::from_str(text).context("the progress must be a JSON object")?;
        fields.insert("progress".to_owned(), Value::Object(object));
    }
    for (name, text) in [("note", note), ("phase", phase)] {
        if let Some(text) = text {
            fields.insert(name.to_owned(), Value::from(text));
        }
    }
    ensure!(!fields.is_empty(), "nothing to say: give --note, --phase or a JSON object");
    let line = format!("{}\n", Value::Object(fields));
    ensure!(line.len() <= MAX_LINE_BYTES, "the line is longer than {MAX_LINE_BYTES} bytes");
    Ok(line)
}
