//! Attends to jobs that are due: expires them, ends lost leases and cancels without confirmation, makes waiting ones ready,
//! retires old ones. All of these are one round, because all of them are one index.

use std::sync::Arc;

use domain::{Lease, OwnerId, RecordId, RecordKind, Timestamp};
use futures::future::{BoxFuture, join_all};
use store::{StoreError, Take, Taken};

use super::due_times::DueTimes;
use super::{Next, UNSURE_SECONDS, Worker};
use crate::{Attempts, Engine, EngineError, Wakes};

/// Jobs taken in one round.
const BATCH: usize = 256;

/// The worker.
pub struct AttendJobs {
    engine: Engine,
    owner: OwnerId,
    lease: Lease,
    wakes: Arc<Wakes>,
    /// The attempts of this process: what they hold they lose only by their own end.
    attempts: Option<Arc<Attempts>>,
    due_times: DueTimes,
}

impl AttendJobs {
    /// On this engine, as this owner.
    pub fn new(engine: Engine, owner: OwnerId, lease: Lease, wakes: Arc<Wakes>) -> Self {
        Self { engine, owner, lease, wakes, attempts: None, due_times: DueTimes::default() }
    }

    /// The same, sparing these attempts: a lease that ended while its attempt lives here is not lost.
    pub fn sparing(mut self, attempts: Arc<Attempts>) -> Self {
        self.attempts = Some(attempts);
        self
    }

    async fn attend_due(&self, now: Timestamp) -> Result<Next, EngineError> {
        // Leases and deadlines are attended to also while the node drains, but not without the store's time.
        if self.attempts.as_ref().is_some_and(|attempts| !attempts.is_sure()) {
            return Ok(Next::At(now.plus_seconds(UNSURE_SECONDS)));
        }
        if let Some(next) = self.due_times.nothing_before(now, self.wakes.jobs.take()) {
            return Ok(next);
        }
        let take = Take::by(self.owner.clone(), now, self.lease, BATCH).until_next_commit();
        let taken = self.engine.store().take_due(RecordKind::Job, take).await?;
        // Side by side, so that the store syncs them together: very many may become due at one moment.
        for attended in join_all(taken.iter().map(|one| self.attend_one(one))).await {
            attended?;
        }
        if taken.len() == BATCH {
            return Ok(Next::Now);
        }
        Ok(self.due_times.learned(self.engine.store().earliest_due(RecordKind::Job).await?))
    }

    async fn attend_one(&self, taken: &Taken) -> Result<(), EngineError> {
        if self.lives_here(taken).await? {
            return Ok(());
        }
        // The record may have moved between the taking and here; the rules settle it.
        match self.engine.attend(taken, Arc::from("worker:attend_jobs")).await {
            Ok(_) | Err(EngineError::Refused(_)) => Ok(()),
            // One damaged record must not keep the others waiting.
            Err(error @ EngineError::Store(StoreError::Broken(_) | StoreError::BodyDamaged(_))) => {
                tracing::error!(record = %taken.id, code = error.code(), "not attended to: {error}");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Whether only a lease has ended, and the attempt that had it is alive in this process: it finds the claim that we took and goes on.
    async fn lives_here(&self, taken: &Taken) -> Result<bool, EngineError> {
        let RecordId::Job(job_id) = &taken.id else { return Ok(false) };
        match &self.attempts {
            Some(attempts) if attempts.keeps(job_id) => self.engine.would_lose_its_lease(taken).await,
            Some(_) | None => Ok(false),
        }
    }
}

impl Worker for AttendJobs {
    fn name(&self) -> &'static str {
        "attend_jobs"
    }

    fn round(&self, now: Timestamp) -> BoxFuture<'_, Result<Next, EngineError>> {
        Box::pin(self.attend_due(now))
    }

    fn woken(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.wakes.jobs.woken())
    }
}
