//! The one file that reads the clock. `now` never goes back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use domain::Timestamp;
use tokio::sync::watch;

/// The longest sleep without a look at the clock.
const LOOK_AT_THE_CLOCK_EVERY: Duration = Duration::from_secs(30);

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
        // Behind our own time after a backward jump: the monotonic clock carries us until the wall catches up.
        let now = if wall < time { by_monotonic } else { wall };
        *last = (now, instant);
        now
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
        Box::pin(async move {
            loop {
                let left = at.micros().saturating_sub(self.now().micros());
                let Ok(left @ 1..) = u64::try_from(left) else { return };
                // The wall clock may be set while we sleep: look at it now and then. The store is not asked.
                tokio::time::sleep(Duration::from_micros(left).min(LOOK_AT_THE_CLOCK_EVERY)).await;
            }
        })
    }
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

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = SystemClock::starting_at(wall_clock().plus_seconds(3_600));
        let readings: Vec<_> = (0..1_000).map(|_| clock.now()).collect();
        assert!(readings.is_sorted());
    }
}
