//! How commands end: one exit code for each thing that a script does differently.

use std::process::ExitCode;

use config_file::Mistake;
use store::StoreError;
use store_sql::{BackupError, OpenError, ScratchError};

use crate::client::CallError;

/// The text of every help page about exit codes.
pub const EXIT_CODES: &str = "Exit codes:
    0  done; a job that was waited for has completed
    1  refused, or the job failed, was cancelled, expired or is unavailable
    2  wrong usage
    3  the daemon cannot be reached
    4  there is no such job, token or plugin
  5, 6  of drill and bench: see their --help
  124  the time of a wait is over; the job goes on";

pub const FAILED: u8 = 1;
const USAGE: u8 = 2;
pub const UNREACHABLE: u8 = 3;
const NOT_FOUND: u8 = 4;
/// A proof that proves nothing: too little happened, or it was ended early.
pub const VOID: u8 = 5;
/// A proof that could not be made.
pub const UNPROVEN: u8 = 6;
pub const TIMED_OUT: u8 = 124;

/// A command that did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    pub code: u8,
    pub message: String,
}

impl Failed {
    /// The arguments ask for what cannot be.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into() }
    }

    /// It was refused, or is not so.
    pub fn because(message: impl Into<String>) -> Self {
        Self { code: FAILED, message: message.into() }
    }

    /// There is nothing of that name.
    pub fn missing(message: impl Into<String>) -> Self {
        Self { code: NOT_FOUND, message: message.into() }
    }

    /// A call about the job with this id did not succeed.
    pub fn job(verb: &str, id: &str, error: CallError) -> Self {
        match error {
            CallError::NotFound(_) => Self::missing(format!("No job: {id}")),
            CallError::Refused(problem) => {
                Self::because(format!("Failed to {verb} job: {}{}", problem.detail, fields(&problem)))
            }
            other @ (CallError::Unreachable { .. } | CallError::Unintelligible(_)) => other.into(),
        }
    }

    /// Another call did not succeed: what it was to do, in a few words.
    pub fn to(what: &str, error: CallError) -> Self {
        match error {
            CallError::Refused(problem) => Self::because(format!("Failed to {what}: {}", problem.detail)),
            other @ (CallError::NotFound(_)
            | CallError::Unreachable { .. }
            | CallError::Unintelligible(_)) => other.into(),
        }
    }
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        let code = match error {
            CallError::Unreachable { .. } => UNREACHABLE,
            CallError::NotFound(_) => NOT_FOUND,
            CallError::Refused(_) | CallError::Unintelligible(_) => FAILED,
        };
        Self { code, message: error.to_string() }
    }
}

/// The exit code of an error, and its last words: what the daemon or the arguments said, or a stable code and a text.
pub fn exit_as(error: &anyhow::Error, otherwise: u8) -> ExitCode {
    if let Some(failed) = error.downcast_ref::<Failed>() {
        crate::log::say!("longhaul: {failed}");
        return ExitCode::from(failed.code);
    }
    crate::log::say!("error[{}]: {}", code(error), in_words(error));
    ExitCode::from(otherwise)
}

/// An error and its causes, each said once: many a text has its cause in it already.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if said.is_empty() {
            said = cause;
        } else if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}

fn code(error: &anyhow::Error) -> &'static str {
    let of_store = error.downcast_ref().map(OpenError::code).or(error.downcast_ref().map(StoreError::code));
    let of_backup =
        error.downcast_ref().map(BackupError::code).or(error.downcast_ref().map(ScratchError::code));
    let of_file = error.is::<Mistake>().then_some("invalid_config");
    let of_system = error.is::<std::io::Error>().then_some("io");
    of_store.or(of_backup).or(of_file).or(of_system).unwrap_or("failed")
}

/// What is wrong with which field, where the detail does not say it already.
fn fields(problem: &api::Problem) -> String {
    let told: Vec<String> = problem
        .errors
        .iter()
        .filter(|error| !problem.detail.contains(&error.msg))
        .map(|error| format!("{}: {}", error.loc.join("."), error.msg))
        .collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join("; ")) }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn cause_that_a_text_has_in_it_already_is_not_said_again() {
        let missing = || std::io::Error::other("there is nothing");
        let open = OpenError::Io { path: "here".into(), source: missing() };
        assert_eq!(in_words(&open.into()), "cannot open here: there is nothing");
        let failed = Err::<(), _>(missing()).context("cannot begin").unwrap_err();
        assert_eq!(in_words(&failed), "cannot begin: there is nothing");
    }
}
