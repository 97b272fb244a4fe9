//! How long an attempt may go on without a renewal, and what ends it then: told to stop, and dropped if it does not.

use std::sync::{Arc, Mutex};

use domain::Timestamp;
use futures::future::AbortHandle;
use tokio::sync::{oneshot, watch};

use crate::{Standing, Timer};

/// The time that an attempt has, moved on by every renewal.
pub(super) struct Tenure {
    stops_at: watch::Sender<Option<Timestamp>>,
    work: Mutex<Option<Work>>,
}

/// The work of an attempt, in its own task.
pub(super) struct Work {
    /// Drops it.
    pub(super) abort: AbortHandle,
    /// Ends with it.
    pub(super) over: oneshot::Receiver<()>,
}

impl Tenure {
    pub(super) fn until(stops_at: Option<Timestamp>) -> Arc<Self> {
        Arc::new(Self { stops_at: watch::Sender::new(stops_at), work: Mutex::default() })
    }

    /// The lease was renewed.
    pub(super) fn moved_to(&self, stops_at: Option<Timestamp>) {
        self.stops_at.send_replace(stops_at);
    }

    /// The work has begun.
    pub(super) fn begun(&self, work: Work) {
        *self.work.lock().expect("no holder of the lock panics") = Some(work);
    }

    /// Ends when the attempt must stop, because it was not renewed.
    pub(super) async fn over(&self, timer: &dyn Timer) {
        let mut moved = self.stops_at.subscribe();
        loop {
            let stops_at = *moved.borrow_and_update();
            let passed = async {
                match stops_at {
                    Some(at) => timer.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // The sender is ours: it outlives this.
                _ = moved.changed() => {}
                () = passed => return,
            }
        }
    }

    /// Waits until the work, which was told to stop, has stopped, and drops it if it takes too long.
    pub(super) async fn end_work(&self, timer: &dyn Timer) {
        let Some(work) = self.work.lock().expect("no holder of the lock panics").take() else { return };
        let patience = timer.now().plus_seconds(Standing::STOPS_WITHIN_SECONDS);
        tokio::select! {
            biased;
            _ = work.over => {}
            () = timer.sleep_until(patience) => work.abort.abort(),
        }
    }
}
