//! Facts as they lie in the ledger.

use std::fmt;
use std::sync::Arc;

use domain::{Fact, RecordId, Timestamp};

use crate::Checksum;

/// The caller's name for a fact: what makes a commit safe to repeat.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId(pub [u8; 16]);

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFact {
    /// Its place in the whole ledger: rises in commit order, may have gaps.
    pub position: u64,
    /// The record that it is about.
    pub stream: RecordId,
    /// Its place in the record's stream: from 1, without gaps.
    pub version: u64,
    /// The caller's name for it.
    pub id: FactId,
    /// When it was decided.
    pub at: Timestamp,
    /// Who did it.
    pub actor: Arc<str>,
    /// What caused it.
    pub causation_id: Option<Arc<str>>,
    /// What joins it to other work.
    pub correlation_id: Option<Arc<str>>,
    /// What happened.
    pub fact: Fact,
    /// Over itself and its predecessor in the stream; zero in the memory store.
    pub checksum: Checksum,
}
