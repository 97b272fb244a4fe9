//! `clock:` in the configuration: how long a step of the wall clock has to last before it is adopted.

use domain::timeline::{ADOPT_AFTER_BOUNDS_SECONDS, ADOPT_AFTER_SECONDS};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The units of a duration, in seconds.
const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];

/// What is said about the clock.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockConfig {
    adopt_after: Option<AdoptAfter>,
}

/// A duration such as `90s`, `5m` or `1h`, or a number of seconds.
#[derive(Clone, Copy, Debug)]
struct AdoptAfter(u64);

impl ClockConfig {
    /// How long a step has to last.
    pub fn adopt_after_seconds(self) -> u64 {
        self.adopt_after.map_or(ADOPT_AFTER_SECONDS, |AdoptAfter(seconds)| seconds)
    }
}

impl<'de> Deserialize<'de> for AdoptAfter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Seconds(u64),
            Text(String),
        }
        let seconds = match Written::deserialize(deserializer)? {
            Written::Seconds(seconds) => Some(seconds),
            Written::Text(text) => parse(&text),
        };
        let (least, most) = ADOPT_AFTER_BOUNDS_SECONDS;
        match seconds {
            Some(seconds) if (least..=most).contains(&seconds) => Ok(Self(seconds)),
            Some(seconds) => {
                Err(D::Error::custom(format!("must be {least} to {most} seconds, and is {seconds}")))
            }
            None => Err(D::Error::custom("must be a duration such as 90s, 5m or 1h")),
        }
    }
}

fn parse(text: &str) -> Option<u64> {
    let (unit, worth) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit))?;
    text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(worth)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn duration_needs_a_whole_number_and_a_known_unit() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("5m", Some(300)),
            ("1h", Some(3_600)),
            ("1d", Some(86_400)),
            ("5", None),
            ("m", None),
            ("1.5h", None),
        ] {
            assert_eq!(parse(text), seconds, "{text}");
        }
    }
}
