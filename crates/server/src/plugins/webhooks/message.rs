//! A message that came in: whether it is signed, what names it, and its body as a payload. Pure.

use std::fmt::Write as _;

use api::ProblemCode;
use domain::Timestamp;
use executors::mac::{hmac_sha256, same};
use serde_json::json;

use super::endpoint::Endpoint;
use crate::Result;
use crate::http::json_body;
use crate::request_context::Headers;

/// The longest word of a sender that names a message.
const MAX_DEDUPE_BYTES: usize = 256;

/// Why a message is not let in, for the operator. Its sender is not told: that would help whoever tries.
const NO_TIME: &str = "the header with its time is missing";
const UNREADABLE_TIME: &str = "its time is no number of seconds";
const OLD: &str = "its time is too far from ours; is it a replay, or is a clock wrong?";
const NO_SIGNATURE: &str = "the header with its signature is missing";
const UNREADABLE_SIGNATURE: &str = "its signature is not 64 hexadecimal digits";
const WRONG_SIGNATURE: &str = "its signature is wrong; is the secret the sender's?";

/// A message whose signature is right.
pub(super) struct Message<'h> {
    /// The signature as we would write it, whatever its sender's spelling.
    pub(super) signature: String,
    /// What its sender says is the same.
    pub(super) dedupe: Option<&'h str>,
}

impl<'h> Message<'h> {
    /// Looks at the signature and at the time that it holds.
    pub(super) fn read(
        endpoint: &Endpoint,
        headers: &'h Headers,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Self, &'static str> {
        let header = |name: &str| headers.get(name);
        let signed = match &endpoint.time {
            Some(time) => {
                let sent_at = header(&time.header).ok_or(NO_TIME)?;
                let seconds: i64 = sent_at.parse().map_err(|_| UNREADABLE_TIME)?;
                if (now.micros() / 1_000_000).abs_diff(seconds) > time.max_age_seconds {
                    return Err(OLD);
                }
                &[sent_at.as_bytes(), b".", body].concat()
            }
            None => body,
        };
        let code = hmac_sha256(&endpoint.key, signed);
        let sent = header(&endpoint.signature_header).ok_or(NO_SIGNATURE)?.trim();
        let sent = unhex(sent.strip_prefix("sha256=").unwrap_or(sent)).ok_or(UNREADABLE_SIGNATURE)?;
        if !same(&sent, &code) {
            return Err(WRONG_SIGNATURE);
        }
        let dedupe = endpoint.dedupe_header.as_deref().and_then(header);
        let dedupe = dedupe.filter(|value| (1..=MAX_DEDUPE_BYTES).contains(&value.len()));
        Ok(Self { signature: hex(&code), dedupe })
    }
}

/// A body as the payload of an event: an object is itself, anything else is wrapped. JSON that is nested too deep is refused: as a
/// text nobody who waits for its fields would find them.
pub(super) fn payload_of(body: &[u8]) -> Result<Vec<u8>> {
    Ok(match json_body::admit(body) {
        Ok(text) if text.starts_with('{') => text.into_bytes(),
        Ok(value) => format!("{{\"body\":{value}}}").into_bytes(),
        Err(problem) if problem.code == ProblemCode::TooDeep.as_str() => return Err(problem),
        // What is no JSON that can be kept is kept as text; no database keeps U+0000.
        Err(_) => {
            let text = String::from_utf8_lossy(body).replace('\0', "\u{fffd}");
            json!({ "body": text }).to_string().into_bytes()
        }
    })
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
            assert_eq!(String::from_utf8(payload_of(body).unwrap()).unwrap(), payload);
        }
    }

    #[test]
    fn each_way_of_not_being_signed_is_told_apart_for_the_operator() {
        let time = super::super::SignedTime { header: "x-time".to_owned(), max_age_seconds: 300 };
        let endpoint = Endpoint {
            name: "mill".to_owned(),
            path: "mill".to_owned(),
            event: "grain".to_owned(),
            key: b"key".to_vec(),
            signature_header: "x-signature".to_owned(),
            time: Some(time),
            max_body_bytes: Endpoint::MAX_BODY_BYTES,
            dedupe_header: None,
            circle: None,
        };
        let now = Timestamp::from_micros(1_000_000_000);
        let signed = hex(&hmac_sha256(&endpoint.key, b"1000.body"));
        for (headers, unsigned) in [
            (&[][..], NO_TIME),
            (&[("x-time", "soon")], UNREADABLE_TIME),
            (&[("x-time", "1")], OLD),
            (&[("x-time", "1000")], NO_SIGNATURE),
            (&[("x-time", "1000"), ("x-signature", "sha256=zz")], UNREADABLE_SIGNATURE),
            (&[("x-time", "999"), ("x-signature", &signed)], WRONG_SIGNATURE),
        ] {
            let headers = headers.iter().copied().collect();
            let read = Message::read(&endpoint, &headers, b"body", now);
            assert_eq!(read.err(), Some(unsigned));
        }
    }
}
