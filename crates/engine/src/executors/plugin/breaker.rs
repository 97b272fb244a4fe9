//! Keeps a plugin that fails job after job from being started again and again: after so many failed jobs in a row it is left alone for
//! a while, then tried once. In memory, for each node by itself; off unless the operator says otherwise.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use domain::Timestamp;

/// When a plugin is left alone, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failed jobs in a row; 0 for never.
    pub threshold: u32,
    /// How long it is left alone.
    pub reset_after: Duration,
}

impl Default for BreakerSettings {
    /// Off; half an hour once it is on.
    fn default() -> Self {
        Self { threshold: 0, reset_after: Duration::from_mins(30) }
    }
}

/// Whether a plugin is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// It is never left alone.
    Off,
    /// It is started as usual.
    Closed {
        /// Failed jobs in a row.
        failures: u32,
    },
    /// It is left alone until then.
    Open {
        /// When it is tried again.
        until: Timestamp,
    },
    /// It is tried once, and what comes of that decides.
    HalfOpen,
}

/// What came of an attempt, as far as this is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It succeeded.
    Well,
    /// It failed and is tried again.
    AttemptFailed,
    /// It failed, and the job with it.
    JobFailed,
    /// Nothing can be said: it was stopped.
    Unknown,
}

/// The breaker of one plugin.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    counted: Mutex<Counted>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    failures: u32,
    open_until: Option<Timestamp>,
    /// One attempt is on its way to find out.
    trying: bool,
}

impl Breaker {
    pub(super) fn new(settings: BreakerSettings) -> Self {
        Self { settings, counted: Mutex::default() }
    }

    /// Whether an attempt may begin; if not, until when it is left alone.
    pub(super) fn admit(&self, now: Timestamp) -> Result<(), Timestamp> {
        let mut counted = self.lock();
        match counted.open_until {
            None => Ok(()),
            Some(until) if now < until => Err(until),
            // Whoever comes meanwhile asks again after as long as a try may be worth waiting for.
            Some(_) if counted.trying => Err(self.after(now)),
            Some(_) => {
                counted.trying = true;
                Ok(())
            }
        }
    }

    /// Counts what came of an attempt that was admitted.
    pub(super) fn note(&self, ended: Ended, now: Timestamp) {
        if self.settings.threshold == 0 {
            return;
        }
        let mut counted = self.lock();
        let was_trial = std::mem::take(&mut counted.trying);
        match ended {
            Ended::Well => *counted = Counted::default(),
            Ended::AttemptFailed if was_trial => counted.open_until = Some(self.after(now)),
            Ended::JobFailed => {
                counted.failures += 1;
                if was_trial || counted.failures >= self.settings.threshold {
                    counted.open_until = Some(self.after(now));
                }
            }
            Ended::AttemptFailed | Ended::Unknown => {}
        }
    }

    /// As if nothing had failed.
    pub(super) fn reset(&self) {
        *self.lock() = Counted::default();
    }

    pub(super) fn state(&self, now: Timestamp) -> BreakerState {
        if self.settings.threshold == 0 {
            return BreakerState::Off;
        }
        let counted = *self.lock();
        match counted.open_until {
            None => BreakerState::Closed { failures: counted.failures },
            Some(until) if now < until => BreakerState::Open { until },
            Some(_) => BreakerState::HalfOpen,
        }
    }

    fn after(&self, now: Timestamp) -> Timestamp {
        now.plus_seconds(self.settings.reset_after.as_secs())
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().expect("no holder of the lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn breaker(threshold: u32) -> Breaker {
        Breaker::new(BreakerSettings { threshold, reset_after: Duration::from_mins(1) })
    }

    #[test]
    fn plugin_is_left_alone_after_so_many_failed_jobs_in_a_row_and_tried_once_afterwards() {
        let breaker = breaker(2);
        breaker.note(Ended::JobFailed, at(0));
        breaker.note(Ended::AttemptFailed, at(1));
        assert_eq!(breaker.state(at(1)), BreakerState::Closed { failures: 1 });
        breaker.note(Ended::JobFailed, at(2));
        assert_eq!(breaker.admit(at(61)), Err(at(62)));
        assert_eq!(breaker.state(at(62)), BreakerState::HalfOpen);
        assert_eq!(breaker.admit(at(62)), Ok(()));
        assert_eq!(breaker.admit(at(62)), Err(at(122)));
        breaker.note(Ended::Well, at(63));
        assert_eq!(breaker.state(at(63)), BreakerState::Closed { failures: 0 });
    }

    #[test]
    fn failed_try_leaves_it_alone_again_and_a_stopped_one_lets_the_next_try() {
        let breaker = breaker(1);
        breaker.note(Ended::JobFailed, at(0));
        assert_eq!(breaker.admit(at(60)), Ok(()));
        breaker.note(Ended::Unknown, at(61));
        assert_eq!(breaker.admit(at(61)), Ok(()));
        breaker.note(Ended::AttemptFailed, at(62));
        assert_eq!(breaker.admit(at(100)), Err(at(122)));
    }

    #[test]
    fn success_in_between_begins_the_count_anew() {
        let breaker = breaker(2);
        for ended in [Ended::JobFailed, Ended::Well, Ended::JobFailed] {
            breaker.note(ended, at(0));
        }
        assert_eq!(breaker.admit(at(0)), Ok(()));
    }

    #[test]
    fn breaker_that_is_off_or_reset_lets_everything_through() {
        let off = breaker(0);
        (0..100).for_each(|_| off.note(Ended::JobFailed, at(0)));
        assert_eq!((off.admit(at(0)), off.state(at(0))), (Ok(()), BreakerState::Off));
        let on = breaker(1);
        on.note(Ended::JobFailed, at(0));
        on.reset();
        assert_eq!(on.admit(at(0)), Ok(()));
    }
}
