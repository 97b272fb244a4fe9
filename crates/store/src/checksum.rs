//! Checksums: each fact carries one over itself and its predecessor in the stream, so that a changed, missing or moved
//! fact is found. Bodies are named by their SHA-256.

use domain::{BodyName, BodyRef, Checksum, Digest, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::FactId;

/// A fact as it is written: what its checksum covers.
#[derive(Clone, Copy, Debug)]
pub struct FactText<'a> {
    /// The record's id.
    pub stream: &'a str,
    /// Its place in the stream.
    pub version: u64,
    /// The caller's name for it.
    pub id: FactId,
    /// Its kind and the version of that kind.
    pub kind: &'a str,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: &'a str,
    /// What caused it.
    pub causation_id: Option<&'a str>,
    /// What joins it to other work.
    pub correlation_id: Option<&'a str>,
    /// The rest, as JSON.
    pub payload: &'a str,
}

impl FactText<'_> {
    /// The checksum of this fact after a predecessor with that checksum.
    pub fn checksum(&self, predecessor: Checksum) -> Checksum {
        let mut hash = Sha256::new();
        hash.update(predecessor.0);
        hash.update(self.version.to_be_bytes());
        hash.update(self.id.0);
        hash.update(self.at.micros().to_be_bytes());
        for text in
            [Some(self.stream), Some(self.kind), Some(self.actor), self.causation_id, self.correlation_id]
                .into_iter()
                .chain([Some(self.payload)])
        {
            // The length in front keeps two neighbouring texts from trading bytes; absent is not empty.
            let length = text.map_or(u64::MAX, |text| text.len() as u64);
            hash.update(length.to_be_bytes());
            hash.update(text.unwrap_or_default());
        }
        let mut half = [0; 16];
        half.copy_from_slice(&hash.finalize()[..16]);
        Checksum(half)
    }
}

/// The SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// The reference of a body with these bytes.
pub fn body_ref(name: BodyName, bytes: &[u8]) -> BodyRef {
    BodyRef { name, sha256: sha256(bytes), size: bytes.len() as u64 }
}
