//! The one file that reads the clock. `now` never goes back.
//!
//! Alone on its store a node goes by its machine's clock. Nodes that share a store go by the store's: it is measured whenever the
//! store is asked, and carried on by the monotonic clock in between; the machine's own wall clock is not looked at.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use domain::Timestamp;
use tokio::sync::watch;

/// The longest sleep without a look at the clock.
const LOOK_AT_THE_CLOCK_EVERY: Duration = Duration::from_secs(30);

/// A clock that is suddenly ahead by more than this was set, or its machine slept: whoever wonders why so much is due at once is told.
const JUMP_MICROS: i64 = 60_000_000;

/// Where `now` comes from.
pub trait Clock: Send + Sync {
    /// The time. Never earlier than the last answer.
    fn now(&self) -> Timestamp;
}

/// A clock that one can wait on.
pub trait Timer: Clock {
    /// Ends when that time has come.
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Whether time passes by itself. Where it does not, nothing may wait for a little more of it.
    fn runs_by_itself(&self) -> bool {
        true
    }
}

/// The machine's clock, which runs on by the monotonic clock when the wall clock jumps back.
pub struct SystemClock {
    last: Mutex<(Timestamp, Instant)>,
}

/// The clock of a store that several nodes share.
pub struct SharedClock {
    measurements: Box<dyn Fn() -> Measured + Send + Sync>,
    shown: Mutex<Shown>,
}

/// What a store's clock said, and when that was by this machine's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// What it said.
    pub at: Timestamp,
    /// When that was.
    pub heard_at: Instant,
    /// It may be off by this much to either side.
    pub uncertainty: Duration,
}

struct Shown {
    /// The newest measurement that can be relied on.
    measured: Measured,
    /// The last answer, and when it was given.
    last: Timestamp,
    given_at: Instant,
}

/// A measurement that may be off by more is none.
const MOST_UNCERTAINTY: Duration = Duration::from_secs(2);
/// A clock that is ahead by less than this is slowed down until it fits; more is a jump of the store's own clock.
const SLOWED_DOWN_WITHIN_MICROS: i64 = 5_000_000;

/// A clock that stands until it is moved: for tests.
pub struct ManualClock {
    micros: watch::Sender<i64>,
}

impl SystemClock {
    /// Starts no earlier than this: the newest fact of the store.
    pub fn starting_at(earliest: Timestamp) -> Self {
        Self { last: Mutex::new((wall_clock().max(earliest), Instant::now())) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let mut last = self.last.lock().expect("no holder of the lock panics");
        let (time, read_at) = *last;
        let instant = Instant::now();
        let passed = instant.duration_since(read_at).as_micros();
        let by_monotonic = time.plus_micros(i64::try_from(passed).unwrap_or(0));
        let wall = wall_clock();
        tell_of_a_jump("wall clock", by_monotonic, wall);
        // Behind our own time after a backward jump: the monotonic clock carries us until the wall catches up.
        let now = if wall < time { by_monotonic } else { wall };
        *last = (now, instant);
        now
    }
}

impl SharedClock {
    /// Goes by what `measurements` has measured last. Starts no earlier than this: the newest fact of the store.
    pub fn new(earliest: Timestamp, measurements: impl Fn() -> Measured + Send + Sync + 'static) -> Self {
        let measured = measurements();
        let given_at = Instant::now();
        let shown = Shown { measured, last: measured.carried_to(given_at).max(earliest), given_at };
        Self { measurements: Box::new(measurements), shown: Mutex::new(shown) }
    }

    /// How long ago the store's clock was last measured.
    pub fn measured_ago(&self) -> Duration {
        let mut shown = self.shown.lock().expect("no holder of the lock panics");
        self.measure(&mut shown);
        Instant::now().saturating_duration_since(shown.measured.heard_at)
    }

    fn measure(&self, shown: &mut Shown) {
        let newest = (self.measurements)();
        if newest.uncertainty <= MOST_UNCERTAINTY {
            shown.measured = newest;
        }
    }

