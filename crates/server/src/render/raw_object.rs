//! A JSON object taken apart one level deep: keys, and values as raw text in the order in which they were written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The members of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawObject<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> RawObject<'a> {
    /// The members of this text; nothing if it is no object.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// The text of a member that is a string.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Cow<'a, RawValue>> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    /// Replaces a member where it stands, or adds it at the end.
    pub(crate) fn set(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) {
        let value = serde_json::value::to_raw_value(value).expect("values have only string keys");
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, kept)) => *kept = Cow::Owned(value),
            None => self.0.push((Cow::Borrowed(key), Cow::Owned(value))),
        }
    }

    /// Adds a member whose key is not there yet.
    pub(crate) fn add(&mut self, key: Cow<'a, str>, value: Cow<'a, RawValue>) {
        if self.get(&key).is_none() {
            self.0.push((key, value));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, RawValue>)> {
        self.0.into_iter()
    }

    /// The text.
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("it has only string keys")
    }

    /// The text as raw JSON.
    pub(crate) fn to_raw(&self) -> Cow<'static, RawValue> {
        raw(self.to_text())
    }
}

/// A text that is JSON.
pub(crate) fn raw(text: String) -> Cow<'static, RawValue> {
    Cow::Owned(RawValue::from_string(text).expect("it was put together from JSON"))
}

/// A text as JSON. An executor may have left another text: then it is a string.
pub(crate) fn json_or_text(text: &str) -> Box<RawValue> {
    let json = RawValue::from_string(text.to_owned());
    json.or_else(|_| serde_json::value::to_raw_value(text)).expect("a string is JSON")
}

impl Serialize for RawObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, &**value)?;
        }
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RawObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    members.push((key.0, Cow::Borrowed(map.next_value::<&'de RawValue>()?)));
                }
                Ok(RawObject(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_their_text() {
        let text = r#"{"z":1.50,"a\"b":{"n":18446744073709551615},"m":null}"#;
        assert_eq!(RawObject::parse(text).unwrap().to_text(), text);
        assert!(RawObject::parse("[1]").is_none());
    }

    #[test]
    fn a_member_is_replaced_where_it_stands() {
        let mut object = RawObject::parse(r#"{"a":1,"b":2}"#).unwrap();
        object.set("a", "x");
        object.set("c", &3);
        object.remove("b");
        assert_eq!(object.to_text(), r#"{"a":"x","c":3}"#);
    }
}
