//! Somebody wants to know now: one question through the same claim, places and limits as every other.

use std::sync::Arc;

use domain::{OperationId, Record, RecordId, Refusal};

use super::Polls;
use super::question::{Question, Urgency};
use crate::EngineError;

impl Polls {
    /// Asks the service of one operation now, and answers with what the record says afterwards. Refused with `not_due` inside the
    /// host's shortest interval or while there is no place, with `claim_held` while it is being asked about already.
    pub async fn poll_now(self: &Arc<Self>, id: &OperationId) -> Result<Arc<Record>, EngineError> {
        let record_id = RecordId::Operation(id.clone());
        let store = self.engine.store();
        let loaded = store.load(&record_id).await?.ok_or(Refusal::UnknownRecord)?;
        let Record::Operation(operation) = &*loaded.record else {
            return Err(Refusal::WrongRecordKind.into());
        };
        if operation.ended.is_some() {
            return Ok(loaded.record);
        }
        let now = self.timer.now();
        let last = operation.last_polled_at.unwrap_or(operation.dispatched_at);
        let earliest = last.plus_seconds(u64::from(operation.policy.min_retry_after_seconds));
        if now < earliest {
            return Err(Refusal::NotDue { due_at: earliest }.into());
        }
        if self.free() == 0 {
            return Err(Refusal::NotDue { due_at: now.plus_seconds(1) }.into());
        }
        let taken = store.take(&record_id, self.take(now, 1)).await?;
        self.wakes.operation_due(taken.claim.lease_expires_at);
        self.places().taken += 1;
        // In a task of its own: whoever asks may go away, and the claim must not stay behind.
        let (tell, told) = tokio::sync::oneshot::channel();
        let polls = self.clone();
        self.spawn.spawn(Box::pin(async move {
            Question::new(&polls, taken, Urgency::Now).settle().await;
            polls.end();
            let _ = tell.send(());
        }));
        let _ = told.await;
        Ok(store.load(&record_id).await?.ok_or(Refusal::UnknownRecord)?.record)
    }
}
