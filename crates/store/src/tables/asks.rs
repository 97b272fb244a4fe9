//! Asks: what peers say to each other. A plain table beside the records, not part of the ledger.
//!
//! The store keeps what it is given; what an acknowledgement means is decided in `domain::ask`. Asks whose time is over are deleted
//! when others are written, a bounded batch at a time.

use domain::ask::{Ask, AskChange, MAX_OPEN_ASKS};
use domain::{JobId, Timestamp};

use crate::StoreError;
use crate::error::too_large;

/// Which asks, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskQuery {
    /// Those that are open for a peer, or that it has asked.
    Open {
        /// The peer.
        peer: String,
        /// The circle.
        circle: Option<String>,
        /// Which way.
        direction: Direction,
        /// What is over at this time is not open.
        now: Timestamp,
        /// How many.
        limit: usize,
    },
    /// Those about a job, open or not.
    OfJob {
        /// The job.
        job_id: JobId,
        /// How many.
        limit: usize,
    },
}

/// Which way an ask goes, seen from one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To it.
    Inbound,
    /// From it.
    Outbound,
}

impl AskQuery {
    /// Whether an ask fits.
    pub fn fits(&self, ask: &Ask) -> bool {
        match self {
            Self::Open { peer, circle, direction, now, .. } => {
                let party = match direction {
                    Direction::Inbound => Some(&ask.to_peer),
                    Direction::Outbound => ask.from_peer.as_ref(),
                };
                party == Some(peer) && ask.circle == *circle && ask.closing(*now).is_none()
            }
            Self::OfJob { job_id, .. } => ask.job_id.as_ref() == Some(job_id),
        }
    }

    /// How many.
    pub const fn limit(&self) -> usize {
        match self {
            Self::Open { limit, .. } | Self::OfJob { limit, .. } => *limit,
        }
    }
}

/// Refuses what is over its limits, before anything is queued.
pub(crate) fn check_ask(change: &AskChange) -> Result<(), StoreError> {
    let checked = match change {
        AskChange::Opened(ask) => ask.check(),
        AskChange::Closed { closing, .. } => closing.check(),
    };
    checked.map_err(|refusal| too_large(&refusal))
}

/// The refusal when a peer has too many before it.
pub const fn too_many_asks() -> StoreError {
    StoreError::TooLarge { what: "open asks of a peer", limit: MAX_OPEN_ASKS }
}
