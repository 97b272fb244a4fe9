//! Idempotency records: one answer per (principal, route, key), written with the commit that it answers.
//!
//! A key is kept at least to the later of `keep_until` and the retirement of its record. One that outlives its record is
//! forgotten by a later commit that writes keys.

use std::sync::Arc;

use domain::{Digest, RecordId, Timestamp};

/// Which request this is, as its sender names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey {
    /// Who sent it.
    pub principal: String,
    /// What it asked.
    pub route: String,
    /// The sender's name for it.
    pub key: String,
}

/// What was asked and answered under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptKey {
    /// The key.
    pub key: IdempotencyKey,
    /// The digest of the request: the same key with another one is a conflict.
    pub request_sha256: Digest,
    /// The record that it led to.
    pub record: RecordId,
    /// The answer, replayed byte for byte.
    pub answer: Arc<[u8]>,
    /// Not forgotten before, nor before its record is retired.
    pub keep_until: Timestamp,
}
