//! The key of all callbacks and attempt tokens of one store, and the callback addresses that it signs: single-purpose, expiring, for one operation of one executor
//! each.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{OperationId, Timestamp};
use executors::mac::{hmac_sha256, same};

/// What the signature is for: one for another purpose is none.
const PURPOSE: &[u8] = b"longhaul callback 1";
/// Bytes of the time in a token.
const TIME_BYTES: usize = 8;
/// Bytes of the signature in a token.
const MAC_BYTES: usize = 32;
/// Stands between the parts of a token; in no name of an executor.
const BETWEEN: char = '\x1f';

/// The secret that callback addresses are signed with.
#[derive(Clone)]
pub struct CallbackKey([u8; 32]);

/// Whose service may call back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackTarget {
    /// The name of the executor.
    pub executor: String,
    /// The circle whose own it is.
    pub circle: Option<String>,
}

/// What an address says that was signed with the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallbackAddress {
    pub(crate) target: CallbackTarget,
    pub(crate) expires_at: Timestamp,
}

impl CallbackKey {
    /// The key that was made for this store.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The address that a service may call back until then. `base` is how this server is reached from there, without a slash at its end.
    pub fn url_for(
        &self,
        base: &str,
        target: &CallbackTarget,
        operation: &OperationId,
        expires_at: Timestamp,
    ) -> String {
        format!("{base}/callbacks/{operation}/{}", self.token(&target.to_string(), operation, expires_at))
    }

    /// Who may call back for this operation with a token now; nobody if it is not one of ours, or its time is over.
    pub(crate) fn read(
        &self,
        operation: &OperationId,
        token: &str,
        now: Timestamp,
    ) -> Option<CallbackAddress> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (time, rest) = bytes.split_first_chunk::<TIME_BYTES>()?;
        let (mac, target) = rest.split_first_chunk::<MAC_BYTES>()?;
        let expires_at = Timestamp::from_micros(i64::from_be_bytes(*time));
        let target = std::str::from_utf8(target).ok()?;
        if !same(mac, &self.mac(target, operation, expires_at)) || expires_at <= now {
            return None;
        }
        let (executor, circle) = match target.split_once(BETWEEN) {
            Some((executor, circle)) => (executor, Some(circle.to_owned())),
            None => (target, None),
        };
        Some(CallbackAddress { target: CallbackTarget { executor: executor.to_owned(), circle }, expires_at })
    }

    fn token(&self, target: &str, operation: &OperationId, expires_at: Timestamp) -> String {
        let mut bytes = expires_at.micros().to_be_bytes().to_vec();
        bytes.extend(self.mac(target, operation, expires_at));
        bytes.extend(target.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn mac(&self, target: &str, operation: &OperationId, expires_at: Timestamp) -> [u8; MAC_BYTES] {
        let time = expires_at.micros().to_be_bytes();
        let parts = [PURPOSE, b"\x1f", operation.as_str().as_bytes(), b"\x1f", &time, target.as_bytes()];
        self.mac_of(&parts.concat())
    }

    /// The signature of bytes that begin with their purpose.
    pub(crate) fn mac_of(&self, bytes: &[u8]) -> [u8; MAC_BYTES] {
        hmac_sha256(&self.0, bytes)
    }
}

impl CallbackTarget {
    /// The executor of this name for everybody.
    pub fn common(executor: &str) -> Self {
        Self { executor: executor.to_owned(), circle: None }
    }
}

impl fmt::Display for CallbackTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.executor)?;
        self.circle.as_ref().map_or(Ok(()), |circle| write!(f, "{BETWEEN}{circle}"))
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
    fn token_is_for_one_operation_of_one_executor_until_its_time_is_over_and_cannot_be_changed() {
        let key = CallbackKey::from_bytes([7; 32]);
        let (operation, end) = (OperationId::new("op-1"), Timestamp::from_seconds(100));
        let target = CallbackTarget { executor: "press".to_owned(), circle: Some("acme".to_owned()) };
        let url = key.url_for("http://here", &target, &operation, end);
        let token = url.strip_prefix("http://here/callbacks/op-1/").unwrap();
        let (before, after) = (Timestamp::from_seconds(99), end);
        let read = key.read(&operation, token, before).unwrap();
        assert_eq!((read.target, read.expires_at), (target, end));
        assert_eq!(key.read(&operation, token, after), None);
        assert_eq!(key.read(&OperationId::new("op-2"), token, before), None);
        assert_eq!(CallbackKey::from_bytes([8; 32]).read(&operation, token, before), None);
        let common = key.token("press", &operation, end);
        assert_eq!(key.read(&operation, &common, before).unwrap().target, CallbackTarget::common("press"));
        let longer = key.token("press", &operation, Timestamp::from_seconds(101));
        let mixed = format!("{}{}", &longer[..10], &common[10..]);
        let other = format!("{}{}", &common[..common.len() - 4], "AAAA");
        for bad in ["", "x", "!!", &common[1..], &format!("{common}AA"), &mixed, &other] {
            assert!(bad == common || key.read(&operation, bad, before).is_none(), "{bad}");
        }
    }
}
