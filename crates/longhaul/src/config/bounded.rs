//! A whole number within limits that its type names, and a duration within such limits.

use domain::duration::written;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A whole number from `MIN` to `MAX`, of seconds if it is a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded<const MIN: u64, const MAX: u64, const IS_DURATION: bool = false>(u64);

/// A duration of `MIN` to `MAX` seconds: a number of seconds, or a text such as `90s`, `1h30m` or `7d`.
pub type Seconds<const MIN: u64, const MAX: u64> = Bounded<MIN, MAX, true>;

impl<const MIN: u64, const MAX: u64, const IS_DURATION: bool> Bounded<MIN, MAX, IS_DURATION> {
    pub fn value(self) -> u64 {
        self.0
    }

    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    pub fn as_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<'de, const MIN: u64, const MAX: u64, const IS_DURATION: bool> Deserialize<'de>
    for Bounded<MIN, MAX, IS_DURATION>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (value, unit) = if IS_DURATION {
            (written::seconds(deserializer)?, " seconds")
        } else {
            (u64::deserialize(deserializer)?, "")
        };
        if (MIN..=MAX).contains(&value) {
            return Ok(Self(value));
        }
        Err(D::Error::custom(format!("must be {MIN} to {MAX}{unit}, and is {value}")))
    }
}
