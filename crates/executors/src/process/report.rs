//! What a supervisor tells the daemon: one JSON object per line over their socket.
//!
//! The daemon says only one thing, and without a word: when its end of the socket is closed, the tree must end.

use std::io;

use serde_json::{Value, json};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It ended by itself, with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The command could not be started: the system's number for why, and its words.
    NotStarted { errno: i32, message: String },
    /// The command is over; others of its tree may not be.
    Exited(Exit),
    /// The command is being told to stop: an end before this was its own.
    Stopping,
    /// The whole tree is over, but for this many that could not be ended. The last line.
    TreeEnded { left: u64 },
}

/// Whether a command was not started because its program is missing or may not be run.
pub(super) fn is_of_program(errno: i32) -> bool {
    [rustix::io::Errno::NOENT, rustix::io::Errno::ACCESS].iter().any(|known| known.raw_os_error() == errno)
}

impl Report {
    pub(super) fn to_line(&self) -> String {
        let line = match self {
            Self::NotStarted { errno, message } => json!({ "not_started": errno, "message": message }),
            Self::Exited(Exit::Code(code)) => json!({ "exit_code": code }),
            Self::Exited(Exit::Signal(signal)) => json!({ "signal": signal }),
            Self::Stopping => json!({ "stopping": true }),
            Self::TreeEnded { left } => json!({ "left": left }),
        };
        format!("{line}\n")
    }

    pub(super) fn parse(line: &str) -> io::Result<Self> {
        let value: Value = serde_json::from_str(line)?;
        let number = |name: &str| value.get(name).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
        if let Some(errno) = number("not_started") {
            let message = value.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
            return Ok(Self::NotStarted { errno, message });
        }
        if let Some(code) = number("exit_code") {
            return Ok(Self::Exited(Exit::Code(code)));
        }
        if let Some(signal) = number("signal") {
            return Ok(Self::Exited(Exit::Signal(signal)));
        }
        if value.get("stopping").is_some() {
            return Ok(Self::Stopping);
        }
        match value.get("left").and_then(Value::as_u64) {
            Some(left) => Ok(Self::TreeEnded { left }),
            None => Err(io::Error::other(format!("no report of a supervisor: {line}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exit, Report};

    #[test]
    fn every_report_is_read_as_it_was_written() {
        for report in [
            Report::NotStarted { errno: 2, message: "no\nsuch".to_owned() },
            Report::Exited(Exit::Code(75)),
            Report::Exited(Exit::Signal(9)),
            Report::Stopping,
            Report::TreeEnded { left: 3 },
        ] {
            assert_eq!(Report::parse(report.to_line().trim_end()).unwrap(), report);
        }
    }
}
