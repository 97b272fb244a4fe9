//! What may still run outside after its end here: why, and for how long its service is asked about it.
//!
//! Its end here stays what it is: all that can be learned is that nothing runs outside any more. Nobody is asked for ever: each wait is
//! twice the one before, and both their number and the time are bounded. Whoever asks its service again to stop it begins anew.

use serde::{Deserialize, Serialize};

use super::command::PollError;
use super::fact::{Ending, ExpiryCause, Settlement};
use super::state::{How, Operation, OperationStatus, SPECIALIST_UNREGISTERED};
use super::volatile::VOLATILE_LOST;
use crate::words::words;
use crate::{Jitter, Timestamp};

/// How often a service is asked about work that the host has given up, or since it was last asked for to stop it.
pub const MAX_LATE_POLLS: u32 = 40;
/// For how long.
pub const LATE_POLLS_SECONDS: u64 = 7 * 86_400;
/// The longest wait between two of these questions.
pub const LONGEST_LATE_WAIT_SECONDS: u32 = 6 * 3_600;

words! {
    /// Why an operation may still run outside.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OrphanReason {
        /// The host gave it up while it was open.
        ExpiredWhileOpen = "expired_while_live",
        /// Its service does not know it.
        Unknown = "unknown",
        /// Somebody asked to stop it, and nobody confirmed that it has.
        CancelUnconfirmed = "cancel_unconfirmed",
        /// Nobody knows whether its service ever took it.
        SubmitOutcomeUnknown = "submit_outcome_unknown",
        /// Nobody was there who could have asked its service.
        NobodyToAsk = SPECIALIST_UNREGISTERED,
        /// It went with the daemon that left it outside.
        VolatileLost = VOLATILE_LOST,
    }
}

/// What came of asking about an operation after it was given up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aftermath {
    /// How often its service was asked.
    pub polls: u32,
    /// Why the last of these questions was of no use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<PollError>,
    /// When it is asked next; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_poll_at: Option<Timestamp>,
}

impl Operation {
    /// Why the work may still run outside, if it may.
    pub fn orphan(&self) -> Option<OrphanReason> {
        if self.settled.is_some() {
            return None;
        }
        match &self.ended.as_ref()?.how {
            How::Expired(ExpiryCause::SubmitOutcomeUnknown) => Some(OrphanReason::SubmitOutcomeUnknown),
            How::Expired(ExpiryCause::Abandoned(reason)) if reason == "cancel_unconfirmed" => {
                Some(OrphanReason::CancelUnconfirmed)
            }
            How::Expired(ExpiryCause::VolatileLost) => Some(OrphanReason::VolatileLost),
            How::Expired(
                ExpiryCause::LifetimeOver | ExpiryCause::MaxAttemptsExhausted | ExpiryCause::Abandoned(_),
            ) => Some(OrphanReason::ExpiredWhileOpen),
            How::Resolved(Ending::Unknown) => Some(OrphanReason::Unknown),
            How::Resolved(Ending::NobodyToAsk) => Some(OrphanReason::NobodyToAsk),
            How::Resolved(
                Ending::Completed { .. } | Ending::Failed { .. } | Ending::TimedOut | Ending::Expired,
            )
            | How::Cancelled => None,
        }
    }

    /// When its service is asked next whether it still runs, although the host has given it up.
    pub fn late_poll_at(&self) -> Option<Timestamp> {
        let since = self.orphaned_since()?;
        match &self.aftermath {
            None => Some(self.late_wait(0, Jitter(0), since)),
            Some(aftermath) => aftermath.next_poll_at,
        }
    }

    /// When it is asked after a question at this time that settled nothing, if it is asked again.
    pub(super) fn late_poll_after(&self, jitter: Jitter, now: Timestamp) -> Option<Timestamp> {
        let polls = self.aftermath.as_ref().map_or(0, |aftermath| aftermath.polls).saturating_add(1);
        let next = self.late_wait(polls, jitter, now);
        let last = self.orphaned_since()?.plus_seconds(LATE_POLLS_SECONDS);
        (polls < MAX_LATE_POLLS && next <= last).then_some(next)
    }

    /// Since when it is asked about as an orphan: the end, or the newest request to stop it. Without a handle nobody can be asked.
    fn orphaned_since(&self) -> Option<Timestamp> {
        self.orphan()?;
        self.handle?;
        let ended_at = self.completed_at()?;
        Some(self.cancel.as_ref().map_or(ended_at, |cancel| cancel.requested_at.max(ended_at)))
    }

    fn late_wait(&self, polls: u32, jitter: Jitter, from: Timestamp) -> Timestamp {
        let first = self.interval_seconds.max(self.policy.min_retry_after_seconds);
        let doubled = first.saturating_mul(2_u32.saturating_pow(polls));
        self.policy.next_poll_at(doubled.min(LONGEST_LATE_WAIT_SECONDS), jitter, from)
    }
}

impl Settlement {
    /// What a service's word settles: that the work is over there, however it ended. One that does not know it says nothing.
    pub(super) const fn by_word_of(status: OperationStatus) -> Option<Self> {
        match status {
            OperationStatus::Completed
            | OperationStatus::Failed
            | OperationStatus::TimedOut
            | OperationStatus::Expired
            | OperationStatus::Cancelled => Some(Self::EndedOutside { status }),
            OperationStatus::Pending | OperationStatus::Running | OperationStatus::Unknown => None,
        }
    }
}
