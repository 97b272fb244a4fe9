//! Records that were written a moment ago and are not over: the next order for them needs no read.
//!
//! Only the writer puts records in, after the sync and before the answer, and every write goes through it: what is here is
//! never older than the file.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use domain::{Claim, RecordId};
use store::Loaded;

/// Records kept at most.
const MAX_KEPT: usize = 4_096;

#[derive(Default)]
pub(crate) struct Recent {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    records: HashMap<RecordId, Loaded>,
    /// In the order of arrival; may name records that have gone.
    arrivals: VecDeque<RecordId>,
}

impl Recent {
    /// The record, if it is here.
    pub(crate) fn get(&self, id: &RecordId) -> Option<Loaded> {
        self.lock().records.get(id).cloned()
    }

    /// The record as the writer left it. One that is over is not needed again soon.
    pub(crate) fn wrote(&self, id: &RecordId, loaded: Loaded) {
        let mut kept = self.lock();
        if loaded.record.is_over() {
            kept.records.remove(id);
            return;
        }
        if kept.records.insert(id.clone(), loaded).is_none() {
            kept.arrivals.push_back(id.clone());
        }
        while kept.arrivals.len() > MAX_KEPT {
            let Some(oldest) = kept.arrivals.pop_front() else { break };
            kept.records.remove(&oldest);
        }
    }

    /// The claim as the writer left it.
    pub(crate) fn claimed(&self, id: &RecordId, claim: &Claim) {
        if let Some(loaded) = self.lock().records.get_mut(id) {
            loaded.claim = Some(claim.clone());
        }
    }

    /// The record has gone, or must be read again.
    pub(crate) fn forget(&self, id: &RecordId) {
        self.lock().records.remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of the lock panics")
    }
}
