//! Where the time of the store has jumped, for the writer: a time that was read before a jump and comes after it is carried over it.
//!
//! Requests wait in a queue. How far store time has gone since the newest jump is told by the boot-time clock; before this process adopted
//! one, nothing is on its way that was read before it.

use domain::Timestamp;
use domain::timeline::Steps;
use rustix::time::{ClockId, clock_gettime};

/// The steps of the store, and when this process has written the newest of them.
#[derive(Clone, Default)]
pub(super) struct Jumps {
    steps: Steps,
    stepped_at: Option<i64>,
}

impl Jumps {
    /// Those that were written before this process began.
    pub(super) const fn before(steps: Steps) -> Self {
        Self { steps, stepped_at: None }
    }

    /// The steps as they are now.
    pub(super) fn keep(&mut self, steps: Steps) {
        if self.steps != steps {
            *self = Self { steps, stepped_at: Some(boot_clock()) };
        }
    }

    /// A time as it is now, if it was read before a step.
    pub(super) fn carried(&self, read_at: Timestamp) -> Timestamp {
        self.carried_at(read_at, boot_clock())
    }

    fn carried_at(&self, read_at: Timestamp, boot: i64) -> Timestamp {
        let newest = self.steps.as_slice().last().zip(self.stepped_at);
        let now = newest.map(|(step, stepped_at)| step.to.plus_micros(boot.saturating_sub(stepped_at)));
        self.steps.carried(read_at, now)
    }
}

/// Microseconds since the machine was started.
fn boot_clock() -> i64 {
    let since = clock_gettime(ClockId::Boottime);
    since.tv_sec.saturating_mul(1_000_000).saturating_add(since.tv_nsec / 1_000)
}

#[cfg(test)]
mod tests {
    use domain::timeline::Step;

    use super::*;

    #[test]
    fn time_read_before_a_step_back_is_carried_over_it_in_the_queue() {
        let at = Timestamp::from_seconds;
        let steps = Steps::new([Step { from: at(9_000), to: at(1_000) }]);
        let mut jumps = Jumps::before(steps.clone());
        assert_eq!(jumps.carried(at(8_999)), at(8_999), "it was written by another process");
        jumps.keep(steps.clone());
        assert_eq!(jumps.stepped_at, None, "it is known already");
        jumps = Jumps::default();
        jumps.keep(steps);
        let stepped_at = jumps.stepped_at.expect("it was written now");
        let after = |seconds: i64| stepped_at + seconds * 1_000_000;
        assert_eq!(jumps.carried_at(at(8_999), after(0)), at(999));
        assert_eq!(jumps.carried_at(at(1_002), after(2)), at(1_002));
        // After a suspend.
        assert_eq!(jumps.carried_at(at(5_000), after(4_000)), at(5_000));
    }
}
