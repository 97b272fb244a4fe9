//! Attends to jobs that are due: expires them, ends lost leases and cancels without confirmation, makes waiting ones ready,
//! retires old ones. All of these are one round, because all of them are one index.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use domain::time::earliest;
use domain::{Lease, OwnerId, RecordId, RecordKind, Timestamp};
use store::{StoreError, Take, Taken};

use super::{Next, Worker};
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
    /// The earliest due time that is known without a question to the store.
    known: Mutex<Known>,
}

#[derive(Clone, Copy)]
enum Known {
    /// The store must be asked.
    Unknown,
    /// Nothing is due before; never, if absent.
    NothingBefore(Option<Timestamp>),
}

impl AttendJobs {
    /// On this engine, as this owner.
    pub fn new(engine: Engine, owner: OwnerId, lease: Lease, wakes: Arc<Wakes>) -> Self {
        Self { engine, owner, lease, wakes, attempts: None, known: Mutex::new(Known::Unknown) }
    }

    /// The same, sparing these attempts: a lease that ended while its attempt lives here is not lost.
    pub fn sparing(mut self, attempts: Arc<Attempts>) -> Self {
        self.attempts = Some(attempts);
        self
    }

    async fn attend_due(&self, now: Timestamp) -> Result<Next, EngineError> {
        let noted = self.wakes.take_job_due_at();
        if let Known::NothingBefore(known) = self.known()
            && let at = earliest(known, noted)
            && at.is_none_or(|at| now < at)
        {
            self.know(Known::NothingBefore(at));
            return Ok(at.map_or(Next::WhenWoken, Next::At));
        }
        self.know(Known::Unknown);
        let take = Take { owner: self.owner.clone(), now, lease: self.lease, limit: BATCH };
        let taken = self.engine.store().take_due(RecordKind::Job, take).await?;
        for one in &taken {
            if self.lives_here(one).await? {
                continue;
            }
            // The record may have moved between the taking and here; the rules settle it.
            match self.engine.attend(one, Arc::from("worker:attend_jobs")).await {
                Ok(_) | Err(EngineError::Refused(_)) => {}
                // One damaged record must not keep the others waiting.
                Err(error @ EngineError::Store(StoreError::Broken(_))) => {
                    tracing::error!(record = %one.id, code = error.code(), "not attended to: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        if taken.len() == BATCH {
            return Ok(Next::Now);
        }
        let at = self.engine.store().earliest_due(RecordKind::Job).await?;
        self.know(Known::NothingBefore(at));
        Ok(at.map_or(Next::WhenWoken, Next::At))
    }

    /// Whether only a lease has ended, and the attempt that had it is alive in this process: it finds the claim that we took and goes on.
    async fn lives_here(&self, taken: &Taken) -> Result<bool, EngineError> {
        let RecordId::Job(job_id) = &taken.id else { return Ok(false) };
        match &self.attempts {
            Some(attempts) if attempts.runs(job_id) => self.engine.would_lose_its_lease(taken).await,
            Some(_) | None => Ok(false),
        }
    }

    fn known(&self) -> Known {
        *self.known.lock().expect("no holder of the lock panics")
    }

    fn know(&self, known: Known) {
        *self.known.lock().expect("no holder of the lock panics") = known;
    }
}

impl Worker for AttendJobs {
    fn name(&self) -> &'static str {
        "attend_jobs"
    }

    fn round(&self, now: Timestamp) -> Pin<Box<dyn Future<Output = Result<Next, EngineError>> + Send + '_>> {
        Box::pin(self.attend_due(now))
    }

    fn woken(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.wakes.job_due())
    }
}
