//! The key of all callbacks of one store, and the addresses that it signs: single-purpose, expiring, for one operation each.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{OperationId, Timestamp};

use super::mac::{hmac_sha256, same};

/// What the signature is for: one for another purpose is none.
const PURPOSE: &[u8] = b"longhaul callback 1";
/// Bytes of the time in a token.
const TIME_BYTES: usize = 8;

/// The secret that callback addresses are signed with.
#[derive(Clone)]
pub struct CallbackKey([u8; 32]);

impl CallbackKey {
    /// The key that was made for this store.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The address that a service may call back until then. `base` is how this server is reached from there, without a slash at its end.
    pub fn url_for(&self, base: &str, operation: &OperationId, expires_at: Timestamp) -> String {
        format!("{base}/callbacks/{operation}/{}", self.token(operation, expires_at))
    }

    /// Whether a token lets someone call back for this operation now.
    pub(crate) fn admits(&self, operation: &OperationId, token: &str, now: Timestamp) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(token) else { return false };
        let Some((time, mac)) = bytes.split_first_chunk::<TIME_BYTES>() else { return false };
        let expires_at = Timestamp::from_micros(i64::from_be_bytes(*time));
        same(mac, &self.mac(operation, expires_at)) && now < expires_at
    }

    fn token(&self, operation: &OperationId, expires_at: Timestamp) -> String {
        let mut bytes = expires_at.micros().to_be_bytes().to_vec();
        bytes.extend(self.mac(operation, expires_at));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn mac(&self, operation: &OperationId, expires_at: Timestamp) -> [u8; 32] {
        let time = expires_at.micros().to_be_bytes();
        let parts = [PURPOSE, b"\x1f", operation.as_str().as_bytes(), b"\x1f", &time];
        hmac_sha256(&self.0, &parts.concat())
    }
}

impl fmt::Debug for CallbackKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_for_one_operation_until_its_time_is_over_and_cannot_be_changed() {
        let key = CallbackKey::from_bytes([7; 32]);
        let (operation, end) = (OperationId::new("op-1"), Timestamp::from_seconds(100));
        let url = key.url_for("http://here", &operation, end);
        let token = url.strip_prefix("http://here/callbacks/op-1/").unwrap();
        let (before, after) = (Timestamp::from_seconds(99), end);
        assert!(key.admits(&operation, token, before));
        assert!(!key.admits(&operation, token, after));
        assert!(!key.admits(&OperationId::new("op-2"), token, before));
        assert!(!CallbackKey::from_bytes([8; 32]).admits(&operation, token, before));
        let longer = key.token(&operation, Timestamp::from_seconds(101));
        let mixed = format!("{}{}", &longer[..10], &token[10..]);
        for bad in ["", "x", "!!", &token[1..], &format!("{token}AA"), mixed.as_str()] {
            assert!(bad == token || !key.admits(&operation, bad, before), "{bad}");
        }
    }
}
