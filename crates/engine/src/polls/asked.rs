//! Somebody wants to know now: one question through the same claim, places and limits as every other. A caller keeps to the shortest
//! interval; a service that calls back is exempt from it once, and is waited for otherwise: news is never left until the next due time.

use std::sync::Arc;

use domain::operation::{Operation, OperationStatus};
use domain::{OperationId, Record, RecordId, Refusal, Timestamp};
use tokio::sync::watch;

use super::Polls;
use super::question::{Question, Settled, Urgency};
use crate::locked::Locked;
use crate::{EngineError, Polled};

/// Operations of which it is known that their services have called; more empty the list.
const MAX_CALLED: usize = 10_000;
/// How often a callback tries to have its service asked before the next poll has to do.
const MAX_TRIES: usize = 16;
/// How long a callback waits for a question that another node asks.
const ASKED_ELSEWHERE_SECONDS: u64 = 1;

impl Polls {
    /// Asks the service of one operation now, and answers with what the record says afterwards. Refused with `not_due` inside the
    /// host's shortest interval or while there is no place, with `claim_held` while it is being asked about already.
    pub async fn poll_now(self: &Arc<Self>, id: &OperationId) -> Result<Arc<Record>, EngineError> {
        let record = self.record_of(id).await?;
        let operation = operation_of(&record)?;
        if operation.ended.is_some() {
            return Ok(record);
        }
        let due_at = earliest(operation);
        if self.timer.now() < due_at {
            return Err(Refusal::NotDue { due_at }.into());
        }
        match self.ask_now(id, None).await? {
            Settled::Done => self.record_of(id).await,
            Settled::NoPlaceBefore(due_at) => Err(Refusal::NotDue { due_at }.into()),
        }
    }

    /// The service has called back, with this. After the end it is evidence at most. Answers when the service was asked since then.
    pub async fn called_back(self: &Arc<Self>, id: &OperationId, body: Arc<[u8]>) -> Result<(), EngineError> {
        let mut waits = !self.is_first_call(id);
        let asked_before = self.places.locked().begun;
        for _ in 0..MAX_TRIES {
            let record = self.record_of(id).await?;
            let operation = operation_of(&record)?;
            let said = self.executor_of(operation).and_then(|one| one.specialist.read_callback(&body));
            let asked_since = self.called.locked().get(id).is_some_and(|newest| *newest > asked_before);
            if said.is_none() && (operation.ended.is_some() || asked_since) {
                return Ok(());
            }
            let due_at = earliest(operation);
            if waits && !is_an_end(said.as_ref()) && self.timer.now() < due_at {
                self.wait_until(due_at, None).await?;
                continue;
            }
            match self.ask_now(id, Some(body.clone())).await {
                Ok(Settled::Done) => return Ok(()),
                Ok(Settled::NoPlaceBefore(at)) => self.wait_until(at, None).await?,
                // What it is asked now was asked before the news: the answer may be older.
                Err(EngineError::Refused(Refusal::ClaimHeld)) => {
                    let at = self.timer.now().plus_seconds(ASKED_ELSEWHERE_SECONDS);
                    self.wait_until(at, self.ends_of(id)).await?;
                    waits = false;
                }
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Contended)
    }

    /// Hears what came before the operation was there, if anything did.
    pub(crate) fn hear_early(self: &Arc<Self>, id: OperationId) {
        let polls = self.clone();
        self.spawn.spawn(Box::pin(async move {
            let heard = match polls.engine.early_callback(&id).await {
                Ok(Some(body)) => polls.called_back(&id, body).await,
                Ok(None) => Ok(()),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = heard {
                // The first poll looks again.
                tracing::info!(operation = %id, code = error.code(), "the early callback waits: {error}");
            }
        }));
    }

    async fn record_of(&self, id: &OperationId) -> Result<Arc<Record>, EngineError> {
        let id = RecordId::Operation(id.clone());
        Ok(self.engine.store().load(&id).await?.ok_or(Refusal::UnknownRecord)?.record)
    }

    fn is_first_call(&self, id: &OperationId) -> bool {
        let mut called = self.called.locked();
        if called.len() >= MAX_CALLED {
            called.clear();
        }
        let first = !called.contains_key(id);
        called.entry(id.clone()).or_default();
        first
    }

    /// Waits for the question under way to end, or else for a time; refused when the daemon stops.
    async fn wait_until(
        &self,
        at: Timestamp,
        asking: Option<watch::Receiver<()>>,
    ) -> Result<(), EngineError> {
        let mut stopping = self.stopping.subscribe();
        let time_or_end = async {
            match asking {
                // Nothing is ever sent: the end of the question is that the other side goes.
                Some(mut asking) => while asking.changed().await.is_ok() {},
                None => self.timer.sleep_until(at).await,
            }
        };
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => Err(EngineError::Contended),
            () = time_or_end => Ok(()),
        }
    }

    async fn ask_now(
        self: &Arc<Self>,
        id: &OperationId,
        callback: Option<Arc<[u8]>>,
    ) -> Result<Settled, EngineError> {
        let now = self.timer.now();
        if self.free() == 0 {
            return Ok(Settled::NoPlaceBefore(now.plus_seconds(1)));
        }
        let taken = self.engine.store().take(&RecordId::Operation(id.clone()), self.take(now, 1)).await?;
        self.wakes.operation_due(taken.claim.lease_expires_at);
        let asking = self.ask_about(&taken.id);
        // In a task of its own: whoever asks may go away, and the claim must not stay behind.
        let (tell, told) = tokio::sync::oneshot::channel();
        let polls = self.clone();
        self.spawn.spawn(Box::pin(async move {
            let settled = Question::new(&polls, taken, Urgency::Now).hearing(callback).settle().await;
            polls.end(asking);
            let _ = tell.send(settled);
        }));
        Ok(told.await.unwrap_or(Settled::Done))
    }
}

/// When it may be asked about again at the earliest.
fn earliest(operation: &Operation) -> Timestamp {
    let last = operation.last_polled_at.unwrap_or(operation.dispatched_at);
    last.plus_seconds(u64::from(operation.policy.min_retry_after_seconds))
}

/// Whether a callback says that the work is over: that is nothing to wait with.
fn is_an_end(said: Option<&Polled>) -> bool {
    said.and_then(Polled::status).is_some_and(OperationStatus::is_terminal)
}

fn operation_of(record: &Record) -> Result<&Operation, Refusal> {
    record.as_operation().ok_or(Refusal::WrongRecordKind)
}
