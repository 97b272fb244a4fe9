//! How long and how large the misbehaviour is. What a manner means is fixed; how much of it a test needs is not.

use std::time::Duration;

/// The sizes of the zoo's animals. The default is what their names say; `small` is for tests.
#[derive(Clone, Debug)]
pub struct Measures {
    /// `drips`: between two bytes.
    pub drip: Duration,
    /// `slow_30s`: before an answer.
    pub slow: Duration,
    /// `hangs`: until the service closes the connection by itself.
    pub hang: Duration,
    /// `callback_late`: between the end of the work and the callback.
    pub callback_late: Duration,
    /// `huge_body`: how much.
    pub huge_body_bytes: usize,
    /// `gzip_bomb`: how much it becomes when it is inflated.
    pub bomb_bytes: usize,
    /// `garbage`: how deep the nested answer is.
    pub nesting: usize,
    /// `cancels_late`: how often it is still running after the cancel.
    pub late_polls: u32,
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            drip: Duration::from_secs(1),
            slow: Duration::from_secs(30),
            hang: Duration::from_hours(1),
            callback_late: Duration::from_secs(10),
            huge_body_bytes: 256 << 20,
            bomb_bytes: 256 << 20,
            nesting: 100_000,
            late_polls: 3,
        }
    }
}

impl Measures {
    /// The same animals, in milliseconds and a few megabytes.
    pub fn small() -> Self {
        Self {
            drip: Duration::from_millis(2),
            slow: Duration::from_millis(50),
            hang: Duration::from_millis(200),
            callback_late: Duration::from_millis(20),
            huge_body_bytes: 4 << 20,
            bomb_bytes: 4 << 20,
            nesting: 10_000,
            late_polls: 2,
        }
    }
}
