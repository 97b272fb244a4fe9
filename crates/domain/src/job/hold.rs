//! What keeps a queued job from being begun, whoever would begin it.

use super::state::Job;
use super::why::Reason;
use crate::Refusal;

/// Why nobody may begin a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// What it was asked to do was deleted.
    Purged,
}

impl Job {
    /// What keeps it from being begun, if anything does.
    pub fn hold(&self) -> Option<Hold> {
        self.purged_at.map(|_| Hold::Purged)
    }
}

impl Hold {
    /// The answer to whoever would begin it.
    pub fn refusal(self) -> Refusal {
        match self {
            Self::Purged => Refusal::Purged,
        }
    }

    /// The same for people.
    pub fn reason(self) -> Reason {
        let (code, detail) = match self {
            Self::Purged => (
                "purged",
                "what it was asked to do was deleted on request: it is not done again; create a new job"
                    .to_owned(),
            ),
        };
        Reason { code, detail, until: None }
    }
}
