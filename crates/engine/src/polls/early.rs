//! Callbacks that come before their operation: a service may be faster than the commit that writes its handle down, or that commit comes
//! only after a restart. They are kept in the store, one per operation, as long as the address is good that they came to.
//!
//! What is kept is read when the operation is written down, and once more at its first poll: a crash in between loses nothing.

use std::sync::Arc;

use domain::{OperationId, RecordId, Timestamp};
use store::{IdempotencyKey, KeptKey, StoreError, sha256};

use crate::Engine;

/// No token has this name: what callers send under their keys never meets these.
const PRINCIPAL: &str = "service";
const ROUTE: &str = "callback before its operation";

impl Engine {
    /// Keeps a callback until its operation is there. The first one stays.
    pub async fn keep_early_callback(
        &self,
        operation: &OperationId,
        body: &[u8],
        keep_until: Timestamp,
    ) -> Result<(), StoreError> {
        let kept = KeptKey {
            key: key_of(operation),
            request_sha256: sha256(body),
            record: RecordId::Operation(operation.clone()),
            answer: Arc::from(body),
            keep_until,
        };
        match self.commit_keys(Arc::from("service:callback"), vec![kept]).await {
            Ok(()) | Err(StoreError::KeyTaken(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What came before the operation was there, if anything did.
    pub(crate) async fn early_callback(
        &self,
        operation: &OperationId,
    ) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.store().key(&key_of(operation)).await?.map(|kept| kept.answer))
    }
}

fn key_of(operation: &OperationId) -> IdempotencyKey {
    IdempotencyKey {
        principal: PRINCIPAL.to_owned(),
        route: ROUTE.to_owned(),
        key: operation.as_str().to_owned(),
    }
}
