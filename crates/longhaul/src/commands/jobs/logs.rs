//! `longhaul jobs logs`: what a job's command has said, and goes on to say. What it said to its end is held against what its result
//! recorded: output that is gone does not look like a command that said nothing.

use std::io::{IsTerminal, Write as _};

use anyhow::Result;
use api::JobResult;
use clap::Args;
use domain::Digest;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::client::{Attempt, Client, Connection, ENDS, Sink, Stream, follow_output};
use crate::exit::Failed;

const EXAMPLES: &str = "Examples:
  longhaul jobs logs work-0123
  longhaul jobs logs work-0123 --follow               until the job is over
  longhaul jobs logs work-0123 --stderr | tail        standard error alone
  longhaul jobs logs work-0123 --attempt attempt-4567 of an earlier one: `jobs show --json`

What it said on standard output goes to standard output, and what it said on standard error follows on standard error, under a line that \
says so. Only commands and plugins have output; it is kept up to the executor's limit, until the job is purged or its retention is over. Where the job is \
over and what is left of it is not what its result recorded, that is said, and the exit code is 1.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Logs {
    /// The job's id
    id: String,
    /// Go on until the job is over
    #[arg(long, short)]
    follow: bool,
    /// Standard error alone, on standard output
    #[arg(long)]
    stderr: bool,
    /// Of this attempt; of the last if left out
    #[arg(long, value_name = "ID", conflicts_with = "follow")]
    attempt: Option<String>,
}

pub fn run(connection: &Connection, logs: &Logs) -> Result<()> {
    let streams = if logs.stderr { vec![Stream::Stderr] } else { vec![Stream::Stdout, Stream::Stderr] };
    let client = connection.client()?;
    let unread = |error| Failed::job("read the output of", &logs.id, error);
    let status = client.status(&logs.id).map_err(unread)?;
    if logs.follow {
        let printed = Printed::of(&streams);
        return follow_output(connection, &logs.id, streams, printed).map(drop);
    }
    let Some(attempt_id) = logs.attempt.clone().or_else(|| Some(Attempt::of(&status)?.id)) else {
        eprintln!("longhaul: the job has not been tried yet");
        return Ok(());
    };
    let mut printed = Printed::of(&streams);
    for stream in streams {
        let (mut offset, mut hash) = (0, Sha256::new());
        loop {
            let bytes = client.output(&logs.id, &attempt_id, stream, offset).map_err(unread)?;
            if bytes.is_empty() {
                break;
            }
            offset += bytes.len() as u64;
            hash.update(&bytes);
            printed.take(stream, &bytes);
        }
        if ENDS.contains(&&*status.state)
            && let Some(recorded) = recorded(&client, &logs.id, &attempt_id, stream)?
        {
            recorded.check(offset, Digest(hash.finalize().into()))?;
        }
    }
    Ok(())
}

/// What a result says of a stream that was kept.
#[derive(Deserialize)]
struct Recorded {
    name: String,
    path: String,
    bytes: u64,
    sha256: Digest,
}

impl Recorded {
    fn check(&self, bytes: u64, sha256: Digest) -> Result<(), Failed> {
        if (bytes, sha256) == (self.bytes, self.sha256) {
            return Ok(());
        }
        let found = match bytes {
            0 => "nothing of it is here: it was removed, or is on the node that ran it".to_owned(),
            _ if bytes == self.bytes => "what is here is not the same".to_owned(),
            _ => format!("{bytes} bytes are here"),
        };
        Err(Failed::because(format!("{} bytes of {} were recorded, and {found}", self.bytes, self.name)))
    }
}

/// What the job's end has recorded of this attempt's stream. Other artifacts have other fields, and are passed over.
fn recorded(client: &Client, id: &str, attempt_id: &str, stream: Stream) -> Result<Option<Recorded>> {
    let (_, result) = client.result(id)?;
    let JobResult::End(end) = result else { return Ok(None) };
    let artifacts: Vec<serde_json::Value> = serde_json::from_str(end.artifacts.get())?;
    let mut recorded = artifacts.into_iter().filter_map(|one| serde_json::from_value::<Recorded>(one).ok());
    // The path has the attempt's id; whoever did not make the attempt knows it by its alias.
    let is_named = |part: &str| part == attempt_id || server::attempt_alias(part) == attempt_id;
    let is_asked_for = |one: &Recorded| one.name == stream.name() && one.path.split('/').any(is_named);
    Ok(recorded.find(is_asked_for))
}

/// Every byte for a file or a pipe; a terminal is not steered by other people's text.
struct Printed {
    /// One stream goes to standard output, whichever it is; of both each goes to its own.
    alone: bool,
    last: Option<Stream>,
}

impl Printed {
    fn of(streams: &[Stream]) -> Self {
        Self { alone: streams.len() == 1, last: None }
    }
}

impl Sink for Printed {
    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        let apart = !self.alone && stream == Stream::Stderr;
        if apart && self.last != Some(stream) {
            eprintln!("longhaul: standard error:");
        }
        self.last = Some(stream);
        let terminal = if apart { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        let shown = if terminal { unsteered(bytes).into_bytes() } else { bytes.to_vec() };
        let written = if apart {
            std::io::stderr().write_all(&shown)
        } else {
            let mut stdout = std::io::stdout();
            stdout.write_all(&shown).and_then(|()| stdout.flush())
        };
        if written.is_err() {
            // `| head` has seen enough.
            std::process::exit(0);
        }
    }

    fn attempt(&mut self, attempt: &Attempt) {
        if attempt.number > 1 {
            eprintln!("longhaul: attempt {}", attempt.number);
        }
    }
}

fn unsteered(bytes: &[u8]) -> String {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    String::from_utf8_lossy(bytes).chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::unsteered;

    #[test]
    fn output_of_others_cannot_steer_the_terminal_and_keeps_its_lines() {
        assert_eq!(unsteered("a\x1b[2J\r\n\tb\u{9b}c ü\n".as_bytes()), "a [2J \n\tb c ü\n");
    }
}
