//! A store whose answers to commits follow a script, and that remembers every commit that it was given.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::ask::{Ask, Closing};
use domain::job::JobStateName;
use domain::peer::{Peer, Sighting};
use domain::timeline::{Anchor, Step};
use domain::{BodyRef, Digest, Fence, Lease, Record, RecordId, RecordKind, Timestamp};
use engine::{Engine, Order};
use store::{
    AskQuery, AskStore, ClockStore, Commit, Committed, DuePlace, IdempotencyKey, JobQuery, KeptKey,
    KeptPluginFact, Lane, Loaded, MemoryStore, Node, Page, PeerPage, PeerQuery, PeerStore, PluginState,
    PluginStore, Remembered, Reply, RoutingPage, RoutingQuery, RoutingStore, Store, StoreClock, StoreError,
    StoredFact, Take, Taken, Taking, Token,
};

/// What becomes of one commit.
pub enum Act {
    /// It is written, and this is answered.
    ApplyAndSay(StoreError),
    /// It is not written, and this is answered.
    Say(StoreError),
    /// Other orders are carried out first.
    LetFirst(Engine, Vec<Order>),
}

#[derive(Default)]
pub struct Scripted {
    pub inner: Arc<MemoryStore>,
    script: Mutex<VecDeque<Act>>,
    before_load: Mutex<Option<(Engine, Order)>>,
    commits: Mutex<Vec<Commit>>,
    remembered: Mutex<BTreeMap<RecordId, Remembered>>,
    loads: AtomicUsize,
}

impl Scripted {
    /// The next commits go so; after that they pass.
    pub fn next_commits(&self, acts: impl IntoIterator<Item = Act>) {
        self.script.lock().unwrap().extend(acts);
    }

    /// Before the next load another order is carried out.
    pub fn before_next_load(&self, engine: Engine, order: Order) {
        *self.before_load.lock().unwrap() = Some((engine, order));
    }

    /// From now on it remembers the record as it is now.
    pub async fn remember(&self, id: impl Into<RecordId>) {
        let id = id.into();
        let Loaded { record, head, .. } = self.inner.load(&id).await.unwrap().unwrap();
        let remembered = Remembered { record, head, bodies: Vec::new() };
        self.remembered.lock().unwrap().insert(id, remembered);
    }

    /// How many records were loaded so far.
    pub fn loads(&self) -> usize {
        self.loads.load(Ordering::Relaxed)
    }

    /// The commits since the last time that this was asked.
    pub fn commits(&self) -> Vec<Commit> {
        std::mem::take(&mut self.commits.lock().unwrap())
    }
}

impl ClockStore for Scripted {
    fn clock(&self) -> Reply<'_, StoreClock> {
        self.inner.clock()
    }

    fn keep_clock(&self, anchor: Anchor, step: Option<Step>) -> Reply<'_, ()> {
        self.inner.keep_clock(anchor, step)
    }

    fn due_between(
        &self,
        kind: RecordKind,
        after: DuePlace,
        until: Timestamp,
        limit: usize,
    ) -> Reply<'_, Vec<(Timestamp, RecordId)>> {
        self.inner.due_between(kind, after, until, limit)
    }
}

impl PeerStore for Scripted {
    fn keep_peer(&self, peer: Peer) -> Reply<'_, ()> {
        self.inner.keep_peer(peer)
    }

    fn peer<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Peer>> {
        self.inner.peer(id)
    }

    fn peers(&self, query: PeerQuery) -> Reply<'_, PeerPage> {
        self.inner.peers(query)
    }

    fn forget_peer<'a>(&'a self, id: &'a str, version: u64) -> Reply<'a, bool> {
        self.inner.forget_peer(id, version)
    }

    fn note_sightings(&self, sightings: Vec<Sighting>) -> Reply<'_, ()> {
        self.inner.note_sightings(sightings)
    }
}

impl RoutingStore for Scripted {
    fn routing(&self, query: RoutingQuery) -> Reply<'_, RoutingPage> {
        self.inner.routing(query)
    }

    fn newest_run<'a>(&'a self, pipeline: &'a str, dedupe_key: &'a str) -> Reply<'a, Option<Arc<Record>>> {
        self.inner.newest_run(pipeline, dedupe_key)
    }
}

impl AskStore for Scripted {
    fn keep_ask(&self, ask: Ask, replied: Option<Closing>) -> Reply<'_, bool> {
        self.inner.keep_ask(ask, replied)
    }

    fn ask<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Ask>> {
        self.inner.ask(id)
    }

    fn asks(&self, query: AskQuery) -> Reply<'_, Vec<Ask>> {
        self.inner.asks(query)
    }

    fn close_ask<'a>(&'a self, id: &'a str, closing: Closing) -> Reply<'a, bool> {
        self.inner.close_ask(id, closing)
    }
}

impl PluginStore for Scripted {
    fn plugin_state<'a>(&'a self, plugin: &'a str) -> Reply<'a, Option<PluginState>> {
        self.inner.plugin_state(plugin)
    }

    fn plugin_facts<'a>(
        &'a self,
        plugin: &'a str,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<KeptPluginFact>> {
        self.inner.plugin_facts(plugin, after, limit)
    }
}

