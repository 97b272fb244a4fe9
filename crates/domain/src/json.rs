//! Users' JSON, carried as compact text and never looked into: the rules do not depend on its content.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::Refusal;

/// One JSON value as compact text.
#[derive(Clone, Debug)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes a text that is already JSON; refuses one that is not.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        serde_json::from_str::<Box<RawValue>>(text).map(Self).map_err(|_| Refusal::InvalidJson)
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
