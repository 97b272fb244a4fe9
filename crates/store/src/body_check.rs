//! Stored bodies checked against what their records say of them: every read of a body goes through here, in every store on disk.
//!
//! What does not fit is not given out. It is counted for the metrics; whoever reads the row writes the log line.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::{BodyRef, Digest, RecordId};

use crate::{StoreError, sha256};

/// Reads of this process that met a damaged body.
static DAMAGED_READS: AtomicU64 = AtomicU64::new(0);

/// A body that is not what its record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyDamage {
    /// The record.
    pub record: RecordId,
    /// The body as the record has it.
    pub expected: BodyRef,
    /// The digest and the size of what is stored; none if no such row is there.
    pub found: Option<(Digest, u64)>,
}

impl fmt::Display for BodyDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, expected, found } = self;
        let (name, sha256, size) = (expected.name.as_str(), expected.sha256, expected.size);
        write!(f, "the {name} of {record} has the digest {sha256} and {size} bytes by its record, ")?;
        match found {
            Some((found, bytes)) => write!(f, "and {found} and {bytes} bytes as stored"),
            None => f.write_str("and is not stored under it"),
        }
    }
}

/// The bytes, if they are those that the record means.
pub fn check_body(record: &RecordId, expected: BodyRef, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let (found, size) = (sha256(&bytes), bytes.len() as u64);
    if (found, size) == (expected.sha256, expected.size) {
        return Ok(bytes);
    }
    Err(BodyDamage { record: record.clone(), expected, found: Some((found, size)) }.count())
}

impl BodyDamage {
    /// A body that its record names and that is not stored.
    pub fn missing(record: &RecordId, expected: BodyRef) -> StoreError {
        Self { record: record.clone(), expected, found: None }.count()
    }

    fn count(self) -> StoreError {
        DAMAGED_READS.fetch_add(1, Ordering::Relaxed);
        StoreError::BodyDamaged(Box::new(self))
    }
}

/// How many reads of this process have met a damaged body.
pub fn damaged_body_reads() -> u64 {
    DAMAGED_READS.load(Ordering::Relaxed)
}
