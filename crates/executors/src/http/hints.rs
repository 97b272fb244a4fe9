//! What an answer says about time, as a hint: seconds, a date of HTTP, or nonsense. The host clamps it.

use std::time::UNIX_EPOCH;

use domain::Timestamp;
use domain::policy::Hint;
use serde_json::Value;

/// Reads a header such as `Retry-After`: seconds or a date.
pub(super) fn of_text(text: &str, now: Timestamp) -> Hint {
    match Hint::parse(text) {
        Hint::Invalid => of_date(text, now),
        hint @ (Hint::Seconds(_) | Hint::Absent) => hint,
    }
}

/// Reads what an expression found.
pub(super) fn of_value(value: &Value, now: Timestamp) -> Hint {
    match value {
        Value::Null => Hint::Absent,
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(seconds), _) => Hint::Seconds(seconds),
            (None, Some(_)) => Hint::Seconds(i64::MAX),
            (None, None) => Hint::Invalid,
        },
        Value::String(text) => of_text(text, now),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Hint::Invalid,
    }
}

/// A date that has passed means now.
fn of_date(text: &str, now: Timestamp) -> Hint {
    let text = text.trim();
    let of_http = httpdate::parse_http_date(text).ok();
    let at = of_http.and_then(|at| i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok());
    let at = at.or_else(|| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second));
    at.map_or(Hint::Invalid, |at| Hint::Seconds((at - now.micros() / 1_000_000).max(0)))
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use domain::policy::Hint;
    use serde_json::json;

    use super::{of_text, of_value};

    #[test]
    fn whatever_is_said_about_time_is_seconds_or_nonsense() {
        let now = Timestamp::from_seconds(784_111_777);
        for (text, hint) in [
            ("120", Hint::Seconds(120)),
            (" 7 ", Hint::Seconds(7)),
            ("-5", Hint::Seconds(-5)),
            ("99999999999999999999", Hint::Seconds(i64::MAX)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Hint::Seconds(60)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Hint::Seconds(0)),
            ("1994-11-06T08:49:47Z", Hint::Seconds(10)),
            ("soon", Hint::Invalid),
            ("1.5", Hint::Invalid),
            ("", Hint::Invalid),
        ] {
            assert_eq!(of_text(text, now), hint, "{text}");
        }
        let far = of_text("Fri, 31 Dec 9999 23:59:59 GMT", now);
        assert!(matches!(far, Hint::Seconds(250_000_000_000..)), "{far:?}");
        for (value, hint) in [
            (json!(30), Hint::Seconds(30)),
            (json!("30"), Hint::Seconds(30)),
            (json!(u64::MAX), Hint::Seconds(i64::MAX)),
            (json!(1e308), Hint::Invalid),
            (json!([30]), Hint::Invalid),
            (json!(null), Hint::Absent),
        ] {
            assert_eq!(of_value(&value, now), hint, "{value}");
        }
    }
}
