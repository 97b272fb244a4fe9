//! Checkpoints: now and then the whole state of an open record becomes a fact, and the facts before it go.
//!
//! A checkpoint is the first fact of its commit and holds the state from before it, with the checksum of the fact that it follows. So the facts
//! of the commit itself stay: whoever follows the ledger misses none of them, and a commit of unknown outcome is found under their ids.

use std::fmt;
use std::num::NonZeroU64;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Fact, Misfold, Record, RecordId};
use crate::kind::Removal;

/// How many facts of an open record are kept, unless a host says otherwise.
pub const CHECKPOINT_AFTER: NonZeroU64 = NonZeroU64::new(4_096).expect("that is not zero");

/// The state of a record as a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint<S = Record> {
    /// The format of views in which the state is written.
    pub view_format: i64,
    /// The checksum of the fact before it, which its own checksum covers.
    pub previous: Checksum,
    /// The state. Its id is that of its stream, and is not in it.
    pub state: S,
}

/// A checkpoint as it is written: like a variant of the facts of its kind.
#[derive(Deserialize)]
pub(super) struct Written<S> {
    pub(super) checkpointed: Checkpoint<S>,
}

/// The first half of a SHA-256: enough to find any change.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checksum(pub [u8; 16]);

/// Whether a fact under this name is a checkpoint.
pub fn is_checkpoint(name: &str) -> bool {
    name.ends_with(".checkpointed/1")
}

/// Whether a change that makes this of a record begins with a checkpoint: these facts bring its stream to a multiple of `after` or past it.
///
/// Versions count what has happened since the beginning, so that nothing has to be known of the last checkpoint.
pub fn is_due(record: &Record, version: u64, facts: &[Fact], after: NonZeroU64) -> bool {
    let is_plain = |fact: &Fact| fact.removal() == Removal::Nothing && !fact.moves_back();
    may_be_due(record, version, facts.len(), after) && !record.is_over() && facts.iter().all(is_plain)
}

/// Whether one may be due after so many facts at most: then the state from before them is of use.
pub fn may_be_due(record: &Record, version: u64, facts: usize, after: NonZeroU64) -> bool {
    let reached = version.saturating_add(facts as u64);
    record.kind().is_checkpointed() && version > 0 && reached / after > version / after
}

impl Checkpoint {
    /// The checkpoint of this state after the fact with that checksum.
    pub fn new(view_format: i64, previous: Checksum, state: Record) -> Self {
        Self { view_format, previous, state: state.without_id() }
    }

    /// The state that it holds is the record's, whether there is anything before it or not.
    pub(super) fn apply(&self, state: &mut Option<Record>, id: &RecordId) -> Result<(), Misfold> {
        let held = self.state.clone().with_id(id)?;
        if state.as_ref().is_some_and(|before| *before != held) {
            return Err(Misfold("the checkpoint is not the state that the facts before it lead to"));
        }
        *state = Some(held);
        Ok(())
    }
}

impl<S> Checkpoint<S> {
    /// The same with its state as that of any kind.
    pub(super) fn of_any_kind(self) -> Checkpoint
    where
        S: Into<Record>,
    {
        let Self { view_format, previous, state } = self;
        Checkpoint { view_format, previous, state: state.into() }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Checksum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checksum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(D::Error::custom("a checksum has 32 hex digits"));
        }
        u128::from_str_radix(&text, 16).map(|number| Self(number.to_be_bytes())).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
