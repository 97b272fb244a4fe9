//! Wake-ups: what a commit means for the workers, noted without a question to the store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use domain::{RecordKind, Timestamp};
use store::{Commit, Committed};
use tokio::sync::Notify;

use crate::CommitWatch;

/// What has changed since a worker last looked.
#[derive(Default)]
pub struct Wakes {
    noted: Mutex<Noted>,
    jobs_due: Notify,
    jobs_ready: Notify,
}

#[derive(Default)]
struct Noted {
    /// Lanes in which something may be ready.
    lanes: BTreeSet<Arc<str>>,
    /// The earliest time that a commit named since the last look.
    job_due_at: Option<Timestamp>,
}

impl Wakes {
    /// Something may be ready in this lane.
    pub fn ready(&self, lane: &Arc<str>) {
        self.lock().lanes.insert(lane.clone());
        self.jobs_ready.notify_one();
    }

    /// A slot has become free: whoever waits for one looks again.
    pub fn slot_freed(&self) {
        self.jobs_ready.notify_one();
    }

    /// The lanes in which something may be ready; they are asked once, and named again if that did not empty them.
    pub(crate) fn take_lanes(&self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.lock().lanes)
    }

    /// The earliest due time that commits have named since the last look.
    pub(crate) fn take_job_due_at(&self) -> Option<Timestamp> {
        self.lock().job_due_at.take()
    }

    /// Ends when a commit has named a due time.
    pub(crate) async fn job_due(&self) {
        self.jobs_due.notified().await;
    }

    /// Ends when something may be ready, or a slot is free.
    pub(crate) async fn job_ready(&self) {
        self.jobs_ready.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().expect("no holder of the lock panics")
    }
}

impl CommitWatch for Wakes {
    fn committed(&self, commit: &Commit, _: Committed) {
        for change in &commit.changes {
            if change.id.kind() != RecordKind::Job {
                continue;
            }
            if let (Some(place), true) = (&change.agenda.place, change.agenda.ready) {
                self.ready(&place.lane);
            }
            if let Some(due_at) = change.agenda.due_at {
                let mut noted = self.lock();
                noted.job_due_at = domain::time::earliest(noted.job_due_at, Some(due_at));
                drop(noted);
                self.jobs_due.notify_one();
            }
        }
    }
}
