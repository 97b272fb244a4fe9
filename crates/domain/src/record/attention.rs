//! When a record next needs someone: the pure function of its state that every commit writes into the agenda.
//!
//! A held record is left to its owner until the lease ends or the record's own limit passes. A free record is due
//! at a time, or is ready in a lane, or waits for someone outside (then only its limit is due). Held, it keeps its place:
//! so the limit of a lane is counted.

use std::sync::Arc;

use crate::Timestamp;
use crate::time::earliest;

/// What the agenda must know of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Whether an owner's lease governs it.
    pub holding: Holding,
    /// Where it queues for an executor, if it does; held, where it came from.
    pub place: Option<Place>,
    /// When a free record needs someone by itself.
    pub due_at: Option<Timestamp>,
    /// When anyone may take it although it is held.
    pub limit_at: Option<Timestamp>,
}

/// Whether an owner's lease governs a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Someone works on it under a lease; its end is due.
    LeaseBound,
    /// Nobody does, and nobody ever did: whoever has claimed it from outside keeps it, whatever is said of it meanwhile.
    Claimable,
    /// Nobody does; a commit releases the claim.
    Free,
}

/// A place in a lane: lanes are first in, first out, within a priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The lane.
    pub lane: Arc<str>,
    /// Higher goes first.
    pub priority: i32,
    /// Lower goes first.
    pub sequence: i64,
    /// Not ready before.
    pub ready_at: Timestamp,
}

/// How long records are kept after their end, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Completed jobs.
    pub completed_seconds: u64,
    /// Every other end.
    pub other_seconds: u64,
}

impl Retention {
    /// 7 days, and 30 for what did not complete.
    pub const DEFAULT: Self = Self { completed_seconds: 7 * 86_400, other_seconds: 30 * 86_400 };
}

/// What the agenda row says right after a commit at a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whether the lease of the holder, if any, stays.
    pub holding: Holding,
    /// The place, and whether it may be taken already.
    pub place: Option<Place>,
    /// Whether the place may be taken.
    pub ready: bool,
    /// When a free record is due.
    pub due_at: Option<Timestamp>,
    /// When anyone may take it.
    pub limit_at: Option<Timestamp>,
}

impl Attention {
    /// Nothing but its own limit brings it back.
    pub(crate) fn waiting(limit_at: Option<Timestamp>) -> Self {
        Self { holding: Holding::Free, place: None, due_at: limit_at, limit_at }
    }

    /// When the place of a free record may be taken.
    pub fn queues_until(&self) -> Option<Timestamp> {
        match self.holding {
            Holding::Free | Holding::Claimable => self.place.as_ref().map(|place| place.ready_at),
            Holding::LeaseBound => None,
        }
    }

    /// The agenda row at this time: a place whose time has come is ready, a later one is due then.
    pub fn entry(self, now: Timestamp) -> Entry {
        let ready_at = self.queues_until();
        let ready = ready_at.is_some_and(|ready_at| ready_at <= now);
        let queued_until = ready_at.filter(|_| !ready);
        Entry {
            holding: self.holding,
            ready,
            due_at: earliest(self.due_at, queued_until),
            limit_at: self.limit_at,
            place: self.place,
        }
    }
}
