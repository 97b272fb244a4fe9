//! `MemoryStore`: the model of the contract, small enough to be checked by eye. It keeps nothing over a restart.
//!
//! Where a database has an index, this walks everything: it is for tests and the simulator, with few records.

mod asks;
mod claims;
mod clock;
mod keys;
mod lists;
mod nodes;
mod peers;
mod plugin_state;
mod reads;
mod records;
mod tokens;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use domain::operation::Operation;
use domain::peer::{Peer, PeerKey};
use domain::planted::{Bug, planted};
use domain::{BodyName, BodyRef, Digest, Fact, Record, RecordId, RecordKind, Timestamp};

use crate::query::Head;
use crate::{
    AgendaRow, Change, Checksum, ClaimOutcome, ClaimRequest, Commit, Committed, IdempotencyKey, KeptKey,
    Node, ReadAnswer, ReadRequest, Removal, Reply, SideWrite, Store, StoreClock, StoreError, StoredFact,
    Token, encode_fact,
};

pub use asks::KeptAsk;
pub use plugin_state::KeptPlugin;

/// A store in memory.
#[derive(Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
}

/// What a database would hold.
#[derive(Clone, Default)]
pub struct Tables {
    /// The ledger, by position.
    pub facts: BTreeMap<u64, StoredFact>,
    /// The position of each stream's facts, by version.
    pub streams: BTreeMap<RecordId, BTreeMap<u64, u64>>,
    /// The state of each record.
    pub views: BTreeMap<RecordId, Arc<Record>>,
    /// The agenda.
    pub agenda: BTreeMap<RecordId, AgendaRow>,
    /// The bodies.
    pub bodies: BTreeMap<(RecordId, &'static str, Digest), Arc<[u8]>>,
    /// The idempotency records.
    pub keys: BTreeMap<IdempotencyKey, KeptKey>,
    /// The access tokens, oldest first.
    pub tokens: Vec<Token>,
    /// The nodes, by id.
    pub nodes: BTreeMap<String, Node>,
    /// The peers.
    pub peers: BTreeMap<PeerKey, Peer>,
    /// The asks, by correlation id.
    pub asks: BTreeMap<String, KeptAsk>,
    /// What plugins remember, by name.
    pub plugins: BTreeMap<String, KeptPlugin>,
    /// What it knows of its time.
    pub clock: StoreClock,
    told: clock::Told,
    /// Keys whose records have gone, in the order in which they may be forgotten.
    outliving: BTreeSet<(Timestamp, IdempotencyKey)>,
    last_position: u64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at everything at once: for checkers.
    pub fn inspect<T>(&self, look: impl FnOnce(&Tables) -> T) -> T {
        look(&self.tables())
    }

    /// Applies a commit without waiting.
    pub fn commit_now(&self, commit: &Commit) -> Result<Committed, StoreError> {
        commit.check()?;
        self.tables().commit(commit)
    }

    /// Flips the lowest bit of the first byte of a stored body, which is not empty: for tests of damage.
    pub fn damage_body(&self, id: &RecordId, body: BodyRef) {
        let place = (id.clone(), body.name.as_str(), body.sha256);
        if let Some(bytes) = self.tables().bodies.get_mut(&place) {
            let mut damaged = bytes.to_vec();
            damaged[0] ^= 1;
            *bytes = Arc::from(damaged);
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no holder of the lock panics")
    }
}

impl Tables {
    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        for change in &commit.changes {
            if self.version(&change.id) != change.expected.version && !planted(Bug::VersionNotChecked) {
                return self.repeated(commit).ok_or(StoreError::Conflict);
            }
        }
        for change in &commit.changes {
            if let Some(fence) = &change.fence {
                let row = self.agenda.get(&change.id).ok_or(StoreError::Fenced)?;
                row.admit(fence).map_err(StoreError::from)?;
            }
        }
        self.check_plugins(&commit.plugin_states)?;
        for key in &commit.keys {
            if let Some(kept) = self.keys.get(&key.key)
                && !planted(Bug::KeyNotUnique)
            {
                return Err(StoreError::KeyTaken(Box::new(kept.clone())));
            }
        }
        if planted(Bug::AckWithoutApply) && self.last_position % 16 == 15 {
            self.last_position += 1;
            return Ok(Committed { position: self.last_position });
        }
        let written = if planted(Bug::CommitNotWhole) { 1 } else { commit.changes.len() };
        for change in commit.changes.iter().take(written) {
            self.apply(commit, change);
        }
        self.insert_keys(&commit.keys, commit.at);
        self.change_asks(&commit.asks);
        self.change_plugins(&commit.plugin_states);
        let wrote_facts = commit.changes.iter().any(|change| !change.facts.is_empty());
        Ok(Committed { position: if wrote_facts { self.last_position } else { 0 } })
    }

    /// A commit that is there already, fact by fact, is done.
    fn repeated(&self, commit: &Commit) -> Option<Committed> {
        let mut position = 0;
        for change in &commit.changes {
            let stream = self.streams.get(&change.id)?;
            for (offset, fact) in change.facts.iter().enumerate() {
                position = *stream.get(&(change.expected.version + 1 + offset as u64))?;
                if self.facts[&position].id != fact.id {
                    return None;
                }
            }
        }
        (position > 0).then_some(Committed { position })
    }

    fn apply(&mut self, commit: &Commit, change: &Change) {
        let mut version = change.expected.version;
        if planted(Bug::VersionNotChecked) {
            version = self.version(&change.id);
        }
        for new in &change.facts {
            version += 1;
            self.last_position += 1;
            let stored = StoredFact {
                position: self.last_position,
                stream: change.id.clone(),
                version,
                id: new.id,
                at: commit.at,
                actor: commit.actor.clone(),
                causation_id: commit.causation_id.clone(),
                correlation_id: commit.correlation_id.clone(),
                fact: new.fact.clone(),
                checksum: Checksum::default(),
            };
            self.streams.entry(change.id.clone()).or_default().insert(version, self.last_position);
            self.facts.insert(self.last_position, stored);
        }
        let expired = |new: &crate::NewFact| matches!(new.fact, Fact::Job(domain::job::JobFact::Expired(_)));
        if !(planted(Bug::ViewSkippedOnExpiry) && change.facts.iter().any(expired)) {
            self.views.insert(change.id.clone(), change.record.clone());
        }
        let head = Head { version, checksum: Checksum::default() };
        let now = self.carried(commit.at);
        if let Some(row) = self.agenda.get_mut(&change.id) {
            row.commit(head, change.agenda.clone(), now, commit.lease);
        } else {
            let row = AgendaRow::new(head, change.agenda.clone(), now, commit.lease);
            self.agenda.insert(change.id.clone(), row);
        }
        let forgotten = planted(Bug::BodiesForgotten) && change.expected.version > 0;
        for new in change.bodies.iter().filter(|_| !forgotten) {
            let place = (change.id.clone(), new.body.name.as_str(), new.body.sha256);
            self.bodies.insert(place, new.bytes.clone());
        }
        self.remove(change, commit.at);
    }

    fn remove(&mut self, change: &Change, at: Timestamp) {
        let id = &change.id;
        match change.removal {
            Removal::Nothing => {}
            Removal::Bodies => self.bodies.retain(|(record, _, _), _| record != id),
            Removal::Errors => {
                self.bodies.retain(|(record, name, _), _| record != id || *name != BodyName::Error.as_str());
            }
            Removal::OlderFacts => self.remove_older_facts(change),
            Removal::Record => {
                self.bodies.retain(|(record, _, _), _| record != id);
                self.keys_of_gone_record(id, at);
                self.views.remove(id);
                self.agenda.remove(id);
                for position in self.streams.remove(id).unwrap_or_default().into_values() {
                    self.facts.remove(&position);
                }
                if planted(Bug::PositionGivenTwice) {
                    self.last_position = self.facts.last_key_value().map_or(0, |(position, _)| *position);
                }
            }
        }
    }

    /// What is before a checkpoint goes, with the bodies that only those facts named.
    fn remove_older_facts(&mut self, change: &Change) {
        let (Some(version), Some(stream)) = (change.checkpoint_version(), self.streams.get_mut(&change.id))
        else {
            return;
        };
        let first = version + u64::from(planted(Bug::CheckpointDropsItself));
        let kept = stream.split_off(&first);
        for position in std::mem::replace(stream, kept).into_values() {
            self.facts.remove(&position);
        }
        let named =
            if planted(Bug::CheckpointTakesBodies) { Vec::new() } else { change.record.named_bodies() };
        self.bodies.retain(|(record, name, sha256), _| {
            let is_named = named.iter().any(|body| body.name.as_str() == *name && body.sha256 == *sha256);
            *record != change.id || is_named
        });
    }

    fn version(&self, id: &RecordId) -> u64 {
        self.agenda.get(id).map_or(0, |row| row.head.version)
    }

    fn due(&self, kind: RecordKind) -> impl Iterator<Item = (Timestamp, &RecordId)> {
        self.agenda
            .iter()
            .filter(move |(id, _)| id.kind() == kind)
            .filter_map(|(id, row)| row.due_at.map(|due_at| (due_at, id)))
    }

    /// The operations, by id.
    fn operations(&self) -> impl Iterator<Item = (&Operation, &Arc<Record>)> {
        self.views.values().filter_map(|record| Some((record.as_operation()?, record)))
    }
}

impl Store for MemoryStore {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        ready(check_facts(&commit).and_then(|()| self.commit_now(&commit)))
    }

    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimOutcome> {
        ready(self.tables().claim(&request))
    }

    fn write(&self, write: SideWrite) -> Reply<'_, bool> {
        ready(write.check().and_then(|()| self.tables().write(write)))
    }

    fn read(&self, request: ReadRequest) -> Reply<'_, ReadAnswer> {
        ready(self.tables().answer(&request))
    }
}

/// Where facts are text anyway this costs nothing; here they are encoded only to be measured.
fn check_facts(commit: &Commit) -> Result<(), StoreError> {
    let mut facts = commit.changes.iter().flat_map(|change| &change.facts);
    facts.try_for_each(|new| new.check_payload(&encode_fact(&new.fact)))
}

fn ready<'a, T: Send + 'a>(answer: Result<T, StoreError>) -> Reply<'a, T> {
    Box::pin(std::future::ready(answer))
}
