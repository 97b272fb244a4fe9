//! A whole number within limits that its type names, and a duration within such limits.

use domain::duration::written;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Bounded<MIN, MAX> {
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

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = u64::deserialize(deserializer)?;
        if (MIN..=MAX).contains(&value) {
            return Ok(Self(value));
        }
        Err(D::Error::custom(format!("must be {MIN} to {MAX}, and is {value}")))
    }
}

/// A duration of `MIN` to `MAX` seconds: a number of seconds, or a text such as `90s`, `1h30m` or `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Seconds<MIN, MAX> {
    pub fn value(self) -> u64 {
        self.0
    }

    pub fn as_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Seconds<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = written::seconds(deserializer)?;
        if (MIN..=MAX).contains(&seconds) {
            return Ok(Self(seconds));
        }
        Err(D::Error::custom(format!("must be {MIN} to {MAX} seconds, and is {seconds}")))
    }
}
