//! The one file that makes secrets: 256 random bits each, of which only the SHA-256 is ever kept.

use std::fmt;

use domain::Digest;

/// What the holder of a token sends.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// How a secret begins, so that one that leaked is recognised.
const PREFIX: &str = "lh_";

impl Secret {
    /// A new one; an error if the machine has no randomness.
    pub fn generate() -> Result<Self, std::io::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Self(format!("{PREFIX}{}", Digest(bytes))))
    }

    /// One that was given before.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, to hand over once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn sha256(&self) -> Digest {
        store::sha256(self.0.as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
