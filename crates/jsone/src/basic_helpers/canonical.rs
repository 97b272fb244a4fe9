//! Canonical JSON after RFC 8785: keys by UTF-16 code units, numbers as ECMAScript writes doubles, no spaces.
//!
//! An integer that no double holds exactly has no canonical form, and is refused: rounding it would give two
//! different values the same digest. Every value, byte and comparison of keys is paid for before it is written.

use serde_json::{Map, Number as JsonNumber, Value as Json};

use crate::functions::Refused;
use crate::limits::DEPTH_CEILING;
use crate::meter::Meter;
use crate::number::{Number, ecmascript};
use crate::value::push_quoted;

/// Deeper than any argument can be: what a render builds around what its context holds.
const LEVELS: usize = 2 * DEPTH_CEILING;

pub(super) fn canonical_json(json: &Json, meter: &mut Meter) -> Result<String, Refused> {
    let mut text = String::new();
    write(&mut text, json, 0, meter)?;
    Ok(text)
}

fn write(text: &mut String, json: &Json, level: usize, meter: &mut Meter) -> Result<(), Refused> {
    if level > LEVELS {
        return Err("the value is nested too deep".into());
    }
    meter.step()?;
    match json {
        Json::Null => text.push_str("null"),
        Json::Bool(true) => text.push_str("true"),
        Json::Bool(false) => text.push_str("false"),
        Json::Number(number) => text.push_str(&canonical_number(number)?),
        Json::String(string) => {
            meter.text(string.len())?;
            push_quoted(text, string);
        }
        Json::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(text, item, level + 1, meter)?;
            }
            text.push(']');
        }
        Json::Object(entries) => {
            meter.ordering(entries.keys().map(String::len))?;
            text.push('{');
            for (index, (key, value)) in in_utf16_order(entries).into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                meter.text(key.len())?;
                push_quoted(text, key);
                text.push(':');
                write(text, value, level + 1, meter)?;
            }
            text.push('}');
        }
    }
    Ok(())
}

fn canonical_number(number: &JsonNumber) -> Result<String, String> {
    let number = Number::from_json(number);
    let float = number.as_float();
    if Number::Float(float).compare(number).is_ne() {
        return Err(format!("{number} has no canonical form: pass it as a string"));
    }
    Ok(ecmascript(float))
}

fn in_utf16_order(entries: &Map<String, Json>) -> Vec<(&String, &Json)> {
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by(|left, right| left.0.encode_utf16().cmp(right.0.encode_utf16()));
    sorted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::limits::Limits;

    fn canonical(json: &Json) -> Option<String> {
        canonical_json(json, &mut Meter::new(&Limits::default())).ok()
    }

    #[test]
    fn the_example_of_the_rfc_has_its_canonical_form() {
        let json: Json = serde_json::from_str(
            r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
                "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
                "literals": [null, true, false]}"#,
        )
        .unwrap();
        assert_eq!(
            canonical(&json).unwrap(),
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#
                .to_owned()
                + "\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"
        );
    }

    #[test]
    fn keys_are_ordered_by_utf_16_code_units() {
        let json =
            json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "a": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7});
        let written = canonical(&json).unwrap();
        // The smiley is two code units of which the first is below U+FB33.
        assert_eq!(written.chars().filter(char::is_ascii_digit).collect::<String>(), "2467153");
    }

    #[test]
    fn an_integer_that_would_be_rounded_is_refused() {
        assert_eq!(canonical(&json!(9_007_199_254_740_992_u64)).unwrap(), "9007199254740992");
        assert!(canonical(&json!(9_007_199_254_740_993_u64)).is_none());
        assert!(canonical(&json!(u64::MAX)).is_none());
        assert_eq!(canonical(&json!(1.0)).unwrap(), "1");
    }
}
