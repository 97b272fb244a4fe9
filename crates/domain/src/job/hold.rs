//! What keeps a queued job from being begun, whoever would begin it.

use serde::{Deserialize, Serialize};

use super::state::Job;
use super::why::Reason;
use crate::{Refusal, Timestamp};

/// Why nobody may begin a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold<'a> {
    /// What it was asked to do was deleted.
    Purged,
    /// Someone has paused it.
    Paused(&'a Pause),
}

/// A pause: who asked for it, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Since when.
    pub at: Timestamp,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Job {
    /// What keeps it from being begun, if anything does.
    pub fn hold(&self) -> Option<Hold<'_>> {
        let purged = self.purged_at.map(|_| Hold::Purged);
        purged.or_else(|| self.paused.as_deref().map(Hold::Paused))
    }
}

impl Hold<'_> {
    /// The answer to whoever would begin it.
    pub fn refusal(self) -> Refusal {
        match self {
            Self::Purged => Refusal::Purged,
            Self::Paused(_) => Refusal::Paused,
        }
    }

    /// The same for people.
    pub fn reason(self) -> Reason {
        let (code, detail, since) = match self {
            Self::Purged => (
                "purged",
                "what it was asked to do was deleted on request: it is not done again; create a new job"
                    .to_owned(),
                None,
            ),
            Self::Paused(Pause { at, by, reason }) => {
                let by = by.as_deref().unwrap_or("someone");
                let why = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
                let detail =
                    format!("{by} paused it at this time{why}; `longhaul jobs resume` lets it go on");
                ("paused", detail, Some(*at))
            }
        };
        Reason { code, detail, until: since }
    }
}
