//! How large a file of people may be, and how it is read within that.

use std::fs::File;
use std::io::{Error, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::Mistake;

/// How much a file may hold.
#[derive(Clone, Copy, Debug)]
pub struct FileLimits {
    /// Bytes.
    pub bytes: u64,
    /// Lists and objects in each other.
    pub nesting: usize,
    /// Values.
    pub nodes: usize,
}

impl FileLimits {
    /// The text of a file.
    pub fn text_of(&self, path: &Path) -> Result<String, Mistake> {
        let unreadable =
            |error: Error| Mistake::somewhere(path.display(), format!("cannot be read: {error}"));
        let mut text = String::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(self.bytes + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > self.bytes {
            return Err(Mistake::somewhere(path.display(), format!("has more than {} bytes", self.bytes)));
        }
        Ok(text)
    }

    /// Reads YAML: one document, no anchors, nothing twice.
    pub fn parse<T: DeserializeOwned>(&self, file: &str, text: &str) -> Result<T, Mistake> {
        let options = serde_saphyr::options! {
            strict_booleans: true,
            with_snippet: false,
            budget: serde_saphyr::budget! {
                max_documents: 1,
                max_depth: self.nesting,
                max_nodes: self.nodes,
                max_aliases: 0,
                max_anchors: 0,
            },
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| Mistake::of_yaml(file, &error))
    }
}
