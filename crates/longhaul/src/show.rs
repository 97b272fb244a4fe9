//! Jobs for people: the text of one, the table of many, the line that moves. Machines get `--json` and never this.

mod live;
mod outside;
mod table;

use std::fmt::{Display, Write as _};
use std::io::{ErrorKind, Write as _};

use anyhow::Result;
use api::{AttemptError, JobStatus, Outside, ReachedLimit};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::exit::FAILED;

pub use live::Live;
use outside::{last_answer, last_error, what_was_granted, where_it_goes_on};
pub use table::Table;

/// What of the runner's record is shown.
#[derive(Default, Deserialize)]
pub struct Runner {
    #[serde(default)]
    pub attempt_count: u32,
    pub current_attempt_id: Option<String>,
    pub last_error: Option<AttemptError<'static>>,
    pub outside: Option<Outside<'static>>,
}

impl Runner {
    /// The runner's record of a job, if it was dispatched.
    pub fn of(status: &JobStatus<'_>) -> Option<Self> {
        serde_json::from_str(status.runner.as_deref()?.get()).ok()
    }
}

/// A headline and what is known, empty fields left out.
pub fn job(headline: &str, status: &JobStatus<'_>) -> String {
    let runner = Runner::of(status);
    let outside = runner.as_ref().and_then(|runner| runner.outside.as_ref());
    let attempt = runner.as_ref().and_then(|runner| {
        let id = runner.current_attempt_id.as_ref()?;
        Some(format!("{id} (number {})", runner.attempt_count))
    });
    let cancel = status.cancel_requested.then(|| {
        let reason = status.cancellation_reason.as_deref().unwrap_or("requested");
        status
            .cancel_requested_by_peer_id
            .as_deref()
            .map_or_else(|| reason.to_owned(), |by| format!("{reason}, by {by}"))
    });
    let state = match status.state_reason.as_deref() {
        Some(reason) if reason != status.state => format!("{} ({})", status.state, in_words(reason)),
        Some(_) | None => status.state.to_string(),
    };
    let progress =
        status.progress.as_deref().map(|progress| progress.get().to_owned()).filter(|text| text != "{}");
    let fields = [
        ("title", Some(status.title.to_string())),
        ("state", Some(state)),
        ("kind", Some(status.kind.to_string())),
        ("owner", status.owner_peer_id.as_deref().map(str::to_owned)),
        ("assigned", status.assigned_peer_id.as_deref().map(str::to_owned)),
        ("due_at", status.due_at.as_deref().map(str::to_owned)),
        ("attempt", attempt),
        ("phase", status.phase.as_deref().map(str::to_owned)),
        ("progress", progress),
        ("outside", outside.map(where_it_goes_on)),
        ("last answer", outside.and_then(last_answer)),
        ("external job", outside.and_then(|outside| outside.external_job_id.as_deref().map(str::to_owned))),
        ("persistence", outside.and_then(|outside| outside.persistence.as_deref().map(str::to_owned))),
        ("granted", outside.and_then(what_was_granted)),
        ("last error", outside.and_then(last_error)),
        ("result", status.result_summary.as_deref().map(str::to_owned)),
        ("cancel", cancel),
    ];
    let mut text = format!("{headline} {}", plain(&status.job_id));
    for (name, value) in fields {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let _ = write!(text, "\n  {name}: {}", plain(&value));
        }
    }
    text
}

/// How an answer is printed.
#[derive(Args, Clone, Copy)]
pub struct PrintArgs {
    /// Print JSON for machines
    #[arg(long)]
    pub json: bool,
}

impl PrintArgs {
    /// Prints an answer: as it came for machines, or as text for people.
    pub fn print<T: Serialize, D: Display>(self, answer: &T, text: impl FnOnce(&T) -> D) -> Result<()> {
        if self.json {
            return say_json(answer);
        }
        say(text(answer));
        Ok(())
    }
}

/// How far a list is read, and how it is printed.
#[derive(Args)]
pub struct PageArgs {
    /// Go on after this one
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    #[command(flatten)]
    print: PrintArgs,
}

impl PageArgs {
    /// Prints a page, and for people whether there may be another.
    pub fn print<T: Serialize>(&self, page: &T, next: Option<&str>, table: fn(&T) -> Table) -> Result<()> {
        self.print.print(page, table)?;
        if let Some(next) = next.filter(|_| !self.print.json) {
            eprintln!("longhaul: there may be more; go on with --cursor {next}");
        }
        Ok(())
    }
}

/// A reason in words; the reason itself if it is not one of the rules' own.
pub fn in_words(reason: &str) -> String {
    let words = match reason {
        "runner_interrupted" => {
            "whoever did it was not heard of before the lease ended, and no attempt is left; `longhaul jobs why` names them, \
             `longhaul jobs retry` makes another attempt"
        }
        "lease_lost" => "whoever did it was not heard of before the lease ended",
        "deadline_elapsed" => "its time was over before it was",
        "cancel_unconfirmed" => "it was asked to stop and did not confirm it in time; it may still run",
        "cancel_unconfirmed_lease_lost" => {
            "it was asked to stop, and whoever did it was not heard of before it could confirm it"
        }
        "missing_target" => "it names no executor, peer or folder",
        other => return other.to_owned(),
    };
    format!("{reason}: {words}")
}

/// Prints what machines read.
pub fn say_json(answer: &impl Serialize) -> Result<()> {
    say(serde_json::to_string(answer)?);
    Ok(())
}

/// Prints a line. A reader that has gone away has seen enough: `| head` is no failure.
pub fn say(line: impl Display) {
    let Err(error) = writeln!(std::io::stdout(), "{line}") else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    eprintln!("longhaul: cannot write to standard output: {error}");
    std::process::exit(FAILED.into());
}

/// Prints a line of a verb whose work goes on, or whose exit code matters, whether it is read or not.
pub fn say_if_read(line: impl Display) {
    let Err(error) = writeln!(std::io::stdout(), "{line}") else { return };
    if error.kind() != ErrorKind::BrokenPipe {
        eprintln!("longhaul: cannot write to standard output: {error}");
    }
}

/// The same text without what would move the cursor or change the terminal: titles and notes are other people's.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A line about a limit, and what changes it.
pub fn limit(limit: &ReachedLimit) -> String {
    let ReachedLimit { limit, value, whose, key } = limit;
    let remedy = match key.strip_prefix("none: ") {
        Some(why) => format!("it cannot be changed: {}", plain(why)),
        None => format!("change {}", plain(key)),
    };
    format!("  limit: {} = {value} ({whose}); {remedy}", plain(limit))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        assert_eq!(plain("a\x1b[2J\r\nb\u{9b}c"), "a [2J  b c");
    }
}
