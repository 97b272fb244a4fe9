//! Changes: whoever waits for one record, or for the ledger to move, is told by the commit itself and never asks the store again
//! and again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::{Record, RecordId};
use store::{Commit, Committed};
use tokio::sync::watch;

use crate::CommitWatch;
use crate::locked::Locked;

/// What this process has committed.
#[derive(Default)]
pub struct Changes {
    position: watch::Sender<u64>,
    watched: Mutex<BTreeMap<RecordId, watch::Sender<Option<Arc<Record>>>>>,
}

/// One record under watch.
pub struct Watched {
    changes: Arc<Changes>,
    id: RecordId,
    record: watch::Receiver<Option<Arc<Record>>>,
}

impl Changes {
    /// The highest position committed by this process; 0 before the first.
    pub fn ledger(&self) -> watch::Receiver<u64> {
        self.position.subscribe()
    }

    /// Watches one record from now on.
    pub fn watch(self: &Arc<Self>, id: &RecordId) -> Watched {
        let record = self.watched.locked().entry(id.clone()).or_default().subscribe();
        Watched { changes: self.clone(), id: id.clone(), record }
    }

    /// Another process may have committed: whoever follows the ledger looks again.
    pub(crate) fn look_again(&self) {
        self.position.send_modify(|_| {});
    }

    /// The records that someone watches.
    pub fn under_watch(&self) -> Vec<RecordId> {
        self.watched.locked().keys().cloned().collect()
    }

    /// A record has changed on another node.
    pub(crate) fn notice(&self, id: &RecordId, record: &Arc<Record>) {
        if let Some(sender) = self.watched.locked().get(id) {
            sender.send_replace(Some(record.clone()));
        }
    }
}

impl Watched {
    /// The record after its next change. Of several changes in between only the newest is seen.
    pub async fn next(&mut self) -> Arc<Record> {
        loop {
            if self.record.changed().await.is_err() {
                // The sender is in the map as long as we are: this does not end, and must not spin.
                std::future::pending::<()>().await;
            }
            if let Some(record) = self.record.borrow_and_update().clone() {
                return record;
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watched = self.changes.watched.locked();
        if watched.get(&self.id).is_some_and(|sender| sender.receiver_count() <= 1) {
            watched.remove(&self.id);
        }
    }
}

impl CommitWatch for Changes {
    fn committed(&self, commit: &Commit, committed: Committed) {
        self.position.send_if_modified(|position| {
            let moved = committed.position > *position;
            *position = committed.position.max(*position);
            moved
        });
        let watched = self.watched.locked();
        if watched.is_empty() {
            return;
        }
        for change in &commit.changes {
            if let Some(sender) = watched.get(&change.id) {
                sender.send_replace(Some(change.record.clone()));
            }
        }
    }
}
