//! The idempotency keys of the model: how long they stay.

use domain::planted::{Bug, planted};
use domain::{RecordId, Timestamp};

use super::Tables;
use crate::KeptKey;
use crate::commit::limits::MAX_FORGOTTEN_KEYS;

impl Tables {
    /// Writes the keys of a commit, after its changes, and makes room for them.
    pub(super) fn insert_keys(&mut self, keys: &[KeptKey], at: Timestamp) {
        if keys.is_empty() {
            return;
        }
        let forgettable = self.outliving.iter().take_while(|(keep_until, _)| *keep_until <= at);
        for place in forgettable.take(MAX_FORGOTTEN_KEYS).cloned().collect::<Vec<_>>() {
            self.keys.remove(&place.1);
            self.outliving.remove(&place);
        }
        for kept in keys {
            if !self.agenda.contains_key(&kept.record) {
                self.outliving.insert((kept.keep_until, kept.key.clone()));
            }
            self.keys.insert(kept.key.clone(), kept.clone());
        }
    }

    /// The record goes: so do the keys whose time has passed, the others outlive it.
    pub(super) fn keys_of_gone_record(&mut self, id: &RecordId, at: Timestamp) {
        let outlives = |kept: &KeptKey| kept.keep_until > at && !planted(Bug::KeyGoesWithRecord);
        self.keys.retain(|_, kept| kept.record != *id || outlives(kept));
        let left = self.keys.values().filter(|kept| kept.record == *id);
        self.outliving.extend(left.map(|kept| (kept.keep_until, kept.key.clone())));
        let keys = &self.keys;
        self.outliving.retain(|(_, key)| keys.contains_key(key));
    }
}
