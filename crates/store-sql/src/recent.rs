//! Records that were written a moment ago and are not over: the next order for them needs no read.
//!
//! Only a writer puts records in, after the sync and before the answer. Every write to a file goes through its one writer: what is here is
//! never older than the file. In a database others write too: there it is hearsay, and only for whoever finds out by a commit.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use domain::{BodyRef, Claim, RecordId};
use store::{Head, Loaded, NewBody, Remembered};

/// Records kept at most.
const MAX_KEPT: usize = 4_096;
/// Bodies up to this size are kept with their record: the input of a job is asked for a moment after it came.
pub(crate) const MAX_BODY_BYTES: usize = 2_048;
/// Bodies kept with one record; later ones are read.
const MAX_BODIES: usize = 4;

#[derive(Default)]
pub(crate) struct Recent {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    records: HashMap<RecordId, KeptRecord>,
    /// In the order of arrival; may name records that have gone.
    arrivals: VecDeque<RecordId>,
}

struct KeptRecord {
    loaded: Loaded,
    /// The small ones.
    bodies: Vec<NewBody>,
}

impl Recent {
    /// The record, if it is here.
    pub(crate) fn get(&self, id: &RecordId) -> Option<Loaded> {
        self.lock().records.get(id).map(|kept| kept.loaded.clone())
    }

    /// The record with its small bodies, if it is here.
    pub(crate) fn remembered(&self, id: &RecordId) -> Option<Remembered> {
        let kept = self.lock();
        let KeptRecord { loaded, bodies } = kept.records.get(id)?;
        Some(Remembered { record: loaded.record.clone(), head: loaded.head, bodies: bodies.clone() })
    }

    /// Whether the record is here as it was then.
    pub(crate) fn has(&self, id: &str, head: Head) -> bool {
        let Ok(id) = RecordId::parse(id) else { return false };
        self.lock().records.get(&id).is_some_and(|kept| kept.loaded.head == head)
    }

    /// A body of the record, if it is here.
    pub(crate) fn body(&self, id: &RecordId, body: BodyRef) -> Option<Arc<[u8]>> {
        let kept = self.lock();
        let found = kept.records.get(id)?.bodies.iter().find(|one| one.body == body);
        found.map(|one| one.bytes.clone())
    }

    /// The record as the writer left it, and the bodies that came with it. One that is over is not needed again soon.
    pub(crate) fn wrote(&self, id: &RecordId, loaded: Loaded, bodies: &[NewBody]) {
        let mut kept = self.lock();
        if loaded.record.is_over() {
            kept.records.remove(id);
            return;
        }
        let small = bodies.iter().filter(|body| body.bytes.len() <= MAX_BODY_BYTES).cloned();
        if let Some(record) = kept.records.get_mut(id) {
            record.loaded = loaded;
            let room = MAX_BODIES.saturating_sub(record.bodies.len());
            record.bodies.extend(small.take(room));
        } else {
            kept.records.insert(id.clone(), KeptRecord { loaded, bodies: small.take(MAX_BODIES).collect() });
            kept.arrivals.push_back(id.clone());
        }
        while kept.arrivals.len() > MAX_KEPT {
            let Some(oldest) = kept.arrivals.pop_front() else { break };
            kept.records.remove(&oldest);
        }
    }

    /// The claim as the writer left it.
    pub(crate) fn claimed(&self, id: &RecordId, claim: &Claim) {
        if let Some(kept) = self.lock().records.get_mut(id) {
            kept.loaded.claim = Some(claim.clone());
        }
    }

    /// The record has gone, or must be read again.
    pub(crate) fn forget(&self, id: &RecordId) {
        self.lock().records.remove(id);
    }

    /// Everything must be read again.
    pub(crate) fn forget_all(&self) {
        *self.lock() = Kept::default();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of the lock panics")
    }
}
