//! A moment in UTC, to the millisecond: reading and writing the one date format of JSON-e, and moving by an
//! offset. Knows the civil calendar of the years 0 to 9999 and no clock.

use std::fmt;

const MILLIS_PER_DAY: i128 = 86_400_000;
/// The years that four digits can write.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9999;

/// Milliseconds since 1970, always within [`YEARS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant {
    unix_millis: i64,
}

impl Instant {
    pub(crate) fn from_unix_millis(unix_millis: i128) -> Option<Instant> {
        let instant = Instant { unix_millis: i64::try_from(unix_millis).ok()? };
        YEARS.contains(&instant.date().0).then_some(instant)
    }

    /// Reads RFC 3339: `2017-01-19T16:27:20.974Z`, any fraction of a second or none, `Z` or an offset.
    pub(crate) fn parse(text: &str) -> Option<Instant> {
        let mut rest = Reader { rest: text.as_bytes() };
        let year = rest.digits(4)?;
        rest.literal(b'-')?;
        let month = rest.digits(2).filter(|month| (1..=12).contains(month))?;
        rest.literal(b'-')?;
        let day = rest.digits(2).filter(|day| (1..=days_in(year, month)).contains(day))?;
        rest.literal(b'T')?;
        let hour = rest.digits(2).filter(|hour| *hour < 24)?;
        rest.literal(b':')?;
        let minute = rest.digits(2).filter(|minute| *minute < 60)?;
        rest.literal(b':')?;
        let second = rest.digits(2).filter(|second| *second < 60)?;
        let millis = rest.fraction()?;
        let offset_minutes = rest.zone()?;
        if !rest.rest.is_empty() {
            return None;
        }
        let minutes = hour * 60 + minute - offset_minutes;
        let within_day = (minutes * 60 + second) * 1000 + millis;
        Instant::from_unix_millis(
            i128::from(days_before(year, month, day)) * MILLIS_PER_DAY + i128::from(within_day),
        )
    }

    pub(crate) fn plus_millis(self, millis: i128) -> Option<Instant> {
        Instant::from_unix_millis(i128::from(self.unix_millis).checked_add(millis)?)
    }

    /// Year, month, day and the milliseconds after midnight.
    fn date(self) -> (i64, i64, i64, i64) {
        let days = self.unix_millis.div_euclid(86_400_000);
        let within_day = self.unix_millis.rem_euclid(86_400_000);
        // Days since 0000-03-01, in eras of 400 years that are all alike.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month, day, within_day)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day, millis) = self.date();
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// Days from 1970-01-01 to a date.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn literal(&mut self, expected: u8) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        (*first == expected).then_some(())
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        digits
            .iter()
            .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
    }

    /// The milliseconds of an optional fraction; finer digits are cut off.
    fn fraction(&mut self) -> Option<i64> {
        if self.rest.first() != Some(&b'.') {
            return Some(0);
        }
        self.literal(b'.')?;
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        let digit = |place: usize| digits.get(place).map_or(0, |byte| i64::from(byte - b'0'));
        (length > 0).then(|| digit(0) * 100 + digit(1) * 10 + digit(2))
    }

    /// The offset from UTC in minutes.
    fn zone(&mut self) -> Option<i64> {
        let (sign, rest) = self.rest.split_first()?;
        self.rest = rest;
        let direction = match sign {
            b'Z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = self.digits(2).filter(|hours| *hours < 24)?;
        self.literal(b':')?;
        let minutes = self.digits(2).filter(|minutes| *minutes < 60)?;
        Some(direction * (hours * 60 + minutes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reread(text: &str) -> Option<String> {
        Instant::parse(text).map(|instant| instant.to_string())
    }

    #[test]
    fn every_day_of_four_centuries_reads_back_as_itself() {
        let mut instant = Instant::parse("1899-12-31T23:59:59.999Z").unwrap();
        for _ in 0..146_097 {
            instant = instant.plus_millis(MILLIS_PER_DAY).unwrap();
            assert_eq!(Instant::parse(&instant.to_string()), Some(instant));
        }
        assert_eq!(instant.to_string(), "2299-12-31T23:59:59.999Z");
    }

    #[test]
    fn other_spellings_become_the_one_format() {
        assert_eq!(reread("2017-01-19T16:27:20Z").as_deref(), Some("2017-01-19T16:27:20.000Z"));
        assert_eq!(reread("2017-01-19T16:27:20.9749Z").as_deref(), Some("2017-01-19T16:27:20.974Z"));
        assert_eq!(reread("2017-01-01T00:30:00.5+01:00").as_deref(), Some("2016-12-31T23:30:00.500Z"));
        assert_eq!(reread("1969-12-31T23:59:59.999Z").as_deref(), Some("1969-12-31T23:59:59.999Z"));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "now",
            "2017-02-29T00:00:00Z",
            "2017-13-01T00:00:00Z",
            "2017-01-01T24:00:00Z",
            "2017-01-01",
            "2017-01-01T00:00:00",
            "2017-01-01T00:00:00.Z",
            "2017-01-01T00:00:00Zz",
            "17-01-01T00:00:00Z",
            "0000-01-01T00:00:00+01:00",
            "2017-01-01T00:00:60Z",
            "2017-01-0éT00:00:00Z",
        ] {
            assert_eq!(reread(text), None, "{text:?}");
        }
    }

    #[test]
    fn no_instant_lies_beyond_four_digits() {
        let last = Instant::parse("9999-12-31T23:59:59.999Z").unwrap();
        assert_eq!(last.plus_millis(1), None);
        assert_eq!(last.plus_millis(i128::MAX), None);
        assert_eq!(Instant::parse("0000-01-01T00:00:00Z").unwrap().plus_millis(-1), None);
        assert_eq!(Instant::from_unix_millis(i128::from(i64::MIN)), None);
    }
}
