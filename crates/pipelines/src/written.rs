//! A YAML text as a tree in which everything has its place, so that one mistake neither hides another one nor the pipelines beside it.
//!
//! What a run keeps is JSON and is read by the same rules: such a tree has no places.

use std::fmt;

use config_file::{FileLimits, Mistake, hint};
use domain::duration;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

/// What a file of pipelines may hold.
pub(super) const LIMITS: FileLimits = FileLimits { bytes: 1_048_576, nesting: 64, nodes: 200_000 };
/// From here on a float may be a whole number that was rounded: 2 to the 63.
const MAX_FLOAT: f64 = 9_223_372_036_854_775_808.0;

/// Something that was written, and where.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) at: Location,
    pub(super) what: What,
}

/// What was written.
#[derive(Clone, Debug)]
pub(super) enum What {
    Nothing,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Written>),
    Keys(Vec<(Key, Written)>),
}

/// A key, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) at: Location,
}

/// What is wrong in a place; whoever knows the file makes a mistake of it.
#[derive(Clone, Debug)]
pub(super) struct Wrong {
    pub(super) at: Location,
    pub(super) told: String,
}

/// The keys of a mapping that may have these and no others.
#[derive(Clone, Copy)]
pub(super) struct Keys<'w>(&'w [(Key, Written)]);

impl Written {
    /// Reads a YAML text of people: one document, no anchors, nothing twice.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, Mistake> {
        LIMITS.parse(file, text)
    }

    /// A tree without places.
    pub(super) fn of_json(value: Value) -> Self {
        let what = match value {
            Value::Null => What::Nothing,
            Value::Bool(flag) => What::Flag(flag),
            Value::Number(number) => What::Number(number),
            Value::String(text) => What::Text(text),
            Value::Array(items) => What::List(items.into_iter().map(Self::of_json).collect()),
            Value::Object(entries) => What::Keys(
                entries
                    .into_iter()
                    .map(|(name, value)| (Key { name, at: Location::UNKNOWN }, Self::of_json(value)))
                    .collect(),
            ),
        };
        Self { at: Location::UNKNOWN, what }
    }

    /// The value without its places.
    pub(super) fn json(&self) -> Value {
        match &self.what {
            What::Nothing => Value::Null,
            What::Flag(flag) => Value::Bool(*flag),
            What::Number(number) => Value::Number(number.clone()),
            What::Text(text) => Value::String(text.clone()),
            What::List(items) => Value::Array(items.iter().map(Self::json).collect()),
            What::Keys(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.name.clone(), value.json()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// The text that is expected here.
    pub(super) fn text(&self) -> Result<&str, Wrong> {
        match &self.what {
            What::Text(text) => Ok(text),
            What::Flag(_) | What::Number(_) => {
                Err(self.wrong(format!("a text is expected here; write '{}'", self.json())))
            }
            What::Nothing | What::List(_) | What::Keys(_) => Err(self.wrong("a text is expected here")),
        }
    }

    /// The whole number that is expected here, within these bounds.
    pub(super) fn whole(&self, least: u64, most: u64) -> Result<u64, Wrong> {
        let number = if let What::Number(number) = &self.what { number.as_u64() } else { None };
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.wrong(format!("a whole number from {least} to {most} is expected here")))
    }

    /// The seconds that are written here, within these bounds: a number, or a duration such as `90s`, `5m` or `1h30m`.
    pub(super) fn seconds(&self, least: u64, most: u64) -> Result<u64, Wrong> {
        let seconds = match &self.what {
            What::Number(number) => number.as_u64(),
            What::Text(text) => duration::seconds(text),
            What::Nothing | What::Flag(_) | What::List(_) | What::Keys(_) => None,
        };
        let seconds = seconds.ok_or_else(|| {
            self.wrong("a number of seconds or a time such as 30s, 5m or 24h is expected here")
        })?;
        if (least..=most).contains(&seconds) {
            return Ok(seconds);
        }
        Err(self.wrong(format!("must be {least} to {most} seconds, and is {seconds}")))
    }

    /// What the word here stands for, of these.
    pub(super) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Wrong> {
        let text = self.text()?;
        if let Some((_, meant)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*meant);
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Err(self.wrong(format!("{text:?} is not one of: {}{}", known.join(", "), hint(text, &known))))
    }

    /// The list that is expected here, with something in it.
    pub(super) fn list(&self) -> Result<&[Self], Wrong> {
        let What::List(items) = &self.what else {
            return Err(self.wrong("a list is expected here, as [one, two]"));
        };
        if items.is_empty() { Err(self.wrong("this list is empty")) } else { Ok(items) }
    }

    /// The keys that are expected here, whatever they are.
    pub(super) fn entries(&self) -> Result<&[(Key, Self)], Wrong> {
        let What::Keys(entries) = &self.what else {
            return Err(self.wrong("keys with values are expected here, as { key: value }"));
        };
        Ok(entries)
    }

    /// The keys that are expected here; the first one that is not known is wrong.
    pub(super) fn keys(&self, known: &[&str]) -> Result<Keys<'_>, Wrong> {
        let (keys, unknown) = self.keys_and_unknown(known)?;
        unknown.into_iter().next().map_or(Ok(keys), Err)
    }

    /// The keys that are expected here, and all that are not known.
    pub(super) fn keys_and_unknown(&self, known: &[&str]) -> Result<(Keys<'_>, Vec<Wrong>), Wrong> {
        let entries = self.entries()?;
        let unknown = entries.iter().map(|(key, _)| key).filter(|key| !known.contains(&key.name.as_str()));
        let unknown = unknown.map(|key| {
            let told = match hint(&key.name, known).as_str() {
                "" => format!("unknown key {:?}; known here: {}", key.name, known.join(", ")),
                hint => format!("unknown key {:?}{hint}", key.name),
            };
            Wrong { at: key.at, told }
        });
        Ok((Keys(entries), unknown.collect()))
    }

    /// Says what is wrong here.
    pub(super) fn wrong(&self, told: impl Into<String>) -> Wrong {
        Wrong { at: self.at, told: told.into() }
    }
}

