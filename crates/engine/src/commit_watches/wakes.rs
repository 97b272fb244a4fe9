//! Wake-ups: what a commit means for the workers, noted without a question to the store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use domain::attention::Holding;
use domain::job::is_pulled;
use domain::planted::{Bug, planted};
use domain::time::earliest;
use domain::{Lease, OperationId, RecordId, Timestamp};
use store::{Commit, Sweep};
use tokio::sync::Notify;

use crate::CommitWatch;
use crate::locked::Locked;

/// What has changed since a worker last looked.
#[derive(Default)]
pub struct Wakes {
    noted: Mutex<Noted>,
    jobs_ready: Notify,
    pub(crate) jobs: DueWake,
    /// Also told when there is room for one more question to a service.
    pub(crate) operations: DueWake,
    /// Of events, runs and records of other kinds without a worker of their own.
    pub(crate) records: DueWake,
}

#[derive(Default)]
struct Noted {
    /// Lanes in which something may be ready.
    lanes: BTreeSet<Arc<str>>,
    /// Whether there may be others.
    look_at_lanes: bool,
    /// New operations of which a callback may have come before them.
    may_be_called_back: Vec<OperationId>,
}

/// The earliest due time that was named for one sweep since its worker last looked.
#[derive(Default)]
pub(crate) struct DueWake {
    at: Mutex<Option<Timestamp>>,
    named: Notify,
}

impl DueWake {
    /// Something may be due at this time.
    fn note(&self, at: Timestamp) {
        {
            let mut noted = self.at.locked();
            *noted = earliest(*noted, Some(at));
        }
        self.named.notify_one();
    }

    /// The earliest time that was named.
    pub(crate) fn take(&self) -> Option<Timestamp> {
        self.at.locked().take()
    }

    /// Ends when a time was named.
    pub(crate) async fn woken(&self) {
        self.named.notified().await;
    }
}

impl Wakes {
    /// Something may be ready in this lane.
    pub fn ready(&self, lane: &Arc<str>) {
        self.noted.locked().lanes.insert(lane.clone());
        self.jobs_ready.notify_one();
    }

    /// Others may have written what was not told here: all workers ask the store again. Only for nodes that share a store, and after
    /// a jump of the clock.
    pub fn look_again(&self) {
        self.look_at_lanes();
        self.due(Timestamp::default());
        self.operation_due(Timestamp::default());
        self.routing_due(Timestamp::default());
    }

    /// Jobs may be ready in lanes that were not named here.
    pub(crate) fn look_at_lanes(&self) {
        self.noted.locked().look_at_lanes = true;
        self.jobs_ready.notify_one();
    }

    /// A job may be due at this time.
    pub fn due(&self, at: Timestamp) {
        self.jobs.note(at);
    }

    /// An operation may be due at this time.
    pub fn operation_due(&self, at: Timestamp) {
        self.operations.note(at);
    }

    /// An event, a run or a record of another kind without a worker of its own may need someone at this time.
    pub fn routing_due(&self, at: Timestamp) {
        self.records.note(at);
    }

    /// This record may need someone at this time.
    pub(crate) fn record_due(&self, id: &RecordId, at: Timestamp) {
        match Sweep::of(id.kind()) {
            Sweep::Jobs => self.due(at),
            Sweep::Operations => self.operation_due(at),
            Sweep::Records => self.routing_due(at),
        }
    }

    /// A callback may have come before this operation.
    pub(crate) fn may_be_called_back(&self, operation: OperationId) {
        self.noted.locked().may_be_called_back.push(operation);
        self.place_freed();
    }

    /// The new operations of which a callback may have come before them.
    pub(crate) fn take_may_be_called_back(&self) -> Vec<OperationId> {
        std::mem::take(&mut self.noted.locked().may_be_called_back)
    }

    /// There is room for one more question to a service.
    pub(crate) fn place_freed(&self) {
        self.operations.named.notify_one();
    }

    /// A slot has become free: whoever waits for one looks again.
    pub fn slot_freed(&self) {
        self.jobs_ready.notify_one();
    }

    /// The lanes in which something may be ready; they are asked once, and named again if that did not empty them.
    pub(crate) fn take_lanes(&self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.noted.locked().lanes)
    }

    /// Whether the store must be asked which lanes have something.
    pub(crate) fn take_look_at_lanes(&self) -> bool {
        std::mem::take(&mut self.noted.locked().look_at_lanes)
    }

    /// Ends when something may be ready, or a slot is free.
    pub(crate) async fn job_ready(&self) {
        self.jobs_ready.notified().await;
    }
}

impl CommitWatch for Wakes {
    /// A wake-up for nothing is harmless, a missing one is not.
    fn perhaps_committed(&self, commit: &Commit) {
        for change in &commit.changes {
            let sweep = Sweep::of(change.id.kind());
            if sweep != Sweep::Jobs {
                let is_lost = sweep == Sweep::Records && planted(Bug::RoutingWakeLost);
                if let Some(due_at) = change.agenda.due_at.filter(|_| !is_lost) {
                    self.record_due(&change.id, due_at);
                }
                continue;
            }
            match &change.agenda.place {
                // Whoever pulls is told by `Pulls`.
                Some(_) if planted(Bug::WakeLost) => {}
                Some(place) if change.agenda.ready && !is_pulled(&place.lane) => self.ready(&place.lane),
                Some(_) | None => {}
            }
            if let Some(due_at) = change.agenda.due_at {
                self.due(due_at);
            }
            if change.agenda.holding == Holding::LeaseBound {
                // The holder renews or not; by then the longest lease has ended once.
                self.due(commit.at.plus_seconds(u64::from(Lease::BOUNDS_SECONDS.1)));
            }
        }
    }
}
