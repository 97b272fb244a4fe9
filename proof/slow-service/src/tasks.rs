//! What a service does between requests: tasks that end with it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

/// The running tasks; none are taken after the end.
#[derive(Debug)]
pub struct Tasks {
    running: Mutex<Option<JoinSet<()>>>,
}

impl Tasks {
    /// None yet.
    pub fn new() -> Self {
        Self { running: Mutex::new(Some(JoinSet::new())) }
    }

    /// One more, unless the service has ended.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(running) = self.running().as_mut() {
            while running.try_join_next().is_some() {}
            running.spawn(task);
        }
    }

    /// Ends all of them, and comes back when they are gone.
    pub async fn stop(&self) {
        let running = self.running().take();
        if let Some(mut running) = running {
            running.shutdown().await;
        }
    }

    /// Ends all of them without waiting for it.
    pub fn abort(&self) {
        // Dropped, a set aborts what is in it.
        self.running().take();
    }

    fn running(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
