//! What a store may answer instead of "done": one variant per thing that the caller does differently.

use domain::Refusal;
use thiserror::Error;

use crate::{BodyDamage, KeptKey};

/// A store's failure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Another commit was first; nothing was written. Load and decide again.
    #[error("another commit changed the record first")]
    Conflict,
    /// The claim went to another owner; nothing was written. Stop.
    #[error("the claim went to another owner; stop and write nothing")]
    Fenced,
    /// The claim is held; go on with the next record.
    #[error("another owner holds the claim")]
    ClaimHeld,
    /// There is no such record.
    #[error("there is no such record")]
    UnknownRecord,
    /// The idempotency key was used before; nothing was written.
    #[error("the idempotency key was used before")]
    KeyTaken(Box<KeptKey>),
    /// A part of the commit is over its limit; nothing was written.
    #[error("{what} is over its limit of {limit}")]
    TooLarge {
        /// Which part.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Too many commits wait; nothing was written. Come back later.
    #[error("too many commits wait; come back later")]
    Busy,
    /// The disk is full; nothing was written. Reads go on, and writing resumes when space returns.
    #[error("the disk is full; free space and repeat")]
    Full,
    /// It may have happened. Repeat the same commit: it is safe.
    #[error("the outcome of the commit is unknown; repeat the same commit")]
    OutcomeUnknown,
    /// The store has stopped, or cannot be reached.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A body is not what its record says, or is not there. None of its bytes are given out; trying again does not help.
    #[error("a stored body is damaged: {0}; restore a backup")]
    BodyDamaged(Box<BodyDamage>),
    /// What is stored cannot be understood.
    #[error("the store is broken: {0}")]
    Broken(String),
}

impl StoreError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Fenced => "claim_lost",
            Self::ClaimHeld => "claim_held",
            Self::UnknownRecord => "unknown_record",
            Self::KeyTaken(_) => "idempotency_key_taken",
            Self::TooLarge { .. } => "too_large",
            Self::Busy => "store_busy",
            Self::Full => "store_full",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Unavailable(_) => "store_unavailable",
            Self::BodyDamaged(_) => "body_damaged",
            Self::Broken(_) => "store_broken",
        }
    }
}

/// What is over its limit in what is kept beside the records.
pub(crate) fn too_large(refusal: &Refusal) -> StoreError {
    if let Refusal::TooLarge { what, limit } = *refusal {
        return StoreError::TooLarge { what, limit };
    }
    StoreError::Broken(refusal.to_string())
}

impl From<Refusal> for StoreError {
    /// The refusals of the claim rules.
    fn from(refusal: Refusal) -> Self {
        if refusal == Refusal::ClaimHeld { Self::ClaimHeld } else { Self::Fenced }
    }
}
