//! The basic helper set, ready to be lent to templates: `sha256_json`, `sha256_text`, `default`, `has`, `pick`
//! and `idempotency_key`.
//!
//! Each is a plain function of its arguments, the same on every node: no clock, no host id, no randomness, no
//! salt. Each pays for its work before it does it, beside what handing over its arguments and its answer costs.
//! A host lends them one by one, so that a template gets only those it was granted.

mod canonical;
mod path;

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use crate::error::Outcome;
use crate::excerpt::excerpt;
use crate::functions::{Arity, Functions, Metered, Refused, Run};
use crate::meter::Meter;
use canonical::canonical_json;

/// The names of all helpers.
pub const BASIC_HELPERS: [&str; 6] =
    ["default", "has", "idempotency_key", "pick", "sha256_json", "sha256_text"];

/// A name that is none of the helpers'.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a helper: use default, has, idempotency_key, pick, sha256_json or sha256_text")]
pub struct UnknownHelper(pub String);

/// The helpers of these names, and no others.
pub fn lend<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Functions, UnknownHelper> {
    let mut functions = Functions::none();
    for name in names {
        let Some((arguments, run)) = named(name) else { return Err(UnknownHelper(excerpt(name))) };
        // A name that is listed twice is lent once.
        let _ = functions.add(name, Arity::exactly(arguments), Run::Metered(run));
    }
    Ok(functions)
}

/// All helpers.
pub fn lend_all() -> Functions {
    lend(BASIC_HELPERS).unwrap_or_default()
}

/// How many arguments a helper takes, and what it does.
fn named(name: &str) -> Option<(usize, Metered)> {
    Some(match name {
        "default" => (2, default),
        "has" => (2, has),
        "idempotency_key" => (1, idempotency_key),
        "pick" => (2, pick),
        "sha256_json" => (1, sha256_json),
        "sha256_text" => (1, sha256_text),
        _ => return None,
    })
}

/// `sha256_json(value)`: the hex digest of the value's canonical JSON (RFC 8785).
fn sha256_json(arguments: &[Json], meter: &mut Meter) -> Result<Json, Refused> {
    match arguments {
        [value] => Ok(Json::String(hex_digest(&canonical_json(value, meter)?))),
        _ => Err("expects one value".into()),
    }
}

/// `sha256_text(text)`: the hex digest of the text's UTF-8 bytes.
fn sha256_text(arguments: &[Json], meter: &mut Meter) -> Result<Json, Refused> {
    let [Json::String(text)] = arguments else { return Err("expects a string".into()) };
    meter.text(text.len())?;
    Ok(Json::String(hex_digest(text)))
}

/// `idempotency_key(parts)`: the digest of an array of parts. The same as its `sha256_json`, but it insists on
/// an array that says something.
fn idempotency_key(arguments: &[Json], meter: &mut Meter) -> Result<Json, Refused> {
    match arguments {
        [parts @ Json::Array(items)] if !items.is_empty() => {
            Ok(Json::String(hex_digest(&canonical_json(parts, meter)?)))
        }
        _ => Err("expects a non-empty array of parts".into()),
    }
}

/// `default(value, fallback)`: the value, or the fallback when it is null.
fn default(arguments: &[Json], meter: &mut Meter) -> Result<Json, Refused> {
    match arguments {
        [Json::Null, fallback] => Ok(copy(fallback, meter)?),
        [value, _] => Ok(copy(value, meter)?),
        _ => Err("expects a value and a fallback".into()),
    }
}

/// `has(value, path)`: whether a path such as `a.b[0]['any key']` leads to something, were it null.
fn has(arguments: &[Json], meter: &mut Meter) -> Result<Json, Refused> {
    match arguments {
        [value, Json::String(text)] => path::leads_somewhere(value, text, meter).map(Json::Bool),
        _ => Err("expects a value and a path".into()),
    }
}

/// `pick(object, fields)`: those entries of the object that are listed; what it lacks is left out.
fn pick(arguments: &[Json], meter: &mut Meter) -> Result<Json, Refused> {
    let [Json::Object(object), Json::Array(fields)] = arguments else {
        return Err("expects an object and an array of fields".into());
    };
    let mut picked = Map::new();
    for field in fields {
        let Json::String(field) = field else { return Err("expects fields to be strings".into()) };
        // Once among what was picked and once in the object.
        meter.search(picked.len(), field.len())?;
        meter.search(object.len(), field.len())?;
        if let Some(value) = object.get(field)
            && !picked.contains_key(field)
        {
            meter.text(field.len())?;
            picked.insert(field.clone(), copy(value, meter)?);
        }
    }
    Ok(Json::Object(picked))
}

/// Copies a value after paying for it. Recurses as deep as an argument, which the depth budget bounds.
fn copy(json: &Json, meter: &mut Meter) -> Outcome<Json> {
    pay_for(json, meter)?;
    Ok(json.clone())
}

fn pay_for(json: &Json, meter: &mut Meter) -> Outcome<()> {
    meter.step()?;
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
        Json::String(text) => meter.text(text.len()),
        Json::Array(items) => items.iter().try_for_each(|item| pay_for(item, meter)),
        Json::Object(entries) => entries.iter().try_for_each(|(key, value)| {
            meter.text(key.len())?;
            pay_for(value, meter)
        }),
    }
}

fn hex_digest(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
