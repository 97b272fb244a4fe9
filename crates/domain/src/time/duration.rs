//! How long, as people write it: `90`, `90s`, `5m`, `1h30m`, `1.5h`, `7d`. One grammar for files and command lines.
//!
//! A number alone counts seconds. Whole seconds, or whole milliseconds where a limit is one of milliseconds; a part counts as one.
//! `written.rs` reads durations of files.

pub mod written;

const NANOS_PER_SECOND: u128 = 1_000_000_000;
const NANOS_PER_MILLISECOND: u128 = 1_000_000;

/// The units, in nanoseconds; those with more letters first.
const UNITS: [(&str, u128); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", NANOS_PER_MILLISECOND),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("d", 86_400 * NANOS_PER_SECOND),
    ("w", 604_800 * NANOS_PER_SECOND),
];

/// The seconds of a duration, rounded up; none if it is not one.
pub fn seconds(text: &str) -> Option<u64> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    u64::try_from(nanos(text)?.div_ceil(NANOS_PER_SECOND)).ok()
}

/// The milliseconds of a duration, rounded up; none if it is not one. A number alone is none: it could be meant as seconds.
pub fn milliseconds(text: &str) -> Option<u64> {
    u64::try_from(nanos(text)?.div_ceil(NANOS_PER_MILLISECOND)).ok()
}

/// The nanoseconds of numbers with units.
fn nanos(text: &str) -> Option<u128> {
    let mut nanos: u128 = 0;
    let mut rest = text;
    loop {
        let behind_number = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let (number, behind) = rest.split_at(behind_number);
        let (unit, worth) = UNITS.iter().find(|(unit, _)| begins_with_unit(behind, unit))?;
        nanos = nanos.checked_add(worth_of(number, *worth)?)?;
        rest = &behind[unit.len()..];
        if rest.is_empty() {
            return Some(nanos);
        }
    }
}

/// Whether the unit is here, and not the beginning of a longer one: `m` is not `ms`.
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
    fn durations_are_read_in_every_unit_and_rounded_up() {
        for (text, expected) in [
            ("90", 90),
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
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn milliseconds_need_a_unit_and_are_rounded_up() {
        for (text, expected) in
            [("500ms", Some(500)), ("2s", Some(2_000)), ("1m1us", Some(60_001)), ("500", None), ("", None)]
        {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_and_nothing_overflows() {
        let endless = format!("{}s", "9".repeat(60));
        let digits = format!("1.{}s", "1".repeat(60));
        let number = "9".repeat(60);
        for text in [
            "", "s", "5 m", "-5s", "1.2.3s", ".s", "5x", "5mm", "5m5", "1.5", "1y", &endless, &digits,
            &number,
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
