//! Whose word counts for an attempt: to whom it was handed, and who reports on it.
//!
//! An attempt's id says which attempt a report is about. It proves nothing about the sender: ids are seen in answers, logs and
//! commands. The holder is written down when the attempt is handed out, and only its holder reports on it.

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use crate::AttemptId;
use crate::limits::{MAX_ID_BYTES, MAX_LABEL_BYTES, check_optional, check_text};
use crate::planted::{Bug, planted};

/// To whom an attempt was handed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// Anyone who knows the attempt's id: an older version handed it out without a name, or an executor of the daemon passed it on
    /// to someone else.
    #[default]
    Bearer,
    /// The daemon, which runs it itself.
    Daemon,
    /// The caller that pulled it.
    Caller(Caller),
}

/// A caller from outside, as its token names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The token's id; never its secret.
    pub token: String,
    /// The peer that it speaks for. Every token of a peer is the same worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}

/// Who reports on an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reporter {
    /// The daemon itself, under its claim.
    #[default]
    Daemon,
    /// The process that the daemon started for this attempt, with the token that it was given.
    AttemptToken(AttemptId),
    /// A caller from outside.
    Caller(Caller),
}

impl Holder {
    /// Refuses a name that the record could not keep.
    pub(super) fn check(&self) -> Result<(), crate::Refusal> {
        match self {
            Self::Bearer | Self::Daemon => Ok(()),
            Self::Caller(caller) => check_text("token", &caller.token, MAX_ID_BYTES)
                .and_then(|()| check_optional("peer", caller.peer.as_deref(), MAX_LABEL_BYTES)),
        }
    }
}

impl Caller {
    /// Whether both are the same worker: tokens of one peer, or the same token.
    pub fn is_same_worker(&self, other: &Self) -> bool {
        let same_peer = self.peer.is_some() && self.peer == other.peer;
        same_peer || self.token == other.token
    }
}

impl Attempt {
    /// Whether it was handed to this caller by name.
    pub fn is_held_by(&self, reporter: &Reporter) -> bool {
        match (&self.holder, reporter) {
            (Holder::Caller(holder), Reporter::Caller(caller)) => holder.is_same_worker(caller),
            (Holder::Caller(_) | Holder::Bearer | Holder::Daemon, _) => false,
        }
    }

    /// Whether a report of this sender on this attempt counts.
    pub fn accepts_reports_of(&self, reporter: &Reporter) -> bool {
        if planted(Bug::ReportOfAnotherAccepted) {
            return true;
        }
        match (&self.holder, reporter) {
            (Holder::Bearer, Reporter::Daemon | Reporter::Caller(_)) | (Holder::Daemon, Reporter::Daemon) => {
                true
            }
            (Holder::Bearer | Holder::Daemon, Reporter::AttemptToken(id)) => *id == self.id,
            (Holder::Caller(holder), Reporter::Caller(caller)) => holder.is_same_worker(caller),
            (Holder::Daemon, Reporter::Caller(_))
            | (Holder::Caller(_), Reporter::Daemon | Reporter::AttemptToken(_)) => false,
        }
    }

    /// Whether this caller is shown the attempt's id. One that anyone may use is shown to nobody: its holder has it.
    pub fn shows_its_id_to(&self, reporter: &Reporter) -> bool {
        match (&self.holder, reporter) {
            (Holder::Bearer, Reporter::Daemon | Reporter::Caller(_)) => false,
            (Holder::Bearer | Holder::Daemon | Holder::Caller(_), _) => self.accepts_reports_of(reporter),
        }
    }
}
