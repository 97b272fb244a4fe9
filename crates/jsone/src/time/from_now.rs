//! `fromNow`: a time offset in words, such as `-1 day 2 hours`, added to a reference time.

use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::instant::Instant;

/// Units from the largest to the smallest, each with its spellings, the longest first.
const UNITS: [(&[&str], i128); 7] = [
    (&["years", "year", "yr", "y"], 365 * DAY),
    (&["months", "month", "mo"], 30 * DAY),
    (&["weeks", "week", "wk", "w"], 7 * DAY),
    (&["days", "day", "d"], DAY),
    (&["hours", "hour", "hr", "h"], 3_600_000),
    (&["minutes", "minute", "min", "m"], 60_000),
    (&["seconds", "second", "sec", "s"], 1000),
];
const DAY: i128 = 86_400_000;

/// The reference moved by the offset, as JSON-e writes times.
pub(crate) fn from_now(offset: &str, reference: &str) -> Outcome<String> {
    let unsigned = offset.trim_start();
    let (direction, unsigned) = match unsigned.strip_prefix(['-', '+']) {
        Some(rest) if unsigned.starts_with('-') => (-1, rest.trim_start()),
        Some(rest) => (1, rest.trim_start()),
        None => (1, unsigned),
    };
    let Some(millis) = parse_offset(unsigned) else {
        return Err(Error::template(format!("offset string: '{}' does not parse", excerpt(unsigned))));
    };
    let Some(reference) = Instant::parse(reference) else {
        return Err(Error::template(format!("reference time: '{}' does not parse", excerpt(reference))));
    };
    match reference.plus_millis(direction * millis) {
        Some(instant) => Ok(instant.to_string()),
        None => Err(Error::template(format!(
            "offset string: '{}' leads out of the years 0 to 9999",
            excerpt(offset)
        ))),
    }
}

/// Every unit at most once, in order; nothing at all is zero.
fn parse_offset(text: &str) -> Option<i128> {
    let mut rest = text;
    let mut total: i128 = 0;
    for (spellings, millis) in UNITS {
        let Some((count, after)) = leading_count(rest.trim_start()) else { break };
        let after = after.trim_start();
        let Some(after) = spellings.iter().find_map(|spelling| after.strip_prefix(spelling)) else {
            continue;
        };
        total = total.checked_add(count.checked_mul(millis)?)?;
        rest = after;
    }
    rest.trim_start().is_empty().then_some(total)
}

/// A run of digits; one that is too long for any date counts as the largest number, and is refused later.
fn leading_count(text: &str) -> Option<(i128, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = text.split_at(length);
    (length > 0).then(|| (digits.parse().unwrap_or(i128::from(i64::MAX)), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: &str = "2017-01-19T16:27:20.974Z";

    #[test]
    fn units_may_be_left_out_but_not_swapped() {
        assert_eq!(parse_offset("1y 1s"), Some(365 * DAY + 1000));
        assert_eq!(parse_offset("1mo1m"), Some(30 * DAY + 60_000));
        assert_eq!(parse_offset(""), Some(0));
        for text in ["1s 1y", "1", "y", "1 day 1 day", "1 dayz", "1 fortnight"] {
            assert_eq!(parse_offset(text), None, "{text}");
        }
    }

    #[test]
    fn an_enormous_count_is_an_error_and_no_panic() {
        for offset in
            ["99999999999 years", "9223372036854775807 years", "-99999999999999999999999999999999999999 s"]
        {
            assert!(from_now(offset, REFERENCE).is_err(), "{offset}");
        }
        let nines = "9".repeat(10_000);
        assert!(from_now(&format!("{nines} days"), REFERENCE).is_err());
    }
}
