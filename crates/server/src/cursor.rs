//! Cursors of lists: the time and the id of the last record of a page. What is none of ours is refused by its form.

use api::{Problem, ProblemCode};
use domain::Timestamp;
use domain::limits::MAX_ID_BYTES;

use crate::problem::at;
use crate::{RequestContext, Result};

/// Digits of a time in microseconds; more would not fit.
const MAX_DIGITS: usize = 18;

/// How a place in a list reads.
pub(crate) fn text(at: Timestamp, id: &str) -> String {
    format!("{}.{id}", at.micros())
}

/// The place that the cursor of a request names, if it has one.
pub(crate) fn of(asked: &RequestContext, prefix: &str) -> Result<Option<(Timestamp, String)>> {
    asked.parameter("cursor").map(|text| parse(&text, prefix)).transpose()
}

/// The place that a cursor names, in a list of records whose ids begin so.
fn parse(text: &str, prefix: &str) -> Result<(Timestamp, String)> {
    parts(text, prefix).ok_or_else(invalid)
}

/// The refusal of a cursor.
pub(crate) fn invalid() -> Problem {
    let told = "invalid cursor: pass next_cursor of the previous page unchanged";
    at(ProblemCode::InvalidCursor, "invalid_cursor", &["query", "cursor"], told)
}

/// The pattern of a cursor, as the API document says it; an empty one asks for the first page.
pub(crate) fn pattern(prefix: &str) -> String {
    format!("^(?:[0-9]{{1,{MAX_DIGITS}}}\\.{prefix}[A-Za-z0-9-]{{0,{}}})?$", MAX_ID_BYTES - prefix.len())
}

fn parts(text: &str, prefix: &str) -> Option<(Timestamp, String)> {
    let (micros, id) = text.split_once('.')?;
    let is_time =
        (1..=MAX_DIGITS).contains(&micros.len()) && micros.bytes().all(|digit| digit.is_ascii_digit());
    let is_id = id.starts_with(prefix)
        && id.len() <= MAX_ID_BYTES
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_time || !is_id {
        return None;
    }
    Some((Timestamp::from_micros(micros.parse().ok()?), id.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cursor_is_read_back_and_its_pattern_says_what_is_read() {
        let at = Timestamp::from_micros(1_790_000_000_000_000);
        assert_eq!(parse(&text(at, "work-1a"), "work-").unwrap(), (at, "work-1a".to_owned()));
        let longest = format!("1.work-{}", "a".repeat(MAX_ID_BYTES - 5));
        let schema = json!({ "type": "string", "pattern": pattern("work-") });
        for (cursor, fits) in [
            ("1.work-", true),
            (longest.as_str(), true),
            (&format!("{longest}a"), false),
            ("999999999999999999.work-1", true),
            ("9999999999999999999.work-1", false),
            ("-1.work-1", false),
            ("+1.work-1", false),
            (".work-1", false),
            ("1.op-1", false),
            ("1.work-\0", false),
            ("1.work-a.b", false),
        ] {
            assert_eq!(parts(cursor, "work-").is_some(), fits, "{cursor:?}");
            assert_eq!(jsonschema::is_valid(&schema, &json!(cursor)), fits, "{cursor:?}");
        }
    }
}
