//! How long: a number of seconds, or a text such as `90s`, `5m` or `1h30m`. Whole seconds; a part of one counts as one.

use super::written::{What, Written, Wrong};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The units, in nanoseconds; those with more letters first.
const UNITS: [(&str, u128); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("d", 86_400 * NANOS_PER_SECOND),
    ("w", 604_800 * NANOS_PER_SECOND),
];

/// The seconds that are written here, within these bounds.
pub(super) fn seconds(written: &Written, least: u64, most: u64) -> Result<u64, Wrong> {
    let seconds = match &written.what {
        What::Number(number) => number.as_u64(),
        What::Text(text) => parse(text),
        What::Nothing | What::Flag(_) | What::List(_) | What::Keys(_) => None,
    };
    let Some(seconds) = seconds else {
        return Err(written.wrong("a number of seconds or a time such as 30s, 5m or 24h is expected here"));
    };
    if (least..=most).contains(&seconds) {
        return Ok(seconds);
    }
    Err(written.wrong(format!("must be {least} to {most} seconds, and is {seconds}")))
}

/// The seconds of a text, rounded up.
fn parse(text: &str) -> Option<u64> {
    let mut nanos: u128 = 0;
    let mut rest = text;
    loop {
        let behind_number = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let (number, behind) = rest.split_at(behind_number);
        let (unit, worth) = UNITS.iter().find(|(unit, _)| begins_with_unit(behind, unit))?;
        nanos = nanos.checked_add(worth_of(number, *worth)?)?;
        rest = &behind[unit.len()..];
        if rest.is_empty() {
            return u64::try_from(nanos.div_ceil(NANOS_PER_SECOND)).ok();
        }
    }
}

/// Whether the unit stands here, and not the beginning of a longer one: `m` is not `ms`.
fn begins_with_unit(text: &str, unit: &str) -> bool {
    text.strip_prefix(unit).is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
}

/// A number such as `1`, `.5` or `1.25`, in units of this worth.
fn worth_of(number: &str, worth: u128) -> Option<u128> {
    let (before, behind) = number.split_once('.').unwrap_or((number, ""));
    if before.is_empty() && behind.is_empty() {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
    let parts = 10_u128.checked_pow(u32::try_from(behind.len()).ok()?)?;
    let fraction = digits(behind)?.checked_mul(worth)?.div_ceil(parts);
    digits(before)?.checked_mul(worth)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_unit_and_a_part_of_a_second_counts_as_one() {
        for (text, seconds) in [
            ("30s", 30),
            ("5m", 300),
            ("24h", 86_400),
            ("1h30m", 5_400),
            ("1.5h", 5_400),
            (".5m", 30),
            ("7d", 604_800),
            ("1w", 604_800),
            ("500ms", 1),
            ("1s1ns", 2),
            ("1500us", 1),
            ("10µs", 1),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_and_nothing_overflows() {
        let endless = format!("{}s", "9".repeat(60));
        let digits = format!("1.{}s", "1".repeat(60));
        for text in ["", "s", "5", "5 m", "-5s", "1.2.3s", ".s", "5x", "5mm", "5m5", &endless, &digits] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
