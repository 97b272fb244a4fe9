//! Instants as integer microseconds UTC. This file reads no clock: `now` is always an argument.

pub mod duration;
pub mod timeline;
pub mod timers;

use serde::{Deserialize, Serialize};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// An instant, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The instant that many microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The instant that many whole seconds after the epoch.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(MICROS_PER_SECOND))
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// This many seconds later; stays at the last representable instant rather than wrapping.
    pub fn plus_seconds(self, seconds: u64) -> Self {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        self.plus_micros(seconds.saturating_mul(MICROS_PER_SECOND))
    }

    /// This many microseconds later, saturating.
    pub const fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Whole seconds from `earlier` to here, zero if `earlier` is later.
    pub fn seconds_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0) / MICROS_PER_SECOND).unwrap_or(0)
    }
}

/// The earlier of two optional instants, where absent means "never".
pub fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
