//! Durations of files: a number, or a text with units. For serde's `deserialize_with`; ranges are checked by whoever owns the key.
//!
//! A number counts in the unit that the key names, seconds or milliseconds.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// A key that ends with `_seconds`.
pub fn seconds<'de, D: Deserializer<'de>, T: TryFrom<i128>>(deserializer: D) -> Result<T, D::Error> {
    let written = some_seconds(deserializer)?;
    written.ok_or_else(|| D::Error::invalid_type(Unexpected::Unit, &Written(Unit::Seconds)))
}

/// The same, of a key that may be left out.
pub fn some_seconds<'de, D: Deserializer<'de>, T: TryFrom<i128>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(Written(Unit::Seconds)).and_then(fitting)
}

/// A key that ends with `_ms` and may be left out.
pub fn some_milliseconds<'de, D: Deserializer<'de>, T: TryFrom<i128>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(Written(Unit::Milliseconds)).and_then(fitting)
}

fn fitting<T: TryFrom<i128>, E: Error>(written: Option<i128>) -> Result<Option<T>, E> {
    let Some(number) = written else { return Ok(None) };
    T::try_from(number).map(Some).map_err(|_| E::custom(format!("the duration {number} is out of range")))
}

#[derive(Clone, Copy)]
enum Unit {
    Seconds,
    Milliseconds,
}

struct Written(Unit);

impl Written {
    fn examples(&self) -> &'static str {
        match self.0 {
            Unit::Seconds => "90s, 1h30m or 7d",
            Unit::Milliseconds => "500ms, 30s or 2m",
        }
    }
}

impl Visitor<'_> for Written {
    type Value = Option<i128>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.0 {
            Unit::Seconds => "seconds",
            Unit::Milliseconds => "milliseconds",
        };
        write!(formatter, "a number of {unit}, or a duration such as {}", self.examples())
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(number.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let read = match self.0 {
            Unit::Seconds => super::seconds(text),
            Unit::Milliseconds => super::milliseconds(text),
        };
        let told = || format!("must be a duration such as {}, and is {text:?}", self.examples());
        read.map(|number| Some(number.into())).ok_or_else(|| E::custom(told()))
    }
}
