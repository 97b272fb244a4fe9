//! The time of the database, as it was last heard: nodes judge leases by it, not by their own clocks.

use std::time::{Duration, Instant};

use domain::Timestamp;

/// What the database's clock said, and when that was by this node's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTime {
    /// What it said.
    pub at: Timestamp,
    /// The middle between question and answer.
    pub heard_at: Instant,
    /// It may be off by this much to either side.
    pub uncertainty: Duration,
}

impl StoreTime {
    pub(super) fn measured(at: Timestamp, sent: Instant, answered: Instant) -> Self {
        let half = answered.duration_since(sent) / 2;
        Self { at, heard_at: sent + half, uncertainty: half }
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
