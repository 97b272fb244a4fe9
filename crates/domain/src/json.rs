//! Users' JSON, carried as compact text and never looked into: the rules do not depend on its content.
//!
//! What readers disagree on is refused at the door: a key that stands twice in one object, and U+0000, which a database cannot hold.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::Refusal;

/// One JSON value as compact text.
#[derive(Clone, Debug)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes a text that is JSON and makes it compact; refuses one that is not, or that two readers may read differently.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let mut found = None;
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = Unambiguous { found: &mut found }.deserialize(&mut reader).and_then(|()| reader.end());
        match (read, found) {
            (_, Some(refusal)) => Err(refusal),
            (Err(_), None) => Err(Refusal::InvalidJson),
            (Ok(()), None) => {
                RawValue::from_string(compact(text)).map(Self).map_err(|_| Refusal::InvalidJson)
            }
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self).map_err(D::Error::custom)
    }
}

/// How many lists and objects of a JSON text stand in each other.
pub fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut within, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if within => escaped = true,
            b'"' => within = !within,
            b'{' | b'[' if !within => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !within => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Reads a value to its end and keeps nothing of it but the first reason to refuse it. The depth is the reader's limit.
struct Unambiguous<'a> {
    found: &'a mut Option<Refusal>,
}

impl Unambiguous<'_> {
    fn again(&mut self) -> Unambiguous<'_> {
        Unambiguous { found: self.found }
    }

    fn text<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        if text.contains('\0') { self.refuse(Refusal::NulInJson) } else { Ok(()) }
    }

    fn refuse<E: serde::de::Error>(&mut self, refusal: Refusal) -> Result<(), E> {
        *self.found = Some(refusal);
        Err(E::custom("refused"))
    }
}

impl<'de> DeserializeSeed<'de> for Unambiguous<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        self.text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self.again())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.text(&key)?;
            if !keys.insert(key) {
                return self.refuse(Refusal::DuplicateKey);
            }
            entries.next_value_seed(self.again())?;
        }
        Ok(())
    }
}

/// Valid JSON without the white space between its parts; everything else stays as it was written.
fn compact(text: &str) -> String {
    let mut compacted = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for character in text.chars() {
        if !in_string && matches!(character, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        compacted.push(character);
        match character {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    compacted
}

#[cfg(test)]
mod tests {
    use super::{Json, nesting};

    #[test]
    fn white_space_goes_and_everything_else_stays() {
        let text = "{ \"a b\" : [ 1.50 , 18446744073709551615,\n \"\\\" x\\\\\" ] }";
        let json = Json::parse(text).unwrap();
        assert_eq!(json.as_str(), r#"{"a b":[1.50,18446744073709551615,"\" x\\"]}"#);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "nul", "1 2", "{\"a\":}"] {
            assert_eq!(Json::parse(text).unwrap_err().code(), "invalid_json", "{text}");
        }
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
            assert_eq!(Json::parse(text).unwrap_err().code(), "duplicate_key", "{text}");
        }
        assert!(Json::parse(r#"[{"a":1},{"a":{"a":2}}]"#).is_ok());
    }

    #[test]
    fn the_character_zero_is_refused_in_texts_and_keys() {
        for text in [r#""a\u0000b""#, r#"{"\u0000":1}"#] {
            assert_eq!(Json::parse(text).unwrap_err().code(), "nul_in_json", "{text}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_refused_and_numbers_of_any_size_stay_as_written() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Json::parse(&deep).unwrap_err().code(), "invalid_json");
        let huge = "[123456789012345678901234567890,-9223372036854775808,1e-400]";
        assert_eq!(Json::parse(huge).unwrap().as_str(), huge);
    }

    #[test]
    fn nesting_counts_what_stands_in_each_other_and_nothing_that_stands_in_a_text() {
        for (text, deep) in [("1", 0), ("{}", 1), (r#"[{"a":[]},[[]]]"#, 3), (r#"{"[[\"[":"]{{"}"#, 1)] {
            assert_eq!(nesting(text), deep, "{text}");
        }
    }
}
