//! Counts what a record does not keep one by one: stale reports, and repeated requests to stop a job. At most one fact per job, kind
//! and second, however many come.
//!
//! What was counted within the last second is lost if the process is killed. Nothing is refused or delayed for the sake of the count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use domain::JobId;
use domain::job::JobCommand;

use crate::locked::Locked;
use crate::{Engine, Order, Spawn, Timer};

/// How long counts of one job are put together.
const COUNTED_EVERY_SECONDS: u64 = 1;
/// Jobs whose counts are put together at once; reports on more are not counted on the record.
const MAX_JOBS: usize = 10_000;
/// Who counts stale reports, in the facts.
const STALE_REPORTS_ACTOR: &str = "worker:count_stale_reports";
/// Who counts repeated cancels.
const CANCEL_REPEATS_ACTOR: &str = "worker:count_cancel_repeats";

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Counted {
    StaleReports,
    CancelRepeats,
}

/// The counts that are not written down yet.
pub struct StaleReports {
    engine: Engine,
    timer: Arc<dyn Timer>,
    spawn: Arc<dyn Spawn>,
    pending: Mutex<HashMap<(JobId, Counted), u32>>,
}

impl StaleReports {
    /// Nothing yet.
    pub fn new(engine: Engine, timer: Arc<dyn Timer>, spawn: Arc<dyn Spawn>) -> Self {
        Self { engine, timer, spawn, pending: Mutex::default() }
    }

    /// One more stale report came for this job.
    pub fn note(self: &Arc<Self>, job_id: &JobId) {
        self.count((job_id.clone(), Counted::StaleReports));
    }

    /// One more request to stop this job came, which somebody had asked to stop before.
    pub fn note_cancel_repeat(self: &Arc<Self>, job_id: &JobId) {
        self.count((job_id.clone(), Counted::CancelRepeats));
    }

    fn count(self: &Arc<Self>, of: (JobId, Counted)) {
        {
            let mut pending = self.pending.locked();
            if let Some(count) = pending.get_mut(&of) {
                *count = count.saturating_add(1);
                return;
            }
            if pending.len() >= MAX_JOBS {
                return;
            }
            pending.insert(of.clone(), 1);
        }
        let counts = self.clone();
        let write_at = self.timer.now().plus_seconds(COUNTED_EVERY_SECONDS);
        self.spawn.spawn(Box::pin(async move {
            counts.timer.sleep_until(write_at).await;
            counts.write(of).await;
        }));
    }

    async fn write(&self, of: (JobId, Counted)) {
        let Some(count) = self.pending.locked().remove(&of) else { return };
        let (job_id, counted) = of;
        let (command, actor) = match counted {
            Counted::StaleReports => (JobCommand::CountStaleReports { count }, STALE_REPORTS_ACTOR),
            Counted::CancelRepeats => (JobCommand::CountCancelRepeats { count }, CANCEL_REPEATS_ACTOR),
        };
        if let Err(error) = self.engine.execute(Order::new(job_id.clone(), command, Arc::from(actor))).await {
            tracing::info!(record = %job_id, code = error.code(), count, "{counted:?} not written down: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use domain::attention::Retention;
    use store::MemoryStore;

    use super::*;
    use crate::spawn::Task;
    use crate::{ManualClock, RandomIds};

    /// Keeps what is started, and runs it when the test says so.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Task>>);

    impl Spawn for Kept {
        fn spawn(&self, task: Task) {
            self.0.lock().unwrap().push(task);
        }
    }

    #[tokio::test]
    async fn reports_are_counted_for_so_many_jobs_at_once() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_000)));
        let engine =
            Engine::new(Arc::new(MemoryStore::new()), clock.clone(), Arc::new(RandomIds), Retention::DEFAULT);
        let kept = Arc::new(Kept::default());
        let counts = Arc::new(StaleReports::new(engine, clock.clone(), kept.clone()));
        let job = |number: usize| JobId::new(format!("work-{number}"));
        for number in 0..=MAX_JOBS {
            counts.note(&job(number));
        }
        let of = |number: usize| counts.pending.locked().get(&(job(number), Counted::StaleReports)).copied();
        assert_eq!((of(0), of(MAX_JOBS - 1), of(MAX_JOBS)), (Some(1), Some(1), None));
        assert_eq!(kept.0.lock().unwrap().len(), MAX_JOBS, "no task for what is not counted");
        // Jobs that are known are counted on, and one that is written down makes room for another.
        counts.note(&job(0));
        assert_eq!(of(0), Some(2));
        clock.advance_seconds(2);
        let first = kept.0.lock().unwrap().swap_remove(0);
        first.await;
        counts.note(&job(MAX_JOBS));
        assert_eq!((of(0), of(MAX_JOBS)), (None, Some(1)));
        counts.note(&job(MAX_JOBS + 1));
        assert_eq!((of(MAX_JOBS + 1), counts.pending.locked().len()), (None, MAX_JOBS));
    }
}
