//! Users' JSON, carried as compact text and never looked into: the rules do not depend on its content.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::Refusal;

/// One JSON value as compact text.
#[derive(Clone, Debug)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes a text that is JSON and makes it compact; refuses one that is not.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        serde_json::from_str::<&RawValue>(text).map_err(|_| Refusal::InvalidJson)?;
        RawValue::from_string(compact(text)).map(Self).map_err(|_| Refusal::InvalidJson)
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
    use super::Json;

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
}
