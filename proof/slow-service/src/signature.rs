//! Signatures of callbacks, as Standard Webhooks has them: an HMAC over the id, the time and the body as it goes out.

use std::fmt::{self, Debug, Formatter};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use thiserror::Error;

const BLOCK_BYTES: usize = 64;

/// A secret that the service shares with whoever it calls back.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret {
    bytes: Vec<u8>,
}

/// A text that is no secret.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a webhook secret is whsec_ and base64")]
pub struct WrongSecret;

impl WebhookSecret {
    /// From the usual form, `whsec_` and base64.
    pub fn parse(text: &str) -> Result<Self, WrongSecret> {
        let encoded = text.strip_prefix("whsec_").ok_or(WrongSecret)?;
        Ok(Self { bytes: STANDARD.decode(encoded).map_err(|_| WrongSecret)? })
    }

    /// From bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec() }
    }

    /// The three headers of a signed callback.
    pub(crate) fn headers(&self, id: &str, seconds: i64, body: &str) -> Vec<(&'static str, String)> {
        let signature = self.hmac(format!("{id}.{seconds}.{body}").as_bytes());
        vec![
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", format!("v1,{}", STANDARD.encode(signature))),
        ]
    }

    fn hmac(&self, message: &[u8]) -> Vec<u8> {
        let mut key = [0; BLOCK_BYTES];
        if self.bytes.len() > BLOCK_BYTES {
            key[..32].copy_from_slice(&Sha256::digest(&self.bytes));
        } else {
            key[..self.bytes.len()].copy_from_slice(&self.bytes);
        }
        let inner = Sha256::new().chain_update(key.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
        Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().to_vec()
    }
}

impl Debug for WebhookSecret {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("WebhookSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_is_signed_as_the_standard_shows_it() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let headers =
            secret.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned();
        assert_eq!(headers[2], ("webhook-signature", signature));
    }

    #[test]
    fn a_key_longer_than_a_block_is_hashed_first() {
        // The sixth case of RFC 4231.
        let secret = WebhookSecret::of_bytes(&[0xaa; 131]);
        let tag = secret.hmac(b"Test Using Larger Than Block-Size Key - Hash Key First");
        assert_eq!(tag[..4], [0x60, 0xe4, 0x31, 0x59]);
    }

    #[test]
    fn what_is_no_secret_is_refused_and_a_secret_is_never_shown() {
        assert_eq!(WebhookSecret::parse("MfKQ9r8G"), Err(WrongSecret));
        assert_eq!(WebhookSecret::parse("whsec_!"), Err(WrongSecret));
        assert_eq!(format!("{:?}", WebhookSecret::of_bytes(b"abc")), "WebhookSecret");
    }
}
