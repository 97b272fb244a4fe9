//! Standard Webhooks: whether a message was signed by who shares the secret, and recently. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Timestamp;
use engine::SignedWebhook;

use crate::mac::{hmac_sha256, same};

/// How far the time of a message may be from ours.
const TOLERANCE_SECONDS: i64 = 300;
/// Signatures of one message that are looked at.
const MAX_SIGNATURES: usize = 8;

/// The key that a secret of Standard Webhooks stands for: `whsec_` and base64.
pub fn webhook_key(secret: &str) -> Option<Vec<u8>> {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok()?;
    (!key.is_empty()).then_some(key)
}

/// Whether one of its signatures is of this secret, `whsec_` and base64, and its time is not far from now.
pub fn verify_webhook(secret: &str, webhook: SignedWebhook<'_>, now: Timestamp) -> bool {
    let (Some(key), Ok(sent_at)) = (webhook_key(secret), webhook.timestamp.parse::<i64>()) else {
        return false;
    };
    if (now.micros() / 1_000_000).abs_diff(sent_at) > TOLERANCE_SECONDS.unsigned_abs() {
        return false;
    }
    let head = format!("{}.{}.", webhook.id, webhook.timestamp);
    let code = hmac_sha256(&key, &[head.as_bytes(), webhook.body].concat());
    let signatures = webhook.signatures.split_ascii_whitespace().take(MAX_SIGNATURES);
    let ours = signatures.filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok());
    ours.fold(false, |found, signature| found | same(&signature, &code))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    const NOW: Timestamp = Timestamp::from_seconds(1_614_265_330);

    fn webhook(signatures: &str) -> SignedWebhook<'_> {
        SignedWebhook {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            timestamp: "1614265330",
            signatures,
            body: br#"{"test": 2432232314}"#,
        }
    }

    #[test]
    fn published_message_is_verified_and_anything_else_is_not() {
        assert!(verify_webhook(SECRET, webhook(SIGNATURE), NOW));
        let rotated = format!("v1,AAAA v1a,x {SIGNATURE}");
        assert!(verify_webhook(SECRET, webhook(&rotated), NOW));
        assert!(!verify_webhook("whsec_AAAA", webhook(SIGNATURE), NOW));
        assert!(!verify_webhook("whsec_", webhook(SIGNATURE), NOW));
        for bad in ["", "v1,", "v2,g0hM", &SIGNATURE.replace("v1,", "v1a,")] {
            assert!(!verify_webhook(SECRET, webhook(bad), NOW), "{bad}");
        }
        let changed = SignedWebhook { body: br#"{"test": 2432232315}"#, ..webhook(SIGNATURE) };
        assert!(!verify_webhook(SECRET, changed, NOW));
        assert!(verify_webhook(SECRET, webhook(SIGNATURE), NOW.plus_seconds(300)));
        assert!(!verify_webhook(SECRET, webhook(SIGNATURE), NOW.plus_seconds(301)));
        assert!(!verify_webhook(SECRET, webhook(SIGNATURE), Timestamp::from_seconds(1_614_265_000)));
    }
}