impl Store for Scripted {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        self.commits.lock().unwrap().push(commit.clone());
        let act = self.script.lock().unwrap().pop_front();
        Box::pin(async move {
            match act {
                None => self.inner.commit(commit).await,
                Some(Act::Say(error)) => Err(error),
                Some(Act::ApplyAndSay(error)) => self.inner.commit(commit).await.and(Err(error)),
                Some(Act::LetFirst(engine, orders)) => {
                    for order in orders {
                        engine.execute(order).await.unwrap();
                    }
                    self.inner.commit(commit).await
                }
            }
        })
    }

    fn load<'a>(&'a self, id: &'a RecordId) -> Reply<'a, Option<Loaded>> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        let first = self.before_load.lock().unwrap().take();
        Box::pin(async move {
            if let Some((engine, order)) = first {
                engine.execute(order).await.unwrap();
            }
            self.inner.load(id).await
        })
    }

    fn remembered(&self, id: &RecordId) -> Option<Remembered> {
        self.remembered.lock().unwrap().get(id).cloned()
    }

    fn body<'a>(&'a self, id: &'a RecordId, body: BodyRef) -> Reply<'a, Option<Vec<u8>>> {
        self.inner.body(id, body)
    }

    fn key<'a>(&'a self, key: &'a IdempotencyKey) -> Reply<'a, Option<KeptKey>> {
        self.inner.key(key)
    }

    fn jobs(&self, query: JobQuery) -> Reply<'_, Page> {
        self.inner.jobs(query)
    }

    fn job_counts(&self) -> Reply<'_, Vec<(JobStateName, u64)>> {
        self.inner.job_counts()
    }

    fn open_jobs<'a>(&'a self, executor: &'a str) -> Reply<'a, store::OpenJobs> {
        self.inner.open_jobs(executor)
    }

    fn operations_of<'a>(&'a self, job: &'a domain::JobId, limit: usize) -> Reply<'a, Vec<Arc<Record>>> {
        self.inner.operations_of(job, limit)
    }

    fn orphans(&self, after: Option<store::OrphanCursor>, limit: usize) -> Reply<'_, Vec<Arc<Record>>> {
        self.inner.orphans(after, limit)
    }

    fn orphan_count(&self) -> Reply<'_, u64> {
        self.inner.orphan_count()
    }

    fn facts_of<'a>(&'a self, id: &'a RecordId, after: u64, limit: usize) -> Reply<'a, Vec<StoredFact>> {
        self.inner.facts_of(id, after, limit)
    }

    fn facts_after(&self, position: u64, limit: usize) -> Reply<'_, Vec<StoredFact>> {
        self.inner.facts_after(position, limit)
    }

    fn take_due(&self, kind: RecordKind, take: Take) -> Reply<'_, Vec<Taken>> {
        self.inner.take_due(kind, take)
    }

    fn take_ready<'a>(&'a self, lane: Lane<'a>, take: Take) -> Reply<'a, Vec<Taken>> {
        self.inner.take_ready(lane, take)
    }

    fn take<'a>(&'a self, id: &'a RecordId, take: Take) -> Reply<'a, Taken> {
        self.inner.take(id, take)
    }

    fn renew<'a>(&'a self, id: &'a RecordId, fence: Fence, now: Timestamp, lease: Lease) -> Reply<'a, Taken> {
        self.inner.renew(id, fence, now, lease)
    }

    fn hand_back<'a>(
        &'a self,
        id: &'a RecordId,
        fence: Fence,
        now: Timestamp,
        due_at: Timestamp,
    ) -> Reply<'a, ()> {
        self.inner.hand_back(id, fence, now, due_at)
    }

    fn ready_lanes(&self) -> Reply<'_, Vec<Arc<str>>> {
        self.inner.ready_lanes()
    }

    fn earliest_due(&self, kind: RecordKind) -> Reply<'_, Option<Timestamp>> {
        self.inner.earliest_due(kind)
    }

    fn keep_token(&self, token: Token) -> Reply<'_, ()> {
        self.inner.keep_token(token)
    }

    fn token<'a>(&'a self, sha256: &'a Digest) -> Reply<'a, Option<Token>> {
        self.inner.token(sha256)
    }

    fn tokens(&self) -> Reply<'_, Vec<Token>> {
        self.inner.tokens()
    }

    fn revoke_token<'a>(&'a self, id: &'a str, at: Timestamp) -> Reply<'a, bool> {
        self.inner.revoke_token(id, at)
    }

    fn keep_node(&self, node: Node, forget_before: Timestamp) -> Reply<'_, ()> {
        self.inner.keep_node(node, forget_before)
    }

    fn nodes(&self) -> Reply<'_, Vec<Node>> {
        self.inner.nodes()
    }

    fn tell_node<'a>(&'a self, id: &'a str, taking: Taking) -> Reply<'a, bool> {
        self.inner.tell_node(id, taking)
    }

    fn remove_node<'a>(&'a self, id: &'a str) -> Reply<'a, ()> {
        self.inner.remove_node(id)
    }
}