impl<'w> Keys<'w> {
    /// What stands under this key.
    pub(super) fn find(self, name: &str) -> Option<&'w Written> {
        self.0.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    /// Where this key stands.
    pub(super) fn place(self, name: &str) -> Option<Location> {
        self.0.iter().find(|(key, _)| key.name == name).map(|(key, _)| key.at)
    }
}

impl Wrong {
    /// The mistake in this file.
    pub(super) fn in_file(self, file: &str) -> Mistake {
        Mistake::at(file, &self.at, self.told)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Spanned::<What>::deserialize(deserializer)?;
        Ok(Self { at: read.defined, what: read.value })
    }
}

impl<'de> Deserialize<'de> for What {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = What;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, true, false, null, a list, or keys with values")
    }

    fn visit_unit<E>(self) -> Result<What, E> {
        Ok(What::Nothing)
    }

    fn visit_none<E>(self) -> Result<What, E> {
        Ok(What::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<What, D::Error> {
        What::deserialize(deserializer)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<What, E> {
        Ok(What::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<What, E> {
        Ok(What::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<What, E> {
        Ok(What::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<What, E> {
        // The reader makes a float of a whole number that is too long, and would compare it with others.
        if number.abs() >= MAX_FLOAT {
            return Err(E::custom("a number this large is not exact: whole numbers have at most 64 bits"));
        }
        Number::from_f64(number).map(What::Number).ok_or_else(|| E::custom("JSON has no such number"))
    }

    fn visit_str<E>(self, text: &str) -> Result<What, E> {
        Ok(What::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut read: A) -> Result<What, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = read.next_element()? {
            items.push(item);
        }
        Ok(What::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut read: A) -> Result<What, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = read.next_key::<Spanned<String>>()? {
            if key.value.contains('\0') {
                return Err(A::Error::custom("a key cannot hold a NUL character"));
            }
            entries.push((Key { name: key.value, at: key.defined }, read.next_value()?));
        }
        Ok(What::Keys(entries))
    }
}
