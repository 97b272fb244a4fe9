//! Taking values apart: `a.b`, `a[i]` and `a[from:to]`, strings by code point.

use crate::error::{Error, Outcome};
use crate::excerpt::excerpt;
use crate::meter::Meter;
use crate::value::{Text, Value};

pub(super) fn property<'r>(value: &Value<'r>, name: &str, meter: &mut Meter) -> Outcome<Value<'r>> {
    let Value::Object(object) = value else {
        return Err(Error::interpreter("infix: . expects objects"));
    };
    object
        .get(name, meter)?
        .ok_or_else(|| Error::interpreter(format!("object has no property \"{}\"", excerpt(name))))
}

pub(super) fn index<'r>(value: &Value<'r>, index: &Value<'r>, meter: &mut Meter) -> Outcome<Value<'r>> {
    match value {
        Value::Array(array) => {
            let at = wrapped(whole(index).ok_or_else(non_integer_index)?, array.len());
            at.and_then(|at| array.get(at)).ok_or_else(out_of_bounds)
        }
        Value::Text(text) => {
            let index = whole(index).ok_or_else(non_integer_index)?;
            meter.text(text.len())?;
            let length = text.chars().count();
            let at = wrapped(index, length).filter(|at| *at < length).ok_or_else(out_of_bounds)?;
            part_of_text(text, at, at + 1, meter)
        }
        Value::Object(object) => {
            let Value::Text(key) = index else {
                return Err(Error::interpreter("object keys must be strings"));
            };
            Ok(object.get(key, meter)?.unwrap_or(Value::Null))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Function(_) => Err(not_indexable()),
    }
}

pub(super) fn slice<'r>(
    value: &Value<'r>,
    from: Option<&Value<'r>>,
    to: Option<&Value<'r>>,
    meter: &mut Meter,
) -> Outcome<Value<'r>> {
    match value {
        Value::Array(array) => {
            let (from, to) = interval(from, to, array.len())?;
            Ok(Value::Array(array.part(from, to, meter)?))
        }
        Value::Text(text) => {
            meter.text(text.len())?;
            let (from, to) = interval(from, to, text.chars().count())?;
            part_of_text(text, from, to, meter)
        }
        Value::Object(_) => Err(Error::interpreter("object keys must be strings")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Function(_) => Err(not_indexable()),
    }
}

/// Both ends clamped into the value; an interval that ends before it begins is empty.
fn interval(from: Option<&Value<'_>>, to: Option<&Value<'_>>, length: usize) -> Outcome<(usize, usize)> {
    let end = |given: Option<&Value<'_>>, otherwise: usize| match given {
        None => Ok(otherwise),
        Some(value) => match whole(value) {
            Some(index) => Ok(clamped(index, length)),
            None => Err(Error::interpreter("cannot perform interval access with non-integers")),
        },
    };
    let from = end(from, 0)?;
    let to = end(to, length)?;
    Ok((from, to.max(from)))
}

fn part_of_text<'r>(text: &Text<'r>, from: usize, to: usize, meter: &mut Meter) -> Outcome<Value<'r>> {
    let mut starts = text.char_indices().map(|(at, _)| at);
    let start = starts.nth(from).unwrap_or(text.len());
    let end = if to == from { start } else { starts.nth(to - from - 1).unwrap_or(text.len()) };
    Ok(Value::Text(text.part(start, end, meter)?))
}

fn whole(value: &Value<'_>) -> Option<i128> {
    if let Value::Number(number) = value { number.whole() } else { None }
}

/// Negative indices count from the end.
fn wrapped(index: i128, length: usize) -> Option<usize> {
    let index = if index < 0 { index.saturating_add(length as i128) } else { index };
    usize::try_from(index).ok()
}

fn clamped(index: i128, length: usize) -> usize {
    if index < 0 {
        wrapped(index, length).unwrap_or(0)
    } else {
        usize::try_from(index).unwrap_or(length).min(length)
    }
}

fn out_of_bounds() -> Error {
    Error::interpreter("index out of bounds")
}

fn non_integer_index() -> Error {
    Error::interpreter("should only use integers to access arrays or strings")
}

fn not_indexable() -> Error {
    Error::interpreter("infix: \"[..]\" expects object, array, or string")
}
