//! What a supervisor tells the daemon: one JSON object per line over their socket.
//!
//! The daemon says only one thing, and without a word: when its end of the socket is closed, the tree must end.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::json;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    /// It ended by itself, with this code.
    #[serde(rename = "exit_code")]
    Code(i32),
    /// A signal ended it.
    #[serde(rename = "signal")]
    Signal(i32),
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Report {
    /// The command could not be started: the system's number for why, and its words.
    NotStarted {
        #[serde(rename = "not_started")]
        errno: i32,
        message: String,
    },
    /// The command is over; others of its tree may not be.
    Exited(Exit),
    /// The command is being told to stop: an end before this was its own.
    Stopping { stopping: bool },
    /// The whole tree is over, but for this many that could not be ended. The last line.
    TreeEnded { left: u64 },
}

/// Whether a command was not started because its program is missing or may not be run.
pub(super) fn is_of_program(errno: i32) -> bool {
    [rustix::io::Errno::NOENT, rustix::io::Errno::ACCESS].iter().any(|known| known.raw_os_error() == errno)
}

impl Report {
    pub(super) const STOPPING: Self = Self::Stopping { stopping: true };

    pub(super) fn to_line(&self) -> String {
        format!("{}\n", json!(self))
    }

    pub(super) fn parse(line: &str) -> io::Result<Self> {
        Ok(serde_json::from_str(line)?)
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
            Report::STOPPING,
            Report::TreeEnded { left: 3 },
        ] {
            assert_eq!(Report::parse(report.to_line().trim_end()).unwrap(), report);
        }
    }
}
