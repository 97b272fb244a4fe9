//! Baggage: what a run carries from step to step. Nothing is carried unless a step claims it, and nothing that is carried ever changes.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::path::{Path, Root, Roots, kind_of, segments};
use super::written::{Written, Wrong};

/// The most that a run carries, as JSON.
pub const MAX_CONTEXT_BYTES: usize = 1_048_576;

/// The names that the host itself puts into the context of a step.
const OWN: &str = "ductile";
/// Where the object is that is carried with everything that follows from an event.
pub const CORRELATION: &str = "correlation";

/// Whether only the host puts something under this name into a context.
pub fn is_own(name: &str) -> bool {
    name == OWN || name == CORRELATION || name.starts_with("ductile_")
}

/// What a step claims: where it shall be from now on, and where it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Baggage {
    claims: BTreeMap<String, Path>,
    whole: Option<Whole>,
}

/// A whole object that is carried under a name.
#[derive(Clone, Debug, PartialEq)]
struct Whole {
    from: Path,
    namespace: String,
}

/// A claim cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaggageError {
    /// Nothing is there.
    #[error("baggage {claim}: there is no {path}")]
    Missing {
        /// Where it would be carried.
        claim: String,
        /// Where nothing is.
        path: String,
    },
    /// Only an object has a namespace.
    #[error("baggage {claim}: an object is carried under a namespace, and {path} is {found}")]
    NoObject {
        /// Where it would be carried.
        claim: String,
        /// What is claimed.
        path: String,
        /// What it is.
        found: &'static str,
    },
    /// What is carried never changes.
    #[error("baggage {claim}: {place} is carried already and cannot be changed")]
    Changed {
        /// Where it would be carried.
        claim: String,
        /// What would change.
        place: String,
    },
    /// The run would carry too much.
    #[error("baggage: the context would be over {MAX_CONTEXT_BYTES} bytes")]
    TooLarge,
}

impl Baggage {
    /// Reads what was written.
    pub(super) fn read(written: &Written) -> Result<Self, Wrong> {
        let mut claims = BTreeMap::new();
        let (mut from, mut namespace) = (None, None);
        for (key, value) in written.entries()? {
            let source = || Path::parse(value.text()?, &Root::CARRIED).map_err(|told| value.wrong(told));
            match key.name.as_str() {
                "from" => from = Some(source()?),
                "namespace" => {
                    namespace = Some(place(value.text()?).map_err(|told| value.wrong(told))?);
                }
                claim => {
                    let claim = place(claim).map_err(|told| Wrong { at: key.at, told })?;
                    claims.insert(claim, source()?);
                }
            }
        }
        let whole = match (from, namespace) {
            (Some(from), Some(namespace)) => Some(Whole { from, namespace }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(written.wrong("baggage has both from and namespace, or none of them"));
            }
        };
        Ok(Self { claims, whole })
    }

    /// What is carried from this step on: what was carried before, and what the step claims of what is there.
    pub fn carry(
        &self,
        inherited: &Map<String, Value>,
        roots: &Roots<'_>,
    ) -> Result<Map<String, Value>, BaggageError> {
        let mut carried = inherited.clone();
        if let Some(Whole { from, namespace }) = &self.whole {
            let value = claimed(namespace, from, roots)?;
            if !value.is_object() {
                return Err(BaggageError::NoObject {
                    claim: namespace.clone(),
                    path: from.to_string(),
                    found: kind_of(Some(value)),
                });
            }
            put(&mut carried, namespace, value)?;
        }
        for (claim, source) in &self.claims {
            put(&mut carried, claim, claimed(claim, source, roots)?)?;
        }
        let bytes = serde_json::to_vec(&carried).map_or(usize::MAX, |bytes| bytes.len());
        if bytes > MAX_CONTEXT_BYTES { Err(BaggageError::TooLarge) } else { Ok(carried) }
    }
}

fn claimed<'v>(claim: &str, source: &Path, roots: &Roots<'v>) -> Result<&'v Value, BaggageError> {
    source
        .find(roots)
        .ok_or_else(|| BaggageError::Missing { claim: claim.to_owned(), path: source.to_string() })
}

/// Puts a value where a claim says, and changes nothing that is there.
fn put(carried: &mut Map<String, Value>, claim: &str, value: &Value) -> Result<(), BaggageError> {
    let (mut into, mut place) = (carried, String::new());
    let mut names = claim.split('.').peekable();
    while let Some(name) = names.next() {
        extend(&mut place, name);
        if names.peek().is_none() {
            return merge(into, name, value, &place)
                .map_err(|place| BaggageError::Changed { claim: claim.to_owned(), place });
        }
        let inner = into.entry(name).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(inner) = inner else {
            return Err(BaggageError::Changed { claim: claim.to_owned(), place });
        };
        into = inner;
    }
    Ok(())
}

/// Puts a value under this name, or says which place would change.
fn merge(into: &mut Map<String, Value>, name: &str, value: &Value, place: &str) -> Result<(), String> {
    match (into.get_mut(name), value) {
        (None, value) => {
            into.insert(name.to_owned(), value.clone());
            Ok(())
        }
        (Some(Value::Object(there)), Value::Object(coming)) => coming.iter().try_for_each(|(name, value)| {
            let mut place = place.to_owned();
            extend(&mut place, name);
            merge(there, name, value, &place)
        }),
        (Some(there), value) if there == value => Ok(()),
        (Some(_), _) => Err(place.to_owned()),
    }
}

fn extend(place: &mut String, name: &str) {
    if !place.is_empty() {
        place.push('.');
    }
    place.push_str(name);
}

/// Checks where something shall be carried.
fn place(written: &str) -> Result<String, String> {
    let names = segments(written, written.split('.'))?;
    match names.first() {
        Some(first) if is_own(first) => {
            Err(format!("{written:?}: {CORRELATION} and names that begin with {OWN} are the host's own"))
        }
        Some(_) | None => Ok(written.to_owned()),
    }
}

impl TryFrom<Value> for Baggage {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        Self::read(&Written::of_json(value)).map_err(|wrong| wrong.to_string())
    }
}

impl From<Baggage> for Value {
    fn from(baggage: Baggage) -> Self {
        let claims = baggage.claims.into_iter().map(|(claim, path)| (claim, json!(path.to_string())));
        let mut written: Map<String, Self> = claims.collect();
        if let Some(Whole { from, namespace }) = baggage.whole {
            written.insert("from".to_owned(), json!(from.to_string()));
            written.insert("namespace".to_owned(), json!(namespace));
        }
        Self::Object(written)
    }
}
