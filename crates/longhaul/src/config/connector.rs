//! One connector of the file: the path of its own file, or that and the circle that it is for; and the keys that sign connectors.

use std::fmt;
use std::path::{Path, PathBuf};

use config_file::Mistake;
use executors::http::{Connector, Signers};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

/// A connector as the file names it. What is derived reads the map.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ConnectorEntry {
    /// Where it is, seen from the configuration.
    pub file: PathBuf,
    /// Whose jobs it is for; none if it is for everybody's.
    #[serde(default)]
    pub circle: Option<String>,
}

/// A connector that was read.
#[derive(Debug)]
pub struct OpenedConnector {
    /// Whose jobs it is for; none if it is for everybody's.
    pub circle: Option<String>,
    /// The connector.
    pub connector: Connector,
}

/// The public keys as the file lists them.
pub type ConnectorKeys = Spanned<Vec<Spanned<String>>>;

/// A key without a value is a mistake: it must not read as if no signature were wanted.
pub fn some_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ConnectorKeys>, D::Error> {
    ConnectorKeys::deserialize(deserializer).map(Some)
}

/// The keys, ready to check with.
pub fn signers(path: &Path, keys: &ConnectorKeys) -> Result<Signers, Mistake> {
    if keys.value.is_empty() {
        let told = "connector_keys: list a public key, or leave it out and no signature is checked";
        return Err(Mistake::at(path.display(), &keys.defined, told));
    }
    let mut signers = Signers::default();
    for key in &keys.value {
        signers.add(&key.value).map_err(|told| Mistake::at(path.display(), &key.defined, told))?;
    }
    Ok(signers)
}

impl OpenedConnector {
    /// What its policy is called among the host's: `circle/name` if it is a circle's own.
    pub fn policy_name(&self) -> String {
        let name = self.connector.name();
        self.circle.as_ref().map_or_else(|| name.to_owned(), |circle| format!("{circle}/{name}"))
    }
}

impl<'de> Deserialize<'de> for ConnectorEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PathOrMap)
    }
}

struct PathOrMap;

impl<'de> Visitor<'de> for PathOrMap {
    type Value = ConnectorEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the path of a connector, or { file: PATH, circle: NAME }")
    }

    fn visit_str<E: serde::de::Error>(self, path: &str) -> Result<ConnectorEntry, E> {
        Ok(ConnectorEntry { file: PathBuf::from(path), circle: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ConnectorEntry, A::Error> {
        ConnectorEntry::deserialize(MapAccessDeserializer::new(map))
    }
}
