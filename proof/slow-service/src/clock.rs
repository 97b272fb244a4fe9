//! The clock of the services: the wall clock, or one that a test moves by hand.
//!
//! The only reader of the time here. Times are microseconds since 1970, UTC, so that a restarted service goes on by them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// Where a clock moved by hand begins: 2026-01-01T00:00:00Z.
const HAND_START_MICROS: i64 = 1_767_225_600_000_000;

/// What time it is, for one service.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    hand: Option<Arc<watch::Sender<i64>>>,
}

/// Moves the clock of every service that was given it.
#[derive(Clone, Debug)]
pub struct HandClock {
    sender: Arc<watch::Sender<i64>>,
}

impl Clock {
    /// The wall clock.
    pub fn real() -> Self {
        Self::default()
    }

    /// Microseconds since 1970.
    pub fn now_micros(&self) -> i64 {
        match &self.hand {
            Some(hand) => *hand.borrow(),
            None => wall_micros(),
        }
    }

    /// Comes back at that time, or at once when it is over.
    pub async fn sleep_until(&self, at_micros: i64) {
        match &self.hand {
            Some(hand) => {
                // The sender is held here, so it cannot be gone.
                let _ = hand.subscribe().wait_for(|now| *now >= at_micros).await;
            }
            None => {
                let left = at_micros.saturating_sub(wall_micros());
                tokio::time::sleep(Duration::from_micros(u64::try_from(left).unwrap_or(0))).await;
            }
        }
    }
}

impl HandClock {
    /// A clock that stands still until it is moved.
    pub fn new() -> Self {
        Self { sender: Arc::new(watch::Sender::new(HAND_START_MICROS)) }
    }

    /// For the options of a service.
    pub fn clock(&self) -> Clock {
        Clock { hand: Some(self.sender.clone()) }
    }

    /// Time goes by, and whoever waited for it wakes up.
    pub fn advance(&self, by: Duration) {
        self.sender.send_modify(|now| *now = now.saturating_add(micros(by)));
    }
}

impl Default for HandClock {
    fn default() -> Self {
        Self::new()
    }
}

/// A duration in the unit of the clock; one that does not fit is the longest that does.
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A time as it goes over the wire.
pub fn rfc3339(at_micros: i64) -> String {
    // What does not fit into a date stands at its end.
    jiff::Timestamp::from_microsecond(at_micros).unwrap_or(jiff::Timestamp::MAX).to_string()
}

fn wall_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros)
}
