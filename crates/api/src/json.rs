//! Users' JSON of a known outer form, carried as raw text.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

macro_rules! raw_json {
    ($(#[$doc:meta])* $name:ident begins with $mark:literal: $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize)]
        #[serde(transparent)]
        pub struct $name(Box<RawValue>);

        impl $name {
            /// Takes a text that is one.
            pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
                serde_json::from_str(text)
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                self.0.get()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = Box::<RawValue>::deserialize(deserializer)?;
                if raw.get().starts_with($mark) {
                    return Ok(Self(raw));
                }
                Err(D::Error::custom(concat!("invalid type: expected ", $expected)))
            }
        }
    };
}

raw_json! {
    /// A JSON object as text. The wire types call it `Object`: a field of a type of that name is any object to `utoipa`.
    JsonObject begins with '{': "an object"
}
raw_json! {
    /// A JSON array as text.
    JsonArray begins with '[': "an array"
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
