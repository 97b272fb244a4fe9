//! Callbacks that wait until their services may be asked: few at the same time, each in its place.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many wait at the same time; more are sent away, to be sent again.
const MAX_WAITING: usize = 256;

/// The places of those that wait.
pub(crate) struct WaitingCallbacks(Arc<Semaphore>);

impl Default for WaitingCallbacks {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_WAITING)))
    }
}

impl WaitingCallbacks {
    /// A place, free again when this goes; none if all are taken.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }
}
