//! Times as people write them on a command line: RFC 3339, or how long from now.

use std::time::Duration;

use engine::{Clock, SystemClock};

use crate::exit::Failed;

/// RFC 3339 (a time without an offset is UTC), or `90s`, `in 15m`, `1h30m`, `3d`, `1w`. Given back as RFC 3339.
pub fn time(text: &str) -> Result<String, Failed> {
    let trimmed = text.trim();
    if let Ok(from_now) = duration(trimmed.strip_prefix("in ").unwrap_or(trimmed)) {
        let now = SystemClock::starting_at(domain::Timestamp::default()).now();
        let at = now.plus_seconds(from_now.as_secs());
        let at = jiff::Timestamp::from_microsecond(at.micros())
            .map_err(|_| Failed::usage(format!("{text:?} is too far away")))?;
        return Ok(at.to_string());
    }
    if trimmed.parse::<jiff::Timestamp>().is_ok() {
        return Ok(trimmed.to_owned());
    }
    let civil: Result<jiff::civil::DateTime, _> = trimmed.parse();
    let at = civil.ok().and_then(|civil| civil.to_zoned(jiff::tz::TimeZone::UTC).ok());
    at.map(|at| at.timestamp().to_string()).ok_or_else(|| {
        Failed::usage(format!(
            "{text:?} is no time: write 2026-11-16T09:30:00Z, or how long from now: 90s, 15m, 1h30m, 3d, 1w"
        ))
    })
}

/// `90`, `90s`, `15m`, `1h30m`, `3d`, `1w`: as in the configuration.
pub fn duration(text: &str) -> Result<Duration, String> {
    match domain::duration::seconds(text.trim()) {
        Some(seconds) if seconds <= MAX_SECONDS => Ok(Duration::from_secs(seconds)),
        Some(_) | None => Err(format!("{text:?} is no length of time: write 90s, 15m, 1h30m, 3d or 1w")),
    }
}

/// The same as a number of seconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    duration(text).map(|duration| duration.as_secs())
}

/// The same, from one second to `MOST`.
pub fn seconds_up_to<const MOST: u64>(text: &str) -> Result<u64, String> {
    match seconds(text)? {
        seconds if (1..=MOST).contains(&seconds) => Ok(seconds),
        seconds => Err(format!("must be 1 to {MOST} seconds, and is {seconds}")),
    }
}

/// A hundred years.
const MAX_SECONDS: u64 = 3_155_760_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        for (text, seconds) in
            [("90", 90), ("90s", 90), ("15m", 900), ("1h30m", 5_400), ("3d", 259_200), ("1w", 604_800)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in ["", "s", "-1s", "1y", "1.5", "99999999999999999999s", "1000000000w"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seconds_are_within_their_limits() {
        for (text, seconds) in [("1", 1), ("2m", 120), ("1h", 3_600)] {
            assert_eq!(seconds_up_to::<3_600>(text), Ok(seconds), "{text}");
        }
        for wrong in ["0", "61m", "soon", ""] {
            assert!(seconds_up_to::<3_600>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn time_may_be_absolute_or_from_now() {
        assert_eq!(time("2026-11-16T09:30:00+01:00").unwrap(), "2026-11-16T09:30:00+01:00");
        assert_eq!(time("2026-11-16T09:30:00").unwrap(), "2026-11-16T09:30:00Z");
        let now = SystemClock::starting_at(domain::Timestamp::default()).now();
        for text in ["15m", "in 15m"] {
            let at: jiff::Timestamp = time(text).unwrap().parse().unwrap();
            let ahead = at.as_microsecond() - now.plus_seconds(900).micros();
            assert!((0..60_000_000).contains(&ahead), "{text}");
        }
        assert!(time("soon").is_err());
    }
}
