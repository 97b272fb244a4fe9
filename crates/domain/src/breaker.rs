//! Circuit breakers: whoever fails job after job is left alone for a while, then tried once, and what comes of that decides.
//!
//! A job that finds its executor left alone is not attempted: it waits in its lane and uses up no try. What is counted here is
//! kept by whoever runs the attempts; nothing of it is on the ledger.

use crate::Timestamp;
use crate::time::earliest;

/// How long whoever waits for the end of a trial waits at most before it looks again. Usually the end itself tells.
const TRIAL_LOOKED_AT_AGAIN_SECONDS: u64 = 30;

/// When an executor is left alone, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Failed jobs in a row; 0 for never.
    pub threshold: u32,
    /// How long it is left alone.
    pub reset_after_seconds: u64,
}

impl Default for BreakerPolicy {
    /// Off; half an hour once it is on.
    fn default() -> Self {
        Self { threshold: 0, reset_after_seconds: 1_800 }
    }
}

/// Whether an executor is left alone.
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

impl BreakerState {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Closed { .. } => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// As what an attempt was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetIn {
    /// As any other.
    Freely,
    /// As the one that finds out: whoever comes meanwhile waits.
    OnTrial,
}

/// What came of an attempt, as far as this is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It succeeded.
    Well,
    /// It failed and is tried again.
    AttemptFailed,
    /// It failed, and the job with it.
    JobFailed,
    /// Nothing can be said: it was stopped.
    Unknown,
}

/// The breaker of one executor.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    policy: BreakerPolicy,
    failures: u32,
    open_until: Option<Timestamp>,
    /// One attempt is on its way to find out.
    trying: bool,
}

impl Breaker {
    /// Nothing has failed yet.
    pub fn new(policy: BreakerPolicy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// When it opens, and for how long.
    pub const fn policy(&self) -> BreakerPolicy {
        self.policy
    }

    /// Lets an attempt in, or says until when its job waits.
    pub fn let_in(&mut self, now: Timestamp) -> Result<LetIn, Timestamp> {
        match (self.left_alone_until(now), self.open_until) {
            (Some(until), _) => Err(until),
            (None, None) => Ok(LetIn::Freely),
            (None, Some(_)) => {
                self.trying = true;
                Ok(LetIn::OnTrial)
            }
        }
    }

    /// Until when nobody is let in, as far as that is known; none if somebody would be.
    pub fn left_alone_until(&self, now: Timestamp) -> Option<Timestamp> {
        match self.open_until {
            Some(until) if now < until => Some(until),
            Some(_) if self.trying => Some(now.plus_seconds(TRIAL_LOOKED_AT_AGAIN_SECONDS)),
            Some(_) | None => None,
        }
    }

    /// Counts what came of an attempt, however it was let in.
    pub fn note(&mut self, ended: Ended, now: Timestamp) {
        if self.policy.threshold == 0 {
            return;
        }
        match ended {
            Ended::Well => self.reset(),
            Ended::AttemptFailed if self.trying => self.open(now),
            Ended::JobFailed => {
                self.failures += 1;
                if self.trying || self.failures >= self.policy.threshold {
                    self.open(now);
                }
            }
            Ended::AttemptFailed | Ended::Unknown => {}
        }
    }

    /// The attempt that should find out is over, whatever came of it: if nothing did, the next one finds out.
    pub fn end_trial(&mut self) {
        self.trying = false;
    }

    /// As if nothing had failed.
    pub fn reset(&mut self) {
        *self = Self::new(self.policy);
    }

    /// Whether it is left alone at this time.
    pub fn state(&self, now: Timestamp) -> BreakerState {
        match self.open_until {
            _ if self.policy.threshold == 0 => BreakerState::Off,
            None => BreakerState::Closed { failures: self.failures },
            Some(until) if now < until => BreakerState::Open { until },
            Some(_) => BreakerState::HalfOpen,
        }
    }

    fn open(&mut self, now: Timestamp) {
        self.open_until = Some(now.plus_seconds(self.policy.reset_after_seconds));
    }
}

/// Until when work that any of these could do waits: none if one of them may be asked now, or if there is none.
pub fn all_left_alone(each: impl Iterator<Item = Option<Timestamp>>) -> Option<Timestamp> {
    let mut first = None;
    for until in each {
        first = earliest(first, Some(until?));
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn breaker(threshold: u32) -> Breaker {
        Breaker::new(BreakerPolicy { threshold, reset_after_seconds: 60 })
    }

    #[test]
    fn executor_is_left_alone_after_so_many_failed_jobs_in_a_row_and_tried_once_afterwards() {
        let mut breaker = breaker(2);
        breaker.note(Ended::JobFailed, at(0));
        breaker.note(Ended::AttemptFailed, at(1));
        assert_eq!(breaker.state(at(1)), BreakerState::Closed { failures: 1 });
        breaker.note(Ended::JobFailed, at(2));
        assert_eq!(breaker.let_in(at(61)), Err(at(62)));
        assert_eq!(breaker.state(at(62)), BreakerState::HalfOpen);
        assert_eq!(breaker.let_in(at(62)), Ok(LetIn::OnTrial));
        assert_eq!(breaker.let_in(at(62)), Err(at(62 + 30)));
        breaker.note(Ended::Well, at(63));
        assert_eq!(breaker.state(at(63)), BreakerState::Closed { failures: 0 });
        assert_eq!(breaker.let_in(at(63)), Ok(LetIn::Freely));
    }

    #[test]
    fn failed_trial_leaves_it_alone_again_and_a_stopped_one_lets_the_next_try() {
        let mut breaker = breaker(1);
        breaker.note(Ended::JobFailed, at(0));
        assert_eq!(breaker.let_in(at(60)), Ok(LetIn::OnTrial));
        breaker.note(Ended::Unknown, at(61));
        breaker.end_trial();
        assert_eq!(breaker.let_in(at(61)), Ok(LetIn::OnTrial));
        breaker.note(Ended::AttemptFailed, at(62));
        breaker.end_trial();
        assert_eq!(breaker.let_in(at(100)), Err(at(122)));
        assert_eq!(breaker.let_in(at(122)), Ok(LetIn::OnTrial));
    }

    #[test]
    fn success_in_between_begins_the_count_anew() {
        let mut breaker = breaker(2);
        for ended in [Ended::JobFailed, Ended::Well, Ended::JobFailed] {
            breaker.note(ended, at(0));
        }
        assert_eq!(breaker.let_in(at(0)), Ok(LetIn::Freely));
    }

    #[test]
    fn breaker_that_is_off_or_reset_lets_everything_in() {
        let mut off = breaker(0);
        (0..100).for_each(|_| off.note(Ended::JobFailed, at(0)));
        assert_eq!((off.let_in(at(0)), off.state(at(0))), (Ok(LetIn::Freely), BreakerState::Off));
        let mut on = breaker(1);
        on.note(Ended::JobFailed, at(0));
        on.reset();
        assert_eq!(on.let_in(at(0)), Ok(LetIn::Freely));
    }

    #[test]
    fn work_waits_only_while_everyone_who_could_do_it_is_left_alone_and_until_the_first_is_not() {
        let until = |each: &[Option<Timestamp>]| all_left_alone(each.iter().copied());
        assert_eq!(until(&[]), None);
        assert_eq!(until(&[Some(at(9)), Some(at(7))]), Some(at(7)));
        assert_eq!(until(&[Some(at(9)), None]), None);
    }
}
