//! The time of the database, as it was last heard: nodes judge leases by it, not by their own clocks.

use std::time::{Duration, Instant};

use domain::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// What the database's clock said, and when that was by this node's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTime {
    /// What it said.
    pub at: Timestamp,
    /// The middle between question and answer.
    pub heard_at: Instant,
    /// The same by this machine's boot-time clock, in microseconds.
    pub heard_at_boot: i64,
    /// It may be off by this much to either side.
    pub uncertainty: Duration,
    /// The correction that is in it: store time minus what the server's clock says, in microseconds.
    pub correction_micros: i64,
    /// What the correction and the steps were as of.
    pub revision: i64,
}

impl StoreTime {
    pub(super) fn measured(at: Timestamp, sent: Instant, answered: Instant) -> Self {
        let half = answered.duration_since(sent) / 2;
        // Asked right after the answer: what it takes to get here is far below what matters.
        let since_boot = clock_gettime(ClockId::Boottime);
        let boot = since_boot.tv_sec.saturating_mul(1_000_000).saturating_add(since_boot.tv_nsec / 1_000);
        let heard_at_boot = boot.saturating_sub(i64::try_from(half.as_micros()).unwrap_or(i64::MAX));
        let heard_at = sent + half;
        Self { at, heard_at, heard_at_boot, uncertainty: half, correction_micros: 0, revision: 0 }
    }

    /// With the correction that is in it.
    pub(super) const fn corrected(self, correction_micros: i64, revision: i64) -> Self {
        Self { correction_micros, revision, ..self }
    }

    /// The database's time at a later moment, by the monotonic clock.
    pub fn at(&self, moment: Instant) -> Timestamp {
        let passed = i64::try_from(moment.saturating_duration_since(self.heard_at).as_micros());
        Timestamp::from_micros(self.at.micros().saturating_add(passed.unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_on_from_the_middle_of_the_question() {
        let sent = Instant::now();
        let time = StoreTime::measured(Timestamp::from_seconds(100), sent, sent + Duration::from_millis(10));
        assert_eq!(time.uncertainty, Duration::from_millis(5));
        assert_eq!(time.at(sent + Duration::from_millis(1_005)), Timestamp::from_seconds(101));
    }
}