    fn now_at(&self, instant: Instant) -> Timestamp {
        let mut shown = self.shown.lock().expect("no holder of the lock panics");
        self.measure(&mut shown);
        let estimate = shown.measured.carried_to(instant);
        let passed = micros(instant.saturating_duration_since(shown.given_at));
        let carried_on = shown.last.plus_micros(passed);
        let ahead = carried_on.micros() - estimate.micros();
        tell_of_a_jump("clock of the store", carried_on, estimate);
        let now = if ahead <= 0 {
            estimate
        } else if ahead <= SLOWED_DOWN_WITHIN_MICROS {
            shown.last.plus_micros(passed / 2).max(estimate)
        } else {
            // The store's clock was set back: this one goes on until it is caught up with.
            carried_on
        };
        (shown.last, shown.given_at) = (now, instant);
        now
    }
}

impl Measured {
    /// The store's time at a later moment.
    fn carried_to(&self, moment: Instant) -> Timestamp {
        self.at.plus_micros(micros(moment.saturating_duration_since(self.heard_at)))
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        self.now_at(Instant::now())
    }
}

impl Timer for SharedClock {
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(sleep_until(self, at))
    }
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
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // The sender is ours: it outlives every sleeper.
            let _ = self.micros.subscribe().wait_for(|micros| *micros >= at.micros()).await;
        })
    }

    fn runs_by_itself(&self) -> bool {
        false
    }
}

impl Timer for SystemClock {
    fn sleep_until(&self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(sleep_until(self, at))
    }
}

async fn sleep_until(clock: &dyn Clock, at: Timestamp) {
    loop {
        let left = at.micros().saturating_sub(clock.now().micros());
        let Ok(left @ 1..) = u64::try_from(left) else { return };
        // The clock may be set while we sleep: look at it now and then. The store is not asked.
        tokio::time::sleep(Duration::from_micros(left).min(LOOK_AT_THE_CLOCK_EVERY)).await;
    }
}

fn tell_of_a_jump(which: &str, expected: Timestamp, shown: Timestamp) {
    let ahead = shown.micros().saturating_sub(expected.micros());
    if ahead > JUMP_MICROS {
        tracing::warn!(
            seconds = ahead / 1_000_000,
            "the {which} has jumped ahead: what was due in between is due now"
        );
    }
}

fn micros(passed: Duration) -> i64 {
    i64::try_from(passed.as_micros()).unwrap_or(i64::MAX)
}

fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_starts_no_earlier_than_the_newest_fact() {
        let far = wall_clock().plus_seconds(3_600);
        let clock = SystemClock::starting_at(far);
        assert!(clock.now() >= far);
    }

    /// A shared clock whose measurements the test makes.
    fn shared(first: Measured) -> (SharedClock, std::sync::Arc<Mutex<Measured>>) {
        let newest = std::sync::Arc::new(Mutex::new(first));
        let measured = newest.clone();
        (SharedClock::new(Timestamp::default(), move || *measured.lock().unwrap()), newest)
    }

    fn heard(seconds: i64, heard_at: Instant) -> Measured {
        Measured { at: Timestamp::from_seconds(seconds), heard_at, uncertainty: Duration::ZERO }
    }

    #[test]
    fn the_shared_clock_is_the_store_s_and_is_carried_on_between_measurements() {
        let start = Instant::now();
        let (clock, newest) = shared(heard(1_000, start));
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(clock.now_at(after(7)), Timestamp::from_seconds(1_007));
        *newest.lock().unwrap() = heard(2_000, after(8));
        assert_eq!(clock.now_at(after(9)), Timestamp::from_seconds(2_001));
    }

    #[test]
    fn the_shared_clock_never_goes_back_and_goes_on_when_the_store_s_does() {
        let start = Instant::now();
        let (clock, newest) = shared(heard(1_000, start));
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(clock.now_at(after(10)), Timestamp::from_seconds(1_010));
        // Two seconds ahead: at half its pace for four seconds.
        *newest.lock().unwrap() = heard(1_008, after(10));
        assert_eq!(clock.now_at(after(12)), Timestamp::from_seconds(1_011));
        assert_eq!(clock.now_at(after(20)), Timestamp::from_seconds(1_018));
        // An hour back is a jump: it goes on.
        *newest.lock().unwrap() = heard(10, after(20));
        assert_eq!(clock.now_at(after(25)), Timestamp::from_seconds(1_023));
    }

    #[test]
    fn an_answer_that_took_too_long_is_no_measurement() {
        let start = Instant::now();
        let (clock, newest) = shared(heard(1_000, start));
        let late = Measured { uncertainty: Duration::from_secs(3), ..heard(5_000, start) };
        *newest.lock().unwrap() = late;
        assert_eq!(clock.now_at(start + Duration::from_secs(1)), Timestamp::from_seconds(1_001));
    }

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = SystemClock::starting_at(wall_clock().plus_seconds(3_600));
        let readings: Vec<_> = (0..1_000).map(|_| clock.now()).collect();
        assert!(readings.is_sorted());
    }
}
