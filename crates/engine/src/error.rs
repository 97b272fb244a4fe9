//! Why an order was not carried out.

use domain::Refusal;
use store::{KeptKey, StoreError};
use thiserror::Error;

/// One variant per thing that the caller does differently.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// The rules said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The idempotency key was used before: replay its answer, or say that the request differs.
    #[error("the idempotency key was used before")]
    KeyTaken(Box<KeptKey>),
    /// Others kept changing the record; come back later.
    #[error("the record kept changing; come back later")]
    Contended,
    /// More follows from the order than one commit may hold.
    #[error("the order has more consequences than one commit may hold")]
    TooManyConsequences,
    /// The store could not.
    #[error(transparent)]
    Store(StoreError),
}

impl EngineError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::KeyTaken(_) => "idempotency_key_taken",
            Self::Contended => "contended",
            Self::TooManyConsequences => "too_many_consequences",
            Self::Store(error) => error.code(),
        }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced => Self::Refused(Refusal::ClaimLost),
            StoreError::ClaimHeld => Self::Refused(Refusal::ClaimHeld),
            StoreError::UnknownRecord => Self::Refused(Refusal::UnknownRecord),
            StoreError::KeyTaken(kept) => Self::KeyTaken(kept),
            other @ (StoreError::Conflict
            | StoreError::TooLarge { .. }
            | StoreError::Busy
            | StoreError::Full
            | StoreError::OutcomeUnknown
            | StoreError::Unavailable(_)
            | StoreError::BodyDamaged(_)
            | StoreError::Broken(_)) => Self::Store(other),
        }
    }
}
