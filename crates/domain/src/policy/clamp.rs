//! The clamp: a connector hints, the host decides. Nothing leaves these functions outside the host's bounds.

use serde::{Deserialize, Serialize};

use super::KindPolicy;
use crate::planted::{Bug, planted};
use crate::retry::backoff_micros;
use crate::{Jitter, Refusal, Timestamp};

/// What a connector said about time, read from whatever it sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// It said nothing.
    #[default]
    Absent,
    /// Whole seconds, possibly absurd.
    Seconds(i64),
    /// Something that is not a whole number of seconds.
    Invalid,
}

/// A clamped value, and whether the hint was of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// Within the host's bounds.
    pub seconds: u32,
    /// The hint was negative or not a number of seconds: worth a diagnostic.
    pub hint_was_invalid: bool,
}

/// The hints on how long an operation may live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TtlHints {
    /// The connector's `fail_after_seconds`.
    pub fail_after: Hint,
    /// The action's `preferred_max_ttl_seconds`.
    pub action_ttl: Hint,
    /// The caller's deadline: an upper bound.
    pub deadline_at: Option<Timestamp>,
}

/// What bounds the life of work outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifeLimit {
    /// The end of the job that it belongs to.
    Job,
    /// What the host grants through a handle, or the policy of its kind: `max_ttl_seconds`.
    MaxTtl,
    /// What the host grants to work of a job without a deadline: `job_ttl_seconds`.
    JobTtl,
    /// The word of its service: `fail_after`.
    FailAfter,
    /// The hint of its executor: `preferred_max_ttl_seconds`.
    ActionTtl,
    /// How long the caller waits for a result.
    Wait,
}

impl Hint {
    /// Reads the text of a hint; anything but an integer is invalid, an integer beyond 64 bits saturates.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Self::Invalid;
        }
        let saturated = if text.starts_with('-') { i64::MIN } else { i64::MAX };
        Self::Seconds(text.parse().unwrap_or(saturated))
    }
}

impl KindPolicy {
    /// When to ask again: the hint within the host's bounds.
    pub fn retry_after(&self, hint: Hint) -> Clamped {
        match hint {
            Hint::Absent => Clamped { seconds: self.default_retry_after_seconds, hint_was_invalid: false },
            Hint::Seconds(seconds) if planted(Bug::HintNotClamped) => Clamped {
                seconds: u32::try_from(seconds.max(0)).unwrap_or(u32::MAX),
                hint_was_invalid: false,
            },
            Hint::Seconds(seconds) => {
                let (min, max) = (self.min_retry_after_seconds, self.max_retry_after_seconds);
                let seconds_u32 =
                    u32::try_from(seconds.min(i64::from(max)).max(i64::from(min))).unwrap_or(max);
                Clamped { seconds: seconds_u32, hint_was_invalid: seconds < 0 }
            }
            Hint::Invalid => Clamped { seconds: self.min_retry_after_seconds, hint_was_invalid: true },
        }
    }

    /// The time of the next poll: the clamped wait and a little more, never less, and never later than the host's longest wait.
    pub fn next_poll_at(&self, retry_seconds: u32, jitter: Jitter, now: Timestamp) -> Timestamp {
        let wait = i64::from(retry_seconds) * 1_000_000;
        let most = wait / 1_000 * i64::from(self.jitter_permille);
        let room = (i64::from(self.max_retry_after_seconds) * 1_000_000 - wait).max(0);
        now.plus_micros(wait + jitter.share_of(most).min(room))
    }

    /// Before when a service that has no time now is not given the work again: its hint within the host's bounds, and a little more so
    /// that all who were sent away do not come back at once, but never more than the host's longest wait. Nothing if it said nothing.
    pub fn not_before(&self, hint: Hint, jitter: Jitter, now: Timestamp) -> Option<Timestamp> {
        match hint {
            Hint::Absent => None,
            Hint::Seconds(_) | Hint::Invalid => {
                Some(self.next_poll_at(self.retry_after(hint).seconds, jitter, now))
            }
        }
    }

    /// The time of the next poll after this many failed ones in a row: full jitter, never sooner than the host's
    /// shortest wait.
    pub fn next_poll_after_error(&self, errors_in_row: u32, jitter: Jitter, now: Timestamp) -> Timestamp {
        let backoff = backoff_micros(
            self.poll_error_backoff_seconds,
            self.max_poll_error_backoff_seconds,
            errors_in_row,
        );
        let shortest = i64::from(self.min_retry_after_seconds) * 1_000_000;
        now.plus_micros(jitter.share_of(backoff).max(shortest))
    }

    /// When the operation's life ends: the smallest hint present, never more than the host grants.
    pub fn expires_at(&self, hints: TtlHints, now: Timestamp) -> Result<Timestamp, Refusal> {
        self.life(hints, now).map(|(expires_at, _)| expires_at)
    }

    /// The same, and which of them it is.
    pub fn life(&self, hints: TtlHints, now: Timestamp) -> Result<(Timestamp, LifeLimit), Refusal> {
        if hints.deadline_at.is_some_and(|deadline| deadline <= now) {
            return Err(Refusal::DeadlineElapsed);
        }
        let hinted = [(hints.fail_after, LifeLimit::FailAfter), (hints.action_ttl, LifeLimit::ActionTtl)];
        let (ttl, limit) =
            hinted.into_iter().filter_map(|(hint, limit)| Some((hint.as_ttl_seconds()?, limit))).fold(
                (self.max_ttl_seconds, LifeLimit::MaxTtl),
                |least, one| if one.0 < least.0 { one } else { least },
            );
        let granted = now.plus_seconds(ttl);
        Ok(match hints.deadline_at {
            Some(deadline) if deadline <= granted => (deadline, LifeLimit::Job),
            Some(_) | None => (granted, limit),
        })
    }
}

impl Hint {
    /// The number of seconds, if it is one.
    pub const fn seconds(self) -> Option<i64> {
        match self {
            Self::Seconds(seconds) => Some(seconds),
            Self::Absent | Self::Invalid => None,
        }
    }

    /// A lifetime of at least a second. Nonsense grants nothing and takes nothing.
    pub(crate) fn as_ttl_seconds(self) -> Option<u64> {
        match self {
            Self::Absent | Self::Invalid => None,
            Self::Seconds(seconds) => Some(u64::try_from(seconds.max(1)).unwrap_or(1)),
        }
    }
}
