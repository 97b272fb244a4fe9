//! Access tokens: a plain table beside the records, not part of the ledger. Only the digest of a token is ever kept.
//!
//! The store keeps what it is given; what a role or a scope allows is decided by whoever reads it.

use domain::{Digest, Timestamp};

use crate::StoreError;

/// Tokens that a store holds. The one revoked longest ago gives way to a new one; tokens in use never do.
pub const MAX_TOKENS: usize = 1_000;
/// Characters of each text of a token.
pub const MAX_TOKEN_TEXT_CHARS: usize = 256;
/// Scopes of one token.
pub const MAX_TOKEN_SCOPES: usize = 64;

/// One access token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its public name: `token-…`.
    pub id: String,
    /// The digest of the secret.
    pub sha256: Digest,
    /// What its maker calls it.
    pub name: String,
    /// What its bearer may do.
    pub role: String,
    /// What narrows that down.
    pub scopes: Vec<String>,
    /// The circle that its bearer sees.
    pub circle: Option<String>,
    /// The peer that its bearer is.
    pub peer_id: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    /// Refuses a token over its limits, before anything is queued.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.scopes.len() > MAX_TOKEN_SCOPES {
            return Err(StoreError::TooLarge { what: "scopes of a token", limit: MAX_TOKEN_SCOPES });
        }
        let texts = [&self.id, &self.name, &self.role];
        let optional = self.circle.iter().chain(&self.peer_id);
        let too_long = |text: &String| text.chars().count() > MAX_TOKEN_TEXT_CHARS;
        if texts.into_iter().chain(optional).chain(&self.scopes).any(too_long) {
            return Err(StoreError::TooLarge { what: "text of a token", limit: MAX_TOKEN_TEXT_CHARS });
        }
        Ok(())
    }

    /// The refusal when every token is in use.
    pub const fn too_many() -> StoreError {
        StoreError::TooLarge { what: "tokens in use", limit: MAX_TOKENS }
    }

    /// The scopes as JSON.
    pub fn encode_scopes(&self) -> String {
        serde_json::to_string(&self.scopes).expect("a list of texts is JSON")
    }

    /// The scopes from their JSON.
    pub fn decode_scopes(scopes: &str) -> Result<Vec<String>, serde_json::Error> {
        serde_json::from_str(scopes)
    }
}
