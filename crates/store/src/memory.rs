//! `MemoryStore`: the model of the contract, small enough to be checked by eye. It keeps nothing over a restart.
//!
//! Where a database has an index, this walks everything: it is for tests and the simulator, with few records.

mod asks;
mod clock;
mod keys;
mod nodes;
mod peers;
mod plugin_state;
mod routing;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use domain::job::{JobStateName, anywhere};
use domain::operation::Operation;
use domain::peer::Peer;
use domain::planted::{Bug, planted};
use domain::{BodyRef, Digest, Fact, Fence, JobId, Lease, Record, RecordId, RecordKind, Timestamp};

use crate::commit::limits::{MAX_FACT_BYTES, MAX_PAGE};
use crate::query::Head;
use crate::{
    AgendaRow, Change, Checksum, Commit, Committed, Cursor, IdempotencyKey, JobQuery, KeptKey, Lane, Leading,
    Loaded, Node, OpenJobs, OrphanCursor, Page, PageWalk, Removal, Reply, Store, StoreClock, StoreError,
    StoredFact, Take, Taken, Taking, Token, encode_fact,
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
    /// The peers, by id.
    pub peers: BTreeMap<String, Peer>,
    /// The asks, by correlation id.
    pub asks: BTreeMap<String, KeptAsk>,
    /// What plugins remember, by name.
    pub plugins: BTreeMap<String, KeptPlugin>,
    /// What it knows of its time.
    pub clock: StoreClock,
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
        let now = self.clock.steps.carried(commit.at);
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
        self.remove(&change.id, change.removal, commit.at);
    }

    fn remove(&mut self, id: &RecordId, removal: Removal, at: Timestamp) {
        match removal {
            Removal::Nothing => {}
            Removal::Bodies => self.bodies.retain(|(record, _, _), _| record != id),
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

    fn version(&self, id: &RecordId) -> u64 {
        self.agenda.get(id).map_or(0, |row| row.head.version)
    }

    fn due(&self, kind: RecordKind) -> impl Iterator<Item = (Timestamp, &RecordId)> {
        self.agenda
            .iter()
            .filter(move |(id, _)| id.kind() == kind)
            .filter_map(|(id, row)| row.due_at.map(|due_at| (due_at, id)))
    }

    fn take(&mut self, ids: impl IntoIterator<Item = RecordId>, take: &Take) -> Vec<Taken> {
        let mut taken = Vec::new();
        let now = self.clock.steps.carried(take.now);
        for id in ids {
            let Some(row) = self.agenda.get_mut(&id) else { continue };
            // A record that someone else holds is skipped, never waited for.
            if let Ok(claim) = row.take(take.owner_after(taken.len()), now, take.lease) {
                taken.push(Taken { id, claim });
            }
        }
        taken
    }

    /// The operations, by id.
    fn operations(&self) -> impl Iterator<Item = (&Operation, &Arc<Record>)> {
        self.views.values().filter_map(|record| match record.as_ref() {
            Record::Operation(operation) => Some((&**operation, record)),
            Record::Job(_) | Record::Event(_) | Record::Run(_) => None,
        })
    }

    fn jobs(&self, query: &JobQuery) -> Page {
        let mut examined: Vec<(Cursor, bool)> = Vec::new();
        for record in self.views.values() {
            let Record::Job(job) = record.as_ref() else { continue };
            let fits = query.filter.fits(job);
            let is_led = match query.filter.leading() {
                Leading::Session(id) => job.spec.session_id.as_deref() == Some(id),
                Leading::Owner(id) => job.spec.owner_peer_id.as_deref() == Some(id),
                Leading::Creator(id) => job.spec.created_by_peer_id.as_deref() == Some(id),
                Leading::Circle(circle) => job.spec.circle.as_deref() == Some(circle),
                Leading::States => fits,
            };
            let cursor = Cursor { updated_at: job.updated_at, id: job.id.clone() };
            if is_led && query.after.as_ref().is_none_or(|after| cursor < *after) {
                examined.push((cursor, fits));
            }
        }
        examined.sort_by(|(a, _), (b, _)| b.cmp(a));
        let mut walk = PageWalk::new(query.limit);
        for (cursor, fits) in examined {
            if !walk.look_at(cursor, fits) {
                break;
            }
        }
        let (found, next) = walk.finish();
        let jobs = found.into_iter().map(|cursor| self.views[&RecordId::Job(cursor.id)].clone()).collect();
        Page { jobs, next }
    }
}

impl Store for MemoryStore {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        ready(check_facts(&commit).and_then(|()| self.commit_now(&commit)))
    }

    fn load<'a>(&'a self, id: &'a RecordId) -> Reply<'a, Option<Loaded>> {
        let tables = self.tables();
        let loaded = tables.views.get(id).zip(tables.agenda.get(id)).map(|(record, row)| Loaded {
            record: record.clone(),
            head: row.head,
            claim: row.claim.clone(),
        });
        ready(Ok(loaded))
    }

    fn body<'a>(&'a self, id: &'a RecordId, body: BodyRef) -> Reply<'a, Option<Vec<u8>>> {
        let place = (id.clone(), body.name.as_str(), body.sha256);
        ready(Ok(self.tables().bodies.get(&place).map(|bytes| bytes.to_vec())))
    }

    fn key<'a>(&'a self, key: &'a IdempotencyKey) -> Reply<'a, Option<KeptKey>> {
        ready(Ok(self.tables().keys.get(key).cloned()))
    }

    fn jobs(&self, query: JobQuery) -> Reply<'_, Page> {
        ready(Ok(self.tables().jobs(&query)))
    }

    fn job_counts(&self) -> Reply<'_, Vec<(JobStateName, u64)>> {
        let mut counts = BTreeMap::new();
        for record in self.tables().views.values() {
            if let Record::Job(job) = record.as_ref() {
                *counts.entry(job.state.name()).or_insert(0) += 1;
            }
        }
        ready(Ok(counts.into_iter().collect()))
    }

    fn open_jobs<'a>(&'a self, executor: &'a str) -> Reply<'a, OpenJobs> {
        let mut open = OpenJobs::default();
        for record in self.tables().views.values() {
            let Record::Job(job) = record.as_ref() else { continue };
            let Some(named) = job.spec.executor.as_deref().filter(|_| !job.state.name().is_terminal()) else {
                continue;
            };
            open.total += 1;
            open.of_executor += u64::from(named == executor);
        }
        ready(Ok(open))
    }

    fn operations_of<'a>(&'a self, job: &'a JobId, limit: usize) -> Reply<'a, Vec<Arc<Record>>> {
        let tables = self.tables();
        let mut of_job: Vec<_> =
            tables.operations().filter(|(operation, _)| operation.link.job_id == *job).collect();
        of_job.sort_by_key(|(operation, _)| std::cmp::Reverse((operation.updated_at, &operation.id)));
        ready(Ok(of_job.into_iter().take(limit.min(MAX_PAGE)).map(|(_, record)| record.clone()).collect()))
    }

    fn orphans(&self, after: Option<OrphanCursor>, limit: usize) -> Reply<'_, Vec<Arc<Record>>> {
        let tables = self.tables();
        let mut orphans: Vec<_> = tables
            .operations()
            .filter_map(|(operation, record)| Some((OrphanCursor::of(operation)?, record.clone())))
            .filter(|(cursor, _)| after.as_ref().is_none_or(|after| cursor > after))
            .collect();
        orphans.sort_by(|(a, _), (b, _)| a.cmp(b));
        orphans.truncate(limit.min(MAX_PAGE));
        ready(Ok(orphans.into_iter().map(|(_, record)| record).collect()))
    }

    fn orphan_count(&self) -> Reply<'_, u64> {
        let tables = self.tables();
        ready(Ok(tables.operations().filter(|(operation, _)| operation.orphan().is_some()).count() as u64))
    }

    fn facts_of<'a>(
        &'a self,
        id: &'a RecordId,
        after_version: u64,
        limit: usize,
    ) -> Reply<'a, Vec<StoredFact>> {
        let tables = self.tables();
        let positions = tables.streams.get(id).into_iter().flatten();
        let facts = positions
            .filter(|(version, _)| **version > after_version)
            .take(limit.min(MAX_PAGE))
            .map(|(_, position)| tables.facts[position].clone())
            .collect();
        ready(Ok(facts))
    }

    fn facts_after(&self, position: u64, limit: usize) -> Reply<'_, Vec<StoredFact>> {
        let tables = self.tables();
        let after = tables.facts.range(position.saturating_add(1)..);
        ready(Ok(after.take(limit.min(MAX_PAGE)).map(|(_, fact)| fact.clone()).collect()))
    }

    fn take_due(&self, kind: RecordKind, take: Take) -> Reply<'_, Vec<Taken>> {
        let mut tables = self.tables();
        let mut due: Vec<_> = tables.due(kind).filter(|(due_at, _)| *due_at <= take.now).collect();
        due.sort();
        due.truncate(take.limit.min(MAX_PAGE));
        let ids: Vec<RecordId> = due.into_iter().map(|(_, id)| id.clone()).collect();
        ready(Ok(tables.take(ids, &take)))
    }

    fn take_ready<'a>(&'a self, lane: Lane<'a>, take: Take) -> Reply<'a, Vec<Taken>> {
        let mut tables = self.tables();
        let usual = anywhere(lane.name);
        let counts =
            |row: &&AgendaRow| row.place.as_ref().is_some_and(|place| anywhere(&place.lane) == usual);
        let held = tables.agenda.values().filter(counts).filter(|row| row.held).count();
        let free = lane.limit.map_or(usize::MAX, |limit| limit.saturating_sub(held));
        let mut waiting: Vec<_> = tables
            .agenda
            .iter()
            .filter(|(_, row)| row.ready)
            .filter_map(|(id, row)| row.place.as_ref().map(|place| (place, id)))
            .filter(|(place, _)| &*place.lane == lane.name)
            .map(|(place, id)| ((-place.priority, place.sequence), id.clone()))
            .collect();
        waiting.sort();
        if planted(Bug::YoungestFirst) {
            waiting.reverse();
        }
        waiting.truncate(take.limit.min(MAX_PAGE).min(free));
        ready(Ok(tables.take(waiting.into_iter().map(|(_, id)| id), &take)))
    }

    fn take<'a>(&'a self, id: &'a RecordId, take: Take) -> Reply<'a, Taken> {
        let mut tables = self.tables();
        let now = tables.clock.steps.carried(take.now);
        let taken = match tables.agenda.get_mut(id) {
            None => Err(StoreError::UnknownRecord),
            Some(row) => row
                .take(&take.owner, now, take.lease)
                .map(|claim| Taken { id: id.clone(), claim })
                .map_err(StoreError::from),
        };
        ready(taken)
    }

    fn renew<'a>(&'a self, id: &'a RecordId, fence: Fence, now: Timestamp, lease: Lease) -> Reply<'a, Taken> {
        let mut tables = self.tables();
        let now = tables.clock.steps.carried(now);
        let renewed = match tables.agenda.get_mut(id) {
            None => Err(StoreError::UnknownRecord),
            Some(row) => row
                .renew(&fence, now, lease)
                .map(|claim| Taken { id: id.clone(), claim })
                .map_err(StoreError::from),
        };
        ready(renewed)
    }

    fn hand_back<'a>(
        &'a self,
        id: &'a RecordId,
        fence: Fence,
        now: Timestamp,
        due_at: Timestamp,
    ) -> Reply<'a, ()> {
        let mut tables = self.tables();
        let handed = match tables.agenda.get_mut(id) {
            None => Err(StoreError::UnknownRecord),
            Some(row) => row.hand_back(&fence, now, due_at).map_err(StoreError::from),
        };
        ready(handed)
    }

    fn ready_lanes(&self) -> Reply<'_, Vec<Arc<str>>> {
        let tables = self.tables();
        let ready = tables.agenda.values().filter(|row| row.ready);
        let lanes: BTreeSet<_> = ready.filter_map(|row| Some(row.place.as_ref()?.lane.clone())).collect();
        self::ready(Ok(lanes.into_iter().collect()))
    }

    fn earliest_due(&self, kind: RecordKind) -> Reply<'_, Option<Timestamp>> {
        ready(Ok(self.tables().due(kind).map(|(due_at, _)| due_at).min()))
    }

    fn keep_token(&self, token: Token) -> Reply<'_, ()> {
        ready(self.tables().keep_token(token))
    }

    fn token<'a>(&'a self, sha256: &'a Digest) -> Reply<'a, Option<Token>> {
        ready(Ok(self.tables().token(sha256)))
    }

    fn tokens(&self) -> Reply<'_, Vec<Token>> {
        ready(Ok(self.tables().tokens.clone()))
    }

    fn revoke_token<'a>(&'a self, id: &'a str, at: Timestamp) -> Reply<'a, bool> {
        ready(Ok(self.tables().revoke_token(id, at)))
    }

    fn keep_node(&self, node: Node, forget_before: Timestamp) -> Reply<'_, ()> {
        ready(self.tables().keep_node(node, forget_before))
    }

    fn nodes(&self) -> Reply<'_, Vec<Node>> {
        let mut nodes: Vec<Node> = self.tables().nodes.values().cloned().collect();
        nodes.sort_by(|a, b| (b.started_at, &a.id).cmp(&(a.started_at, &b.id)));
        nodes.truncate(crate::MAX_NODES);
        ready(Ok(nodes))
    }

    fn tell_node<'a>(&'a self, id: &'a str, taking: Taking) -> Reply<'a, bool> {
        ready(Ok(self.tables().tell_node(id, taking)))
    }

    fn remove_node<'a>(&'a self, id: &'a str) -> Reply<'a, ()> {
        self.tables().nodes.remove(id);
        ready(Ok(()))
    }
}

/// Where facts are text anyway this costs nothing; here they are encoded only to be measured.
fn check_facts(commit: &Commit) -> Result<(), StoreError> {
    let mut facts = commit.changes.iter().flat_map(|change| &change.facts);
    if facts.any(|new| encode_fact(&new.fact).len() > MAX_FACT_BYTES) {
        return Err(StoreError::TooLarge { what: "fact", limit: MAX_FACT_BYTES });
    }
    Ok(())
}

fn ready<'a, T: Send + 'a>(answer: Result<T, StoreError>) -> Reply<'a, T> {
    Box::pin(std::future::ready(answer))
}
