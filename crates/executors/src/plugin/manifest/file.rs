//! A manifest as it is written. Keys that are not known are no mistake, and are told.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::super::super::http::LIMITS;
use config_file::{Mistake, hint};

const KEYS: [&str; 12] = [
    "manifest_spec",
    "manifest_version",
    "name",
    "version",
    "protocol",
    "entrypoint",
    "description",
    "concurrency_safe",
    "commands",
    "fact_outputs",
    "config_keys",
    "stopwatch",
];
const COMMAND_KEYS: [&str; 8] =
    ["name", "type", "description", "idempotent", "retry_safe", "input_schema", "output_schema", "values"];

#[derive(Debug, Deserialize)]
pub(super) struct ManifestFile {
    pub(super) manifest_spec: Option<Spanned<String>>,
    pub(super) manifest_version: Option<Spanned<u64>>,
    pub(super) name: Spanned<String>,
    pub(super) version: Option<String>,
    pub(super) protocol: Spanned<u64>,
    pub(super) entrypoint: Spanned<String>,
    pub(super) description: Option<String>,
    pub(super) concurrency_safe: Option<bool>,
    pub(super) commands: Spanned<Vec<Spanned<CommandFile>>>,
    #[serde(default)]
    pub(super) fact_outputs: Vec<Spanned<FactOutputFile>>,
    pub(super) config_keys: Option<Spanned<ConfigKeysFile>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ConfigKeysFile {
    pub(super) required: Vec<String>,
    pub(super) optional: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FactOutputFile {
    pub(super) when: WhenFile,
    pub(super) from: String,
    pub(super) fact_type: String,
    pub(super) compatibility_view: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WhenFile {
    pub(super) command: String,
}

/// A command: its name alone was enough once.
#[derive(Debug)]
pub(super) enum CommandFile {
    Name(String),
    Whole(Box<WholeCommand>),
}

#[derive(Debug, Deserialize)]
pub(super) struct WholeCommand {
    pub(super) name: Spanned<String>,
    #[serde(rename = "type")]
    pub(super) effect: Option<Spanned<String>>,
    pub(super) description: Option<String>,
    pub(super) input_schema: Option<Value>,
    pub(super) output_schema: Option<Value>,
}

impl<'de> Deserialize<'de> for CommandFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrMap)
    }
}

struct NameOrMap;

impl<'de> Visitor<'de> for NameOrMap {
    type Value = CommandFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command: { name: NAME, type: read | write }")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<CommandFile, E> {
        Ok(CommandFile::Name(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CommandFile, A::Error> {
        let whole = WholeCommand::deserialize(MapAccessDeserializer::new(map))?;
        Ok(CommandFile::Whole(Box::new(whole)))
    }
}

/// What is written and nobody reads, with its place.
pub(super) fn unknown_keys(file: &str, text: &str) -> Result<Vec<Mistake>, Mistake> {
    #[derive(Deserialize)]
    struct Commands {
        #[serde(default)]
        commands: Vec<Keys>,
    }
    let top: Keys = LIMITS.parse(file, text)?;
    let below: Commands = LIMITS.parse(file, text)?;
    let strangers = |keys: Keys, known: &'static [&'static str]| {
        keys.0.into_iter().filter(|key| !known.contains(&key.value.as_str())).map(move |key| {
            let told = format!("unknown key {:?} is ignored{}", key.value, hint(&key.value, known));
            Mistake::at(file, &key.defined, told)
        })
    };
    let below = below.commands.into_iter().flat_map(|command| strangers(command, &COMMAND_KEYS));
    Ok(strangers(top, &KEYS).chain(below).collect())
}

/// The keys of a mapping; of anything else, none.
struct Keys(Vec<Spanned<String>>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeysOf)
    }
}

struct KeysOf;

impl<'de> Visitor<'de> for KeysOf {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys with values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut keys = Vec::new();
        while let Some((key, IgnoredAny)) = map.next_entry()? {
            keys.push(key);
        }
        Ok(Keys(keys))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Keys, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Keys(Vec::new()))
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }
}
