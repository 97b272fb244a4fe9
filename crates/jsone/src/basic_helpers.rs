//! The basic helper set, ready to be lent to templates: `sha256_json`, `sha256_text`, `default`, `has`, `pick`
//! and `idempotency_key`.
//!
//! Each is a plain function of its arguments, the same on every node: no clock, no host id, no randomness, no
//! salt. A host lends them one by one, so that a template gets only those it was granted.

mod canonical;
mod path;

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use crate::functions::{Arity, Functions, Pure};
use canonical::canonical_json;

/// The names of all helpers, and how many arguments each takes.
pub const BASIC_HELPERS: [(&str, usize, Pure); 6] = [
    ("default", 2, default),
    ("has", 2, has),
    ("idempotency_key", 1, idempotency_key),
    ("pick", 2, pick),
    ("sha256_json", 1, sha256_json),
    ("sha256_text", 1, sha256_text),
];

/// A name that is none of the helpers'.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a helper: use default, has, idempotency_key, pick, sha256_json or sha256_text")]
pub struct UnknownHelper(pub String);

/// The helpers of these names, and no others.
pub fn lend<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Functions, UnknownHelper> {
    let mut functions = Functions::none();
    for name in names {
        let found = BASIC_HELPERS.iter().find(|(helper, _, _)| *helper == name);
        let Some((helper, arguments, run)) = found else { return Err(UnknownHelper(name.to_owned())) };
        // A name that is listed twice is lent once.
        let _ = functions.register(helper, Arity::exactly(*arguments), *run);
    }
    Ok(functions)
}

/// All helpers.
pub fn lend_all() -> Functions {
    lend(BASIC_HELPERS.iter().map(|(name, _, _)| *name)).unwrap_or_default()
}

/// `sha256_json(value)`: the hex digest of the value's canonical JSON (RFC 8785).
fn sha256_json(arguments: &[Json]) -> Result<Json, String> {
    match arguments {
        [value] => Ok(Json::String(hex_digest(&canonical_json(value)?))),
        _ => Err("expects one value".to_owned()),
    }
}

/// `sha256_text(text)`: the hex digest of the text's UTF-8 bytes.
fn sha256_text(arguments: &[Json]) -> Result<Json, String> {
    match arguments {
        [Json::String(text)] => Ok(Json::String(hex_digest(text))),
        _ => Err("expects a string".to_owned()),
    }
}

/// `idempotency_key(parts)`: the digest of an array of parts. The same as its `sha256_json`, but it insists on
/// an array that says something.
fn idempotency_key(arguments: &[Json]) -> Result<Json, String> {
    match arguments {
        [parts @ Json::Array(items)] if !items.is_empty() => {
            Ok(Json::String(hex_digest(&canonical_json(parts)?)))
        }
        _ => Err("expects a non-empty array of parts".to_owned()),
    }
}

/// `default(value, fallback)`: the value, or the fallback when it is null.
fn default(arguments: &[Json]) -> Result<Json, String> {
    match arguments {
        [Json::Null, fallback] => Ok(fallback.clone()),
        [value, _] => Ok(value.clone()),
        _ => Err("expects a value and a fallback".to_owned()),
    }
}

/// `has(value, path)`: whether a path such as `a.b[0]['any key']` leads to something, were it null.
fn has(arguments: &[Json]) -> Result<Json, String> {
    match arguments {
        [value, Json::String(text)] => path::leads_somewhere(value, text).map(Json::Bool),
        _ => Err("expects a value and a path".to_owned()),
    }
}

/// `pick(object, fields)`: those entries of the object that are listed; what it lacks is left out.
fn pick(arguments: &[Json]) -> Result<Json, String> {
    let [Json::Object(object), Json::Array(fields)] = arguments else {
        return Err("expects an object and an array of fields".to_owned());
    };
    let mut picked = Map::new();
    for field in fields {
        let Json::String(field) = field else { return Err("expects fields to be strings".to_owned()) };
        if let Some(value) = object.get(field) {
            picked.insert(field.clone(), value.clone());
        }
    }
    Ok(Json::Object(picked))
}

fn hex_digest(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
