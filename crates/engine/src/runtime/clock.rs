//! The one file that reads the clocks of the machine. `now` never goes back, but for a step that was adopted.
//!
//! Alone on its store a node goes by its machine's boot-time clock, compared with the wall clock (`clock/system.rs`). Nodes that share a
//! store go by the store's clock (`clock/shared.rs`): it is measured whenever the store is asked, and carried on by the boot-time clock in
//! between; the machine's own wall clock is not looked at. What a difference between the clocks means is decided in
//! `domain/src/time/timeline.rs`.

mod neighbours;
mod shared;
mod system;

use std::time::{Duration, SystemTime};

use domain::Timestamp;
use domain::timeline::{News, Steps};
use futures::future::BoxFuture;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

pub use neighbours::clock_steps;
pub use shared::{BootClock, Measured, SharedClock};
pub use system::SystemClock;

/// The longest sleep without a look at the clock.
const LOOK_AT_THE_CLOCK_EVERY: Duration = Duration::from_secs(30);

/// Where `now` comes from.
pub trait Clock: Send + Sync {
    /// The time. Never earlier than the last answer, but for a step back that was adopted.
    fn now(&self) -> Timestamp;

    /// Where it has jumped.
    fn steps(&self) -> Steps {
        Steps::default()
    }

    /// How it stands to the wall clock.
    fn status(&self) -> ClockStatus {
        ClockStatus::agreeing(self.now())
    }
}

/// A clock that one can wait on.
pub trait Timer: Clock {
    /// Ends when that time has come, or when the clock was set back: whoever waits looks again.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()>;

    /// Whether time passes by itself. Where it does not, nothing may wait for a little more of it.
    fn runs_by_itself(&self) -> bool {
        true
    }
}

/// How store time stands to the wall clock that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStatus {
    /// Store time.
    pub store_time: Timestamp,
    /// What the wall clock says: the machine's, or the database server's.
    pub wall_time: Timestamp,
    /// Since when the two disagree, in store time; none if they agree.
    pub since: Option<Timestamp>,
    /// Whether the difference is adopted when it has lasted; else it waits for an operator.
    pub adopted_by_itself: bool,
    /// How long it has to last.
    pub adopt_after_seconds: u64,
    /// Steps that were adopted and are remembered.
    pub steps: u64,
    /// Steps that this process has seen, adopted or not.
    pub steps_seen: u64,
}

impl ClockStatus {
    /// A clock that is compared with nothing.
    pub const fn agreeing(now: Timestamp) -> Self {
        Self {
            store_time: now,
            wall_time: now,
            since: None,
            adopted_by_itself: true,
            adopt_after_seconds: domain::timeline::ADOPT_AFTER_SECONDS,
            steps: 0,
            steps_seen: 0,
        }
    }

    /// The wall clock minus store time, in seconds; zero if they agree.
    pub fn step_seconds(&self) -> i64 {
        let by = self.wall_time.micros().saturating_sub(self.store_time.micros());
        if self.since.is_some() { rounded_seconds(by) } else { 0 }
    }

    /// The difference as a sentence, if there is one.
    pub fn sentence(&self) -> Option<String> {
        self.since?;
        let seconds = self.step_seconds();
        let direction = if seconds < 0 { "behind" } else { "ahead of" };
        let seconds = seconds.unsigned_abs();
        let then = if self.adopted_by_itself {
            format!("the difference is adopted if it lasts {} s", self.adopt_after_seconds)
        } else {
            "longhaul clock set-right makes store time what the wall clock says".to_owned()
        };
        Some(format!(
            "the wall clock is {seconds} s {direction} the store's time, which goes by the time that passes; {then}"
        ))
    }
}

/// Whole seconds of so many microseconds, to the nearest.
pub const fn rounded_seconds(micros: i64) -> i64 {
    micros.saturating_add(micros.signum() * 500_000) / 1_000_000
}

/// Waits for an amount of time to pass that began at a time and would end at another, over every jump of the clock.
///
/// Each jump moves the end once. Where the beginning lies says nothing later on: after a step back time comes by it again.
pub async fn sleep_through(timer: &dyn Timer, began: Timestamp, ends_at: Timestamp) {
    let (mut seen, mut now) = one_look(timer);
    let mut ends_at = ends_at.plus_micros(seen.since(began, now));
    while now < ends_at {
        timer.sleep_until(ends_at).await;
        let (steps, then) = one_look(timer);
        ends_at = ends_at.plus_micros(steps.not_in(&seen));
        (seen, now) = (steps, then);
    }
}

/// The jumps and the time after them: nothing has jumped in between.
fn one_look(timer: &dyn Timer) -> (Steps, Timestamp) {
    let mut steps = timer.steps();
    loop {
        let now = timer.now();
        let after = timer.steps();
        if after == steps {
            return (steps, now);
        }
        steps = after;
    }
}

