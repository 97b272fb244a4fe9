//! The one `now` of a render, given by the caller. This crate reads no clock.

use crate::instant::Instant;

/// The time that a template sees as `now`, unless its context says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Now {
    text: String,
}

impl Now {
    /// From the milliseconds since 1970; `None` outside of the years 0 to 9999.
    pub fn from_unix_millis(unix_millis: i64) -> Option<Now> {
        Instant::from_unix_millis(unix_millis.into()).map(Now::from_instant)
    }

    /// From RFC 3339 text; `None` when it is none.
    pub fn from_rfc3339(text: &str) -> Option<Now> {
        Instant::parse(text).map(Now::from_instant)
    }

    /// The text that the template sees, such as `2017-01-19T16:27:20.974Z`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn from_instant(instant: Instant) -> Now {
        Now { text: instant.to_string() }
    }
}
