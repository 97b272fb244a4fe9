//! When to try again: exponential backoff with a cap. Jitter is an input, so the same input waits the same time.

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::planted::{Bug, planted};

/// A random share in [0, 1), as parts of 65,536, drawn by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Jitter(pub u16);

impl Jitter {
    /// This share of an amount, rounded down.
    pub fn share_of(self, amount: i64) -> i64 {
        let share = i128::from(amount) * i128::from(self.0) / 65_536;
        i64::try_from(share).unwrap_or(amount)
    }
}

/// How often a job is tried and how long it waits in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Attempts in all; a lost lease counts, a poll does not.
    pub max_attempts: u32,
    /// Wait before the second attempt, in seconds.
    pub backoff_seconds: u32,
    /// The longest wait, in seconds.
    pub max_backoff_seconds: u32,
}

/// Attempts of work that others pull, if its creator does not say: only a lost worker is followed by another.
pub const PULLED_ATTEMPTS: u32 = 3;
/// The most attempts that a policy may ask for.
pub const MAX_ATTEMPTS: u32 = 1_000;
/// The longest wait that a policy may ask for: a day.
pub const MAX_BACKOFF_SECONDS: u32 = 86_400;

impl RetryPolicy {
    /// One attempt: work whose doer keeps the record, and a failure that a peer reports.
    pub const ONCE: Self = Self { max_attempts: 1, backoff_seconds: 1, max_backoff_seconds: 60 };

    /// Refuses a policy that asks for nothing or for too much.
    pub fn check(self) -> Result<(), Refusal> {
        let attempts_fit = (1..=MAX_ATTEMPTS).contains(&self.max_attempts);
        let waits_fit = self.backoff_seconds <= self.max_backoff_seconds
            && self.max_backoff_seconds <= MAX_BACKOFF_SECONDS;
        if attempts_fit && waits_fit { Ok(()) } else { Err(Refusal::InvalidPolicy { field: "retry" }) }
    }

    /// Whether another attempt may follow when this many were made.
    pub fn attempts_left(self, made: u32) -> bool {
        made < self.max_attempts || planted(Bug::AttemptsUnbounded)
    }

    /// Microseconds to wait after attempt number `made`: half of the doubled, capped wait, and a random share of
    /// the other half, so that failures of one moment do not come back in one moment.
    pub fn wait_micros(self, made: u32, jitter: Jitter) -> i64 {
        let wait = backoff_micros(self.backoff_seconds, self.max_backoff_seconds, made);
        wait / 2 + jitter.share_of(wait - wait / 2)
    }
}

/// What the creator of a job says of retries; what is left out is as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryRequest {
    /// Attempts in all.
    pub max_attempts: Option<u32>,
    /// Wait before the second attempt, in seconds.
    pub backoff_seconds: Option<u32>,
    /// The longest wait, in seconds.
    pub max_backoff_seconds: Option<u32>,
}

impl RetryRequest {
    /// The policy with what is requested over what is usual. A first wait beyond the usual longest one raises that too.
    pub fn over(self, usual: RetryPolicy) -> RetryPolicy {
        let backoff_seconds = self.backoff_seconds.unwrap_or(usual.backoff_seconds);
        RetryPolicy {
            max_attempts: self.max_attempts.unwrap_or(usual.max_attempts),
            backoff_seconds,
            max_backoff_seconds: self
                .max_backoff_seconds
                .unwrap_or(usual.max_backoff_seconds.max(backoff_seconds)),
        }
    }
}

/// `base * 2^(n-1)` seconds, at most the cap, in microseconds.
pub fn backoff_micros(base_seconds: u32, cap_seconds: u32, n: u32) -> i64 {
    let doublings = n.saturating_sub(1).min(31);
    let seconds = (u64::from(base_seconds) << doublings).min(u64::from(cap_seconds));
    i64::try_from(seconds).expect("a capped wait fits") * 1_000_000
}
