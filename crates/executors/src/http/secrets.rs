//! The secrets of a connector: read when it starts, lent to its request templates, masked in everything else.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::file::SecretSource;
use super::mask::Mask;
use crate::webhook_key;

/// A shorter secret would be found everywhere, and guessed soon.
const MIN_SECRET_BYTES: usize = 8;
const MAX_SECRET_BYTES: u64 = 16_384;

/// The values of a connector's secrets.
#[derive(Clone, Default)]
pub struct Secrets {
    values: BTreeMap<String, String>,
}

/// Why a secret cannot be used. Its value is never told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret {name:?} {why}")]
pub struct SecretError {
    /// Its name in the connector.
    pub name: String,
    /// What is wrong.
    pub why: String,
}

impl Secrets {
    /// Reads them from where the file says. `variable` looks into the environment.
    pub fn read<'s>(
        sources: impl IntoIterator<Item = (&'s String, &'s SecretSource)>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SecretError> {
        let mut secrets = Self::default();
        for (name, source) in sources {
            let wrong = |why: String| SecretError { name: name.clone(), why };
            let value = match (&source.env, &source.file) {
                (Some(env), None) => variable(env)
                    .ok_or_else(|| wrong(format!("needs the variable {env}, which is not set")))?,
                (None, Some(path)) => {
                    let unread = |error: std::io::Error| wrong(format!("{}: {error}", path.display()));
                    if std::fs::metadata(path).map_err(unread)?.len() > MAX_SECRET_BYTES {
                        return Err(wrong(format!("has more than {MAX_SECRET_BYTES} bytes")));
                    }
                    let text = std::fs::read_to_string(path).map_err(unread)?;
                    text.strip_suffix('\n')
                        .map_or(text.as_str(), |line| line.trim_end_matches('\r'))
                        .to_owned()
                }
                (None, None) | (Some(_), Some(_)) => {
                    return Err(wrong("comes from either env or file".to_owned()));
                }
            };
            secrets.add(name, value)?;
        }
        Ok(secrets)
    }

    /// With this value: for tests and replays.
    pub fn add(&mut self, name: &str, value: String) -> Result<(), SecretError> {
        if value.len() < MIN_SECRET_BYTES {
            let why = format!("has fewer than {MIN_SECRET_BYTES} bytes: it could not be kept out of answers");
            return Err(SecretError { name: name.to_owned(), why });
        }
        self.values.insert(name.to_owned(), value);
        Ok(())
    }

    /// Refuses a secret that callbacks shall be signed with and that is no key for that.
    pub(super) fn check_webhook_key(&self, name: &str) -> Result<(), SecretError> {
        if self.value(name).is_some_and(|value| webhook_key(value).is_some()) {
            return Ok(());
        }
        let why = "is no key for signatures of Standard Webhooks: whsec_ and base64".to_owned();
        Err(SecretError { name: name.to_owned(), why })
    }

    /// The value of one.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// As request templates see them.
    pub(crate) fn lent(&self) -> Value {
        Value::Object(self.values.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect())
    }

    /// As they go into digests: by name only.
    pub(super) fn named(&self) -> Value {
        Value::Object(
            self.values.keys().map(|name| (name.clone(), name.clone().into())).collect::<Map<_, _>>(),
        )
    }

    pub(crate) fn mask(&self) -> Mask {
        Mask::of(self.values.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}
