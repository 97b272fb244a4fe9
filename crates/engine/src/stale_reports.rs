//! Counts the stale reports that a record keeps no evidence of: at most one fact per job and second, however many come.
//!
//! What was counted within the last second is lost if the process is killed. Nothing is refused or delayed for the sake of the count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::JobId;
use domain::job::JobCommand;

use crate::{Engine, Order, Spawn, Timer};

/// How long counts of one job are put together.
const COUNTED_EVERY_SECONDS: u64 = 1;
/// Jobs whose counts are put together at once; reports on more are not counted on the record.
const MAX_JOBS: usize = 10_000;
/// Who counts, in the facts.
const ACTOR: &str = "worker:count_stale_reports";

/// The counts that are not written down yet.
pub struct StaleReports {
    engine: Engine,
    timer: Arc<dyn Timer>,
    spawn: Arc<dyn Spawn>,
    pending: Mutex<HashMap<JobId, u32>>,
}

impl StaleReports {
    /// Nothing yet.
    pub fn new(engine: Engine, timer: Arc<dyn Timer>, spawn: Arc<dyn Spawn>) -> Self {
        Self { engine, timer, spawn, pending: Mutex::default() }
    }

    /// One more came for this job.
    pub fn note(self: &Arc<Self>, job_id: &JobId) {
        {
            let mut pending = self.pending();
            if let Some(count) = pending.get_mut(job_id) {
                *count = count.saturating_add(1);
                return;
            }
            if pending.len() >= MAX_JOBS {
                return;
            }
            pending.insert(job_id.clone(), 1);
        }
        let (counts, job_id) = (self.clone(), job_id.clone());
        let write_at = self.timer.now().plus_seconds(COUNTED_EVERY_SECONDS);
        self.spawn.spawn(Box::pin(async move {
            counts.timer.sleep_until(write_at).await;
            counts.write(job_id).await;
        }));
    }

    async fn write(&self, job_id: JobId) {
        let Some(count) = self.pending().remove(&job_id) else { return };
        let command = JobCommand::CountStaleReports { count };
        if let Err(error) = self.engine.execute(Order::new(job_id.clone(), command, Arc::from(ACTOR))).await {
            tracing::info!(record = %job_id, code = error.code(), count, "stale reports not counted: {error}");
        }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<JobId, u32>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
