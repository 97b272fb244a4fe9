//! Intents: what is written down before work is given to a service, so that a crash around it is never a blind second start.

use serde::{Deserialize, Serialize};

use crate::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, check_optional, check_text};
use crate::{Digest, OperationId, RecordId, Refusal};

/// A request that is about to be made to a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The operation that the work becomes; also the key under which the service is asked.
    pub operation_id: OperationId,
    /// The kind of that operation.
    pub kind: String,
    /// The specialist that asks.
    pub specialist: String,
    /// The digest of the request; the request itself may hold secrets.
    pub request: Digest,
    /// Whether it may be made again when nobody knows what came of it.
    pub resubmit: Resubmit,
    /// Why the work could not be stopped there, if it could not. Facts of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_cancelable: Option<String>,
}

/// Whether a request may be made again when nobody knows what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resubmit {
    /// Under the same key: the service takes it for the same work, or can be asked whether it has it.
    SameKey,
    /// Never: it would be a second start.
    Never,
}

impl Intent {
    /// Refuses what is over a limit.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        RecordId::Operation(self.operation_id.clone())
            .check()
            .and_then(|()| check_text("operation kind", &self.kind, MAX_LABEL_BYTES))
            .and_then(|()| check_text("specialist", &self.specialist, MAX_LABEL_BYTES))
            .and_then(|()| {
                check_optional("cancel/unavailable-reason", self.not_cancelable.as_deref(), MAX_NOTE_BYTES)
            })
    }
}
