//! Users' JSON of a known outer form, carried as raw text.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A JSON object as text.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct JsonObject(Box<RawValue>);

/// A JSON array as text.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct JsonArray(Box<RawValue>);

impl JsonObject {
    /// Takes a text that is a JSON object.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl JsonArray {
    /// Takes a text that is a JSON array.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('{') {
            return Ok(Self(raw));
        }
        Err(D::Error::custom("invalid type: expected an object"))
    }
}

impl<'de> Deserialize<'de> for JsonArray {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('[') {
            return Ok(Self(raw));
        }
        Err(D::Error::custom("invalid type: expected an array"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_is_an_object_and_only_an_array_an_array() {
        assert_eq!(
            JsonObject::parse(r#"{"big":18446744073709551615}"#).unwrap().as_str(),
            r#"{"big":18446744073709551615}"#
        );
        assert!(JsonObject::parse("[]").is_err());
        assert!(JsonObject::parse("null").is_err());
        assert_eq!(JsonArray::parse("[1.50]").unwrap().as_str(), "[1.50]");
        assert!(JsonArray::parse("{}").is_err());
    }
}
