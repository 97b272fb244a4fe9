//! References to bodies: facts and views hold digest and size, the bytes lie beside them in the same commit.
//!
//! `decide` never reads a body.

use std::fmt;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Refusal;
use crate::limits::MAX_BODY_BYTES;
use crate::words::words;

words! {
    /// What a body is to its record.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum BodyName {
        /// The caller's request object.
        Request = "request",
        /// The prompt for an agent.
        Prompt = "prompt",
        /// The executor's input.
        Input = "input",
        /// Where the job came from, as its creator says.
        Provenance = "provenance",
        /// The question that an executor waits on.
        Question = "question",
        /// The answer to it.
        Answer = "answer",
        /// The result's data.
        Result = "result",
        /// The error object.
        Error = "error",
        /// The list of artifacts.
        Artifacts = "artifacts",
        /// The handle on work outside: private.
        Handle = "handle",
        /// What an event says.
        Payload = "payload",
        /// What the steps of a run do.
        Plan = "plan",
        /// What a step of a run inherits from the steps before it.
        Context = "context",
    }
}

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Reads 64 hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// Gives the 64 hex digits to someone, without a string of their own: every record names several digests.
    fn with_hex<T>(&self, take: impl FnOnce(&str) -> T) -> T {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        take(std::str::from_utf8(&text).expect("hex digits are ASCII"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_hex(|hex| f.write_str(hex))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_hex(|hex| serializer.serialize_str(hex))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(HexDigits)
    }
}

struct HexDigits;

impl Visitor<'_> for HexDigits {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest of 64 hex digits")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Digest, E> {
        Digest::from_hex(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Which body, how long, and the digest of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyRef {
    /// What the body is.
    pub name: BodyName,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// Its length in bytes.
    pub size: u64,
}

impl BodyRef {
    /// Refuses a body that is something else, or over the limit.
    pub fn check_named(&self, name: BodyName) -> Result<(), Refusal> {
        if self.name != name {
            return Err(Refusal::WrongBody { expected: name.as_str(), given: self.name.as_str() });
        }
        self.check()
    }

    /// Refuses a body over the limit.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.size > MAX_BODY_BYTES as u64 {
            return Err(Refusal::TooLarge { what: self.name.as_str(), limit: MAX_BODY_BYTES });
        }
        Ok(())
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
