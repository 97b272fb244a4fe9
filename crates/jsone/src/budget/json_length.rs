//! How many bytes a value takes as compact JSON, without writing it.

use serde_json::{Number, Value as Json};

use crate::error::{Error, Outcome};

/// Between a key and its value.
pub(crate) const COLON: usize = 1;

/// The brackets of a collection and the commas in it.
pub(crate) fn brackets(size: usize) -> usize {
    2 + size.saturating_sub(1)
}

/// The length of anything but a collection; a number that no 64-bit type can hold is refused.
pub(crate) fn scalar(json: &Json) -> Outcome<usize> {
    Ok(match json {
        Json::Null | Json::Bool(true) => 4,
        Json::Bool(false) => 5,
        Json::Number(value) => number(value)?,
        Json::String(text) => string(text),
        Json::Array(_) | Json::Object(_) => 0,
    })
}

/// The length of a quoted string.
pub(crate) fn string(text: &str) -> usize {
    2 + text.bytes().map(escaped).sum::<usize>()
}

/// The length of a number as `serde_json` writes it.
pub(crate) fn number(value: &Number) -> Outcome<usize> {
    if let Some(integer) = value.as_u64() {
        return Ok(digits(integer));
    }
    if let Some(integer) = value.as_i64() {
        return Ok(usize::from(integer < 0) + digits(integer.unsigned_abs()));
    }
    match value.as_f64() {
        Some(float) if float.is_finite() => Ok(value.to_string().len()),
        Some(_) | None => Err(Error::template("number is outside of what 64 bits can hold")),
    }
}

fn digits(integer: u64) -> usize {
    integer.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn escaped(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0x00..0x20 => 6,
        _ => 1,
    }
}
