//! Built-ins that work on strings, all by code point.

use crate::builtins::{array_of, text_of};
use crate::error::Outcome;
use crate::meter::Meter;
use crate::number::Number;
use crate::value::{Text, Value};

pub(super) fn len<'r>(arguments: &[Value<'r>], meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
    let size = match arguments {
        [Value::Text(text)] => {
            meter.text(text.len())?;
            text.chars().count()
        }
        [Value::Array(array)] => array.len(),
        _ => return Ok(None),
    };
    Ok(Some(Value::Number(Number::from_size(size))))
}

pub(super) fn str<'r>(arguments: &[Value<'r>], meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
    let [value] = arguments else { return Ok(None) };
    spelled(value, meter).map(|text| text.map(Value::Text))
}

pub(super) fn number<'r>(arguments: &[Value<'r>], meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
    let [Value::Text(text)] = arguments else { return Ok(None) };
    meter.text(text.len())?;
    Ok(Number::parse(text.trim()).map(Value::Number))
}

pub(super) fn mapped<'r>(
    arguments: &[Value<'r>],
    meter: &mut Meter,
    map: fn(&str) -> String,
) -> Outcome<Option<Value<'r>>> {
    let [Value::Text(text)] = arguments else { return Ok(None) };
    meter.text(text.len())?;
    text_of(&map(text), meter)
}

pub(super) fn stripped<'r>(
    arguments: &[Value<'r>],
    meter: &mut Meter,
    strip: fn(&str) -> &str,
) -> Outcome<Option<Value<'r>>> {
    let [Value::Text(text)] = arguments else { return Ok(None) };
    meter.text(text.len())?;
    let kept = strip(text);
    let from = kept.as_ptr().addr() - text.as_ptr().addr();
    Ok(Some(Value::Text(text.part(from, from + kept.len(), meter)?)))
}

pub(super) fn join<'r>(arguments: &[Value<'r>], meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
    let [Value::Array(array), separator @ (Value::Text(_) | Value::Number(_))] = arguments else {
        return Ok(None);
    };
    let Some(separator) = spelled(separator, meter)? else { return Ok(None) };
    let mut joined = String::new();
    for (index, item) in array.iter().enumerate() {
        meter.step()?;
        let Some(item) = spelled(&item, meter)? else { return Ok(None) };
        let separator = if index == 0 { "" } else { &*separator };
        meter.longer_string(joined.len(), separator.len() + item.len())?;
        joined.push_str(separator);
        joined.push_str(&item);
    }
    text_of(&joined, meter)
}

pub(super) fn split<'r>(arguments: &[Value<'r>], meter: &mut Meter) -> Outcome<Option<Value<'r>>> {
    let [Value::Text(text), separator @ (Value::Text(_) | Value::Number(_))] = arguments else {
        return Ok(None);
    };
    let Some(separator) = spelled(separator, meter)? else { return Ok(None) };
    meter.text(text.len() + separator.len())?;
    let mut parts = Vec::new();
    if separator.is_empty() {
        for (from, character) in text.char_indices() {
            meter.step()?;
            parts.push(Value::Text(text.part(from, from + character.len_utf8(), meter)?));
        }
        return array_of(parts, meter);
    }
    let mut from = 0;
    for (at, _) in text.match_indices(&*separator) {
        meter.step()?;
        parts.push(Value::Text(text.part(from, at, meter)?));
        from = at + separator.len();
    }
    parts.push(Value::Text(text.part(from, text.len(), meter)?));
    array_of(parts, meter)
}

/// A scalar as text, the way `str` and interpolation show it; `None` for everything else.
pub(crate) fn spelled<'r>(value: &Value<'r>, meter: &mut Meter) -> Outcome<Option<Text<'r>>> {
    Ok(match value {
        Value::Null => Some(Text::Given("null")),
        Value::Bool(true) => Some(Text::Given("true")),
        Value::Bool(false) => Some(Text::Given("false")),
        Value::Number(number) => Some(Text::build(&number.to_string(), meter)?),
        Value::Text(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) | Value::Function(_) => None,
    })
}
