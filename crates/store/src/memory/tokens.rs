//! The access tokens of the model.

use domain::{Digest, Timestamp};

use super::Tables;
use crate::tokens::MAX_TOKENS;
use crate::{StoreError, Token};

impl Tables {
    pub(super) fn keep_token(&mut self, token: Token) -> Result<(), StoreError> {
        if self.tokens.iter().any(|kept| kept.id == token.id || kept.sha256 == token.sha256) {
            return Err(StoreError::Conflict);
        }
        if self.tokens.len() >= MAX_TOKENS {
            let revoked = self.tokens.iter().filter(|kept| kept.revoked_at.is_some());
            let oldest = revoked.min_by(|a, b| (a.revoked_at, &a.id).cmp(&(b.revoked_at, &b.id)));
            let oldest = oldest.ok_or_else(Token::too_many)?.id.clone();
            self.tokens.retain(|kept| kept.id != oldest);
        }
        self.tokens.push(token);
        self.tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(())
    }

    pub(super) fn token(&self, sha256: &Digest) -> Option<Token> {
        self.tokens.iter().find(|kept| kept.sha256 == *sha256).cloned()
    }

    pub(super) fn revoke_token(&mut self, id: &str, at: Timestamp) -> bool {
        let Some(token) = self.tokens.iter_mut().find(|kept| kept.id == id) else { return false };
        token.revoked_at.get_or_insert(at);
        true
    }
}
