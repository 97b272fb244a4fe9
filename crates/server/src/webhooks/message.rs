//! A message that came in: whether it is signed, what names it, and its body as a payload. Pure.

use std::fmt::Write as _;

use axum::http::HeaderMap;
use domain::Timestamp;
use engine::mac::{hmac_sha256, same};
use serde_json::json;

use super::endpoint::Endpoint;
use crate::door;

/// The longest word of a sender that names a message.
const MAX_DEDUPE_BYTES: usize = 256;

/// A message whose signature is right.
pub(super) struct Message<'h> {
    /// The signature as we would write it, whatever its sender's spelling.
    pub(super) signature: String,
    /// What its sender says is the same.
    pub(super) dedupe: Option<&'h str>,
}

impl<'h> Message<'h> {
    /// Looks at the signature; none if it is missing, wrong or too old.
    pub(super) fn read(
        endpoint: &Endpoint,
        headers: &'h HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Option<Self> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let signed = match &endpoint.time {
            Some(time) => {
                let sent_at = header(&time.header)?;
                let seconds: i64 = sent_at.parse().ok()?;
                if (now.micros() / 1_000_000).abs_diff(seconds) > time.max_age_seconds {
                    return None;
                }
                &[sent_at.as_bytes(), b".", body].concat()
            }
            None => body,
        };
        let code = hmac_sha256(&endpoint.key, signed);
        let sent = header(&endpoint.signature_header)?.trim();
        let sent = unhex(sent.strip_prefix("sha256=").unwrap_or(sent))?;
        if !same(&sent, &code) {
            return None;
        }
        let dedupe = endpoint.dedupe_header.as_deref().and_then(header);
        let dedupe = dedupe.filter(|value| (1..=MAX_DEDUPE_BYTES).contains(&value.len()));
        Some(Self { signature: hex(&code), dedupe })
    }
}

/// A body as the payload of an event: an object is itself, anything else is wrapped.
pub(super) fn payload_of(body: &[u8]) -> Vec<u8> {
    match door::admit(body) {
        Ok(text) if text.starts_with('{') => text.into_bytes(),
        Ok(value) => format!("{{\"body\":{value}}}").into_bytes(),
        // What is no JSON that can be kept is kept as text; no database keeps U+0000.
        Err(_) => {
            let text = String::from_utf8_lossy(body).replace('\0', "\u{fffd}");
            json!({ "body": text }).to_string().into_bytes()
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_the_payload_and_what_is_no_object_is_wrapped() {
        for (body, payload) in [
            (
                &b" { \"type\": \"x\", \"n\": 12345678901234567890 } "[..],
                r#"{"type":"x","n":12345678901234567890}"#,
            ),
            (b"[1, 2]", r#"{"body":[1,2]}"#),
            (b"a=1&b=2", r#"{"body":"a=1&b=2"}"#),
            (b"", r#"{"body":""}"#),
            (b"{\"a\":1,\"a\":2}", r#"{"body":"{\"a\":1,\"a\":2}"}"#),
            (b"x\0\xff", "{\"body\":\"x\u{fffd}\u{fffd}\"}"),
        ] {
            assert_eq!(String::from_utf8(payload_of(body)).unwrap(), payload);
        }
    }
}
