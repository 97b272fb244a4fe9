//! Somebody wants to know now: one question through the same claim, places and limits as every other. A caller keeps to the shortest
//! interval; a service that calls back is exempt from it once.

use std::sync::Arc;

use domain::operation::Operation;
use domain::{OperationId, Record, RecordId, Refusal, Timestamp};

use super::Polls;
use super::question::{Question, Urgency};
use crate::EngineError;

/// Operations of which it is known that their services have called; more empty the list.
const MAX_CALLED: usize = 10_000;

impl Polls {
    /// Asks the service of one operation now, and answers with what the record says afterwards. Refused with `not_due` inside the
    /// host's shortest interval or while there is no place, with `claim_held` while it is being asked about already.
    pub async fn poll_now(self: &Arc<Self>, id: &OperationId) -> Result<Arc<Record>, EngineError> {
        let record_id = RecordId::Operation(id.clone());
        let record = self.engine.store().load(&record_id).await?.ok_or(Refusal::UnknownRecord)?.record;
        let operation = operation_of(&record)?;
        if operation.ended.is_some() {
            return Ok(record);
        }
        self.keep_to_the_interval(operation)?;
        self.ask_now(&record_id, None).await?;
        Ok(self.engine.store().load(&record_id).await?.ok_or(Refusal::UnknownRecord)?.record)
    }

    /// The service has called back, with this. After the end it is evidence at most.
    pub async fn called_back(self: &Arc<Self>, id: &OperationId, body: Arc<[u8]>) -> Result<(), EngineError> {
        let record_id = RecordId::Operation(id.clone());
        let record = self.engine.store().load(&record_id).await?.ok_or(Refusal::UnknownRecord)?.record;
        let operation = operation_of(&record)?;
        let says_it_all = self
            .executors
            .get(&operation.link.kind)
            .is_some_and(|executor| executor.specialist.read_callback(&body).is_some());
        if operation.ended.is_some() && !says_it_all {
            return Ok(());
        }
        if !self.is_first_call(id) {
            self.keep_to_the_interval(operation)?;
        }
        self.ask_now(&record_id, Some(body)).await
    }

    fn is_first_call(&self, id: &OperationId) -> bool {
        let mut called = self.called.lock().expect("no holder of the lock panics");
        if called.len() >= MAX_CALLED {
            called.clear();
        }
        called.insert(id.clone())
    }

    fn keep_to_the_interval(&self, operation: &Operation) -> Result<Timestamp, Refusal> {
        let now = self.timer.now();
        let last = operation.last_polled_at.unwrap_or(operation.dispatched_at);
        let earliest = last.plus_seconds(u64::from(operation.policy.min_retry_after_seconds));
        if now < earliest { Err(Refusal::NotDue { due_at: earliest }) } else { Ok(now) }
    }

    async fn ask_now(
        self: &Arc<Self>,
        record_id: &RecordId,
        callback: Option<Arc<[u8]>>,
    ) -> Result<(), EngineError> {
        let now = self.timer.now();
        if self.free() == 0 {
            return Err(Refusal::NotDue { due_at: now.plus_seconds(1) }.into());
        }
        let taken = self.engine.store().take(record_id, self.take(now, 1)).await?;
        self.wakes.operation_due(taken.claim.lease_expires_at);
        self.places().taken += 1;
        // In a task of its own: whoever asks may go away, and the claim must not stay behind.
        let (tell, told) = tokio::sync::oneshot::channel();
        let polls = self.clone();
        self.spawn.spawn(Box::pin(async move {
            Question::new(&polls, taken, Urgency::Now).hearing(callback).settle().await;
            polls.end();
            let _ = tell.send(());
        }));
        let _ = told.await;
        Ok(())
    }
}

fn operation_of(record: &Record) -> Result<&Operation, Refusal> {
    match record {
        Record::Operation(operation) => Ok(operation),
        Record::Job(_) => Err(Refusal::WrongRecordKind),
    }
}
