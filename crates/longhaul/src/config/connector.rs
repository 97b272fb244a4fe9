//! One connector of the file: the path of its own file, or that and the circle that it is for.

use std::fmt;
use std::path::PathBuf;

use engine::http::Connector;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A connector as the file names it.
#[derive(Debug)]
pub struct ConnectorEntry {
    /// Where it is, seen from the configuration.
    pub file: PathBuf,
    /// Whose jobs it is for; none if it is for everybody's.
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

impl OpenedConnector {
    /// What its policy is called among the host's: `circle/name` if it is a circle's own.
    pub fn policy_name(&self) -> String {
        let name = self.connector.name();
        self.circle.as_ref().map_or_else(|| name.to_owned(), |circle| format!("{circle}/{name}"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    file: PathBuf,
    #[serde(default)]
    circle: Option<String>,
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
        let Written { file, circle } = Written::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ConnectorEntry { file, circle })
    }
}
