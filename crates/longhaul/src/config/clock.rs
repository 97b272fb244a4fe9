//! `clock:` in the configuration: how long a step of the wall clock has to last before it is adopted.

use domain::timeline::{ADOPT_AFTER_BOUNDS_SECONDS, ADOPT_AFTER_SECONDS};
use serde::Deserialize;

use super::bounded::Seconds;

const LEAST: u64 = ADOPT_AFTER_BOUNDS_SECONDS.0;
const MOST: u64 = ADOPT_AFTER_BOUNDS_SECONDS.1;

/// What is said about the clock.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockConfig {
    adopt_after: Option<Seconds<LEAST, MOST>>,
}

impl ClockConfig {
    /// How long a step has to last.
    pub fn adopt_after_seconds(self) -> u64 {
        self.adopt_after.map_or(ADOPT_AFTER_SECONDS, Seconds::value)
    }
}
