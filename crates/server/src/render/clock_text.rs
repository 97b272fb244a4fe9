//! Times on the wire: RFC 3339 in UTC with microseconds, so that their text sorts.

use domain::Timestamp;

/// The latest time that can be written.
const LATEST: &str = "9999-12-31T23:59:59.999999+00:00";

/// The text of a time.
pub(crate) fn text(at: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(at.micros()) {
        Ok(at) => at.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string(),
        Err(_) => LATEST.to_owned(),
    }
}

/// The time of a text that is RFC 3339, with its offset.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    if !has_the_form(text.as_bytes()) {
        return None;
    }
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_micros(at.as_microsecond()))
}

/// `2026-11-16T01:02:03[.456](Z|+01:00)`, and nothing else that a lenient reader would take.
fn has_the_form(text: &[u8]) -> bool {
    let fits = |text: &[u8], form: &[u8]| {
        text.len() == form.len()
            && text.iter().zip(form).all(|(&byte, &wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                b'T' => byte == b'T' || byte == b't',
                b'+' => byte == b'+' || byte == b'-',
                other => byte == other,
            })
    };
    let Some((start, mut rest)) = text.split_at_checked(19) else { return false };
    if !fits(start, b"0000-00-00T00:00:00") {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return false;
        }
        rest = &fraction[digits..];
    }
    matches!(rest, b"Z" | b"z") || fits(rest, b"+00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_with_microseconds() {
        assert_eq!(text(Timestamp::from_micros(1_500_000)), "1970-01-01T00:00:01.500000+00:00");
        assert_eq!(text(Timestamp::from_micros(i64::MAX)), LATEST);
    }

    #[test]
    fn only_rfc_3339_with_an_offset_is_a_time() {
        let second = Some(Timestamp::from_seconds(1));
        for good in ["1970-01-01T00:00:01Z", "1970-01-01t00:00:01.000z", "1970-01-01T01:00:01+01:00"] {
            assert_eq!(parse(good), second, "{good}");
        }
        for bad in [
            "",
            "tomorrow",
            "1970-01-01",
            "1970-01-01T00:00:01",
            "1970-01-01 00:00:01Z",
            "1970-01-01T00:00:01.Z",
            "1970-13-01T00:00:01Z",
            "1970-01-01T00:00:01+0100",
            "1970-01-01T00:00:01Z[UTC]",
            "1970-01-01T25:00:01Z",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
