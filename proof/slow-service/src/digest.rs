//! Digests of requests, as text.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// `sha256:` and the hex digits, of bytes.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

/// Of a JSON value; the order of its keys does not matter, for the values here are kept sorted.
pub fn sha256_json(value: &Value) -> String {
    sha256(value.to_string().as_bytes())
}

/// An id in the alphabet of URLs, from parts.
pub fn id_of(parts: &[&str]) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(parts.join("\x1f").as_bytes()))
}

/// The first sixteen hex digits of a digest over parts.
pub fn short_id_of(parts: &[&str]) -> String {
    hex(&Sha256::digest(parts.join("\x1f").as_bytes())[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes everything");
        text
    })
}
