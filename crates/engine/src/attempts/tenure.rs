//! How long an attempt may go on without a renewal, and what ends it then: told to stop, and dropped if it does not.

use std::sync::{Arc, Mutex};

use domain::Timestamp;
use futures::future::AbortHandle;
use tokio::sync::{oneshot, watch};

use crate::locked::Locked;
use crate::{Standing, Timer, sleep_through};

/// The time that an attempt has, moved on by every renewal.
pub(super) struct Tenure {
    /// From the last renewal to the end.
    span: watch::Sender<Option<(Timestamp, Timestamp)>>,
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
    pub(super) fn until(span: Option<(Timestamp, Timestamp)>) -> Arc<Self> {
        Arc::new(Self { span: watch::Sender::new(span), work: Mutex::default() })
    }

    /// The lease was renewed.
    pub(super) fn moved_to(&self, span: Option<(Timestamp, Timestamp)>) {
        self.span.send_replace(span);
    }

    /// The work has begun.
    pub(super) fn begun(&self, work: Work) {
        *self.work.locked() = Some(work);
    }

    /// Ends when the attempt must stop, because it was not renewed.
    pub(super) async fn over(&self, timer: &dyn Timer) {
        let mut moved = self.span.subscribe();
        loop {
            let span = *moved.borrow_and_update();
            let passed = async {
                match span {
                    Some((renewed_at, stops_at)) => sleep_through(timer, renewed_at, stops_at).await,
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
        let Some(work) = self.work.locked().take() else { return };
        let patience = timer.now().plus_seconds(Standing::STOPS_WITHIN_SECONDS);
        tokio::select! {
            biased;
            _ = work.over => {}
            () = timer.sleep_until(patience) => work.abort.abort(),
        }
    }
}