/// A clock that stands until it is moved: for tests.
pub struct ManualClock {
    micros: watch::Sender<i64>,
}

impl ManualClock {
    /// A clock that stands at this time.
    pub fn at(time: Timestamp) -> Self {
        Self { micros: watch::Sender::new(time.micros()) }
    }

    /// Moves it forward.
    pub fn advance_seconds(&self, seconds: u32) {
        self.micros.send_modify(|micros| *micros += i64::from(seconds) * 1_000_000);
    }

    /// Sets it, forward only.
    pub fn set(&self, time: Timestamp) {
        self.micros.send_modify(|micros| *micros = time.micros().max(*micros));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(*self.micros.borrow())
    }
}

impl Timer for ManualClock {
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The sender is ours: it outlives every sleeper.
            let _ = self.micros.subscribe().wait_for(|micros| *micros >= at.micros()).await;
        })
    }

    fn runs_by_itself(&self) -> bool {
        false
    }
}

async fn sleep_until(clock: &dyn Clock, mut jumps: watch::Receiver<u64>, at: Timestamp) {
    let mut last = clock.now();
    loop {
        let now = clock.now();
        let left = at.micros().saturating_sub(now.micros());
        let Ok(left @ 1..) = u64::try_from(left) else { return };
        if now < last {
            return;
        }
        last = now;
        // The clock may be set while we sleep: look at it now and then. The store is not asked.
        let sleep = tokio::time::sleep(Duration::from_micros(left).min(LOOK_AT_THE_CLOCK_EVERY));
        tokio::select! {
            () = sleep => {}
            // A clock that has gone tells of no jump any more.
            Ok(()) = jumps.changed() => {}
        }
    }
}

/// Says what is new about a clock that is compared with ours, once.
fn announce(which: &str, news: News) {
    let (News::Departed(by) | News::Returned(by)) = news;
    let seconds = by / 1_000_000;
    let direction = if by < 0 { "back" } else { "ahead" };
    match news {
        News::Departed(_) => tracing::warn!(
            seconds,
            "the {which} was set {direction}: time goes on by the boot-time clock; the step is adopted only when it has lasted"
        ),
        News::Returned(_) => {
            tracing::info!(seconds, "the {which} is right again: its step {direction} was not adopted");
        }
    }
}

fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

/// Microseconds since the machine was started, suspends included.
pub fn boot_clock() -> i64 {
    let since = clock_gettime(ClockId::Boottime);
    since.tv_sec.saturating_mul(1_000_000).saturating_add(since.tv_nsec / 1_000)
}

/// A number that names this boot of the machine.
fn boot_id() -> i64 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or_default().cast_signed()
}

#[cfg(test)]
mod tests {
    use domain::timeline::Step;
    use futures::FutureExt;

    use super::*;

    /// A clock that jumps when the test says so. It wakes whoever sleeps at every change: they look again.
    struct Jumping(watch::Sender<(i64, Steps)>);

    impl Jumping {
        fn pass(&self, seconds: i64) {
            self.0.send_modify(|(now, _)| *now += seconds);
        }

        fn jump_to(&self, seconds: i64) {
            self.0.send_modify(|(now, steps)| {
                let (from, to) = (Timestamp::from_seconds(*now), Timestamp::from_seconds(seconds));
                steps.push(Step { from, to });
                *now = seconds;
            });
        }
    }

    impl Clock for Jumping {
        fn now(&self) -> Timestamp {
            Timestamp::from_seconds(self.0.borrow().0)
        }

        fn steps(&self) -> Steps {
            self.0.borrow().1.clone()
        }
    }

    impl Timer for Jumping {
        fn sleep_until(&self, _: Timestamp) -> BoxFuture<'_, ()> {
            let mut changes = self.0.subscribe();
            Box::pin(async move {
                let _ = changes.changed().await;
            })
        }
    }

    #[test]
    fn sleep_is_as_long_as_the_time_that_passes_also_when_time_comes_by_its_beginning_again() {
        let timer = Jumping(watch::Sender::new((10_000, Steps::default())));
        let at = Timestamp::from_seconds;
        let mut sleep = Box::pin(sleep_through(&timer, at(10_000), at(10_900)));
        let mut is_over = || (&mut sleep).now_or_never().is_some();
        assert!(!is_over());
        timer.pass(300);
        assert!(!is_over());
        // Back to before the beginning, and past it again: 300 s and 450 s have passed.
        timer.jump_to(9_700);
        assert!(!is_over());
        timer.pass(450);
        assert!(!is_over());
        // An hour ahead, and 40 min of it back.
        timer.jump_to(13_750);
        assert!(!is_over());
        timer.jump_to(11_350);
        timer.pass(149);
        assert!(!is_over());
        timer.pass(1);
        assert!(is_over());
    }
}
