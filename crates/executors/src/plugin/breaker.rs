//! The breaker of a plugin, in memory and for each node by itself: the rules are `domain::breaker`, here is what attempts share of it.

use std::sync::{Arc, Mutex, MutexGuard};

use domain::Timestamp;
use domain::breaker::{Breaker, BreakerPolicy, LetIn};

use engine::Admission;

/// The breaker of one plugin.
#[derive(Debug)]
pub(super) struct PluginBreaker(Mutex<Breaker>);

impl PluginBreaker {
    pub(super) fn new(policy: BreakerPolicy) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Breaker::new(policy))))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Breaker> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

/// Lets an attempt in, or says until when its job waits.
pub(super) fn let_in(breaker: &Arc<PluginBreaker>, now: Timestamp) -> Result<Admission, Timestamp> {
    let let_in = breaker.lock().let_in(now)?;
    Ok(match let_in {
        LetIn::Freely => Admission::default(),
        LetIn::OnTrial => Admission::holding(Trial(breaker.clone())),
    })
}

/// The attempt that finds out, for as long as it goes on: also if it never comes to its work.
struct Trial(Arc<PluginBreaker>);

impl Drop for Trial {
    fn drop(&mut self) {
        self.0.lock().end_trial();
    }
}

#[cfg(test)]
mod tests {
    use domain::breaker::Ended;

    use super::*;

    #[test]
    fn trial_that_is_dropped_before_it_says_anything_leaves_its_place_to_the_next() {
        let at = Timestamp::from_seconds;
        let breaker = PluginBreaker::new(BreakerPolicy { threshold: 1, reset_after_seconds: 60 });
        breaker.lock().note(Ended::JobFailed, at(0));
        assert_eq!(let_in(&breaker, at(59)).err(), Some(at(60)));
        let trial = let_in(&breaker, at(60)).expect("its time is over");
        assert!(let_in(&breaker, at(60)).is_err());
        drop(trial);
        assert!(let_in(&breaker, at(60)).is_ok());
    }
}
