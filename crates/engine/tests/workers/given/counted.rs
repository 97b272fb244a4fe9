//! A memory store that counts what is asked of it, tells of every write, and can be told to misbehave.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::ask::{Ask, Closing};
use domain::job::JobStateName;
use domain::peer::{Peer, Sighting};
use domain::timeline::{Anchor, Step};
use domain::{BodyRef, Digest, Fence, JobId, Lease, Record, RecordId, RecordKind, Timestamp};
use futures::FutureExt;
use store::{
    AskQuery, AskStore, ClockStore, Commit, Committed, DuePlace, IdempotencyKey, JobQuery, KeptKey,
    KeptPluginFact, Lane, Loaded, MemoryStore, Node, Page, PeerPage, PeerQuery, PeerStore, PluginState,
    PluginStore, Reply, RoutingPage, RoutingQuery, RoutingStore, Store, StoreClock, StoreError, StoredFact,
    Take, Taken, Taking, Token,
};
use tokio::sync::Notify;

/// A memory store that counts what is asked of it and tells of every write.
#[derive(Default)]
pub struct Counted {
    pub inner: MemoryStore,
    /// So many commits are written and answered with "nobody knows".
    unknown: AtomicUsize,
    calls: AtomicU64,
    pub written: Notify,
    holds_commits: AtomicBool,
    commits_held: AtomicUsize,
    commits: AtomicUsize,
    refused_takes: AtomicUsize,
    /// So many questions for the newest run are answered as if they had come before it.
    overlooked_runs: AtomicUsize,
    /// The next commit or take is done and answered late.
    is_late: AtomicBool,
    late_answer: Notify,
    /// So many commits conflict.
    conflicts: AtomicUsize,
    most_taken: AtomicUsize,
    /// Of each commit: the events that it publishes, and the plugins whose state it holds.
    told: Mutex<Vec<(Vec<RecordId>, Vec<String>)>>,
}

impl Counted {
    /// The most due records that were ever given at once.
    pub fn most_taken(&self) -> usize {
        self.most_taken.load(Ordering::SeqCst)
    }

    /// Commits that were asked for so far.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// So many times nothing due can be taken.
    pub fn refuse_takes(&self, times: usize) {
        self.refused_takes.store(times, Ordering::SeqCst);
    }

    /// So many times there is no newest run yet.
    pub fn overlook_runs(&self, times: usize) {
        self.overlooked_runs.store(times, Ordering::SeqCst);
    }

    /// The plugins whose state is in the commit that published this event; none if there was no such commit.
    pub fn remembered_with(&self, event: &RecordId) -> Option<Vec<String>> {
        let told = self.told.lock().expect("no holder panics");
        told.iter().find(|(events, _)| events.contains(event)).map(|(_, plugins)| plugins.clone())
    }

    /// The next commit, or take of one record, is done at once and not answered before `answer_late`.
    pub fn be_late(&self) {
        self.is_late.store(true, Ordering::SeqCst);
    }

    /// The next commits conflict, as one does with another of its batch.
    pub fn conflict(&self, commits: usize) {
        self.conflicts.store(commits, Ordering::SeqCst);
    }

    pub fn answer_late(&self) {
        self.late_answer.notify_one();
    }

    fn in_time<T: Send + 'static>(&self, answer: Result<T, StoreError>) -> Reply<'_, T> {
        let is_late = self.is_late.swap(false, Ordering::SeqCst);
        Box::pin(async move {
            if is_late {
                self.late_answer.notified().await;
            }
            answer
        })
    }

    /// From now on no commit is answered.
    pub fn hold_commits(&self) {
        self.holds_commits.store(true, Ordering::SeqCst);
    }

    pub fn commits_held(&self) -> usize {
        self.commits_held.load(Ordering::SeqCst)
    }

    /// The next commits are written, and nobody is told.
    pub fn keep_silent_about(&self, commits: usize) {
        self.unknown.store(commits, Ordering::SeqCst);
    }

    /// How often anything was asked of it.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl ClockStore for Counted {
    fn clock(&self) -> Reply<'_, StoreClock> {
        self.count();
        self.inner.clock()
    }

    fn keep_clock(&self, anchor: Anchor, step: Option<Step>) -> Reply<'_, ()> {
        self.count();
        self.inner.keep_clock(anchor, step)
    }

    fn due_between(
        &self,
        kind: RecordKind,
        after: DuePlace,
        until: Timestamp,
        limit: usize,
    ) -> Reply<'_, Vec<(Timestamp, RecordId)>> {
        self.count();
        self.inner.due_between(kind, after, until, limit)
    }
}

impl PeerStore for Counted {
    fn keep_peer(&self, peer: Peer) -> Reply<'_, ()> {
        self.count();
        self.inner.keep_peer(peer)
    }

    fn peer<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Peer>> {
        self.count();
        self.inner.peer(id)
    }

    fn peers(&self, query: PeerQuery) -> Reply<'_, PeerPage> {
        self.count();
        self.inner.peers(query)
    }

    fn forget_peer<'a>(&'a self, id: &'a str, version: u64) -> Reply<'a, bool> {
        self.count();
        self.inner.forget_peer(id, version)
    }

    fn note_sightings(&self, sightings: Vec<Sighting>) -> Reply<'_, ()> {
        self.count();
        self.inner.note_sightings(sightings)
    }
}

impl RoutingStore for Counted {
    fn routing(&self, query: RoutingQuery) -> Reply<'_, RoutingPage> {
        self.count();
        self.inner.routing(query)
    }

    fn newest_run<'a>(&'a self, pipeline: &'a str, dedupe_key: &'a str) -> Reply<'a, Option<Arc<Record>>> {
        self.count();
        let one_less = |left: usize| left.checked_sub(1);
        if self.overlooked_runs.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Box::pin(std::future::ready(Ok(None)));
        }
        self.inner.newest_run(pipeline, dedupe_key)
    }
}

impl AskStore for Counted {
    fn keep_ask(&self, ask: Ask, replied: Option<Closing>) -> Reply<'_, bool> {
        self.count();
        self.inner.keep_ask(ask, replied)
    }

    fn ask<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Ask>> {
        self.count();
        self.inner.ask(id)
    }

    fn asks(&self, query: AskQuery) -> Reply<'_, Vec<Ask>> {
        self.count();
        self.inner.asks(query)
    }

    fn close_ask<'a>(&'a self, id: &'a str, closing: Closing) -> Reply<'a, bool> {
        self.count();
        self.inner.close_ask(id, closing)
    }
}

impl PluginStore for Counted {
    fn plugin_state<'a>(&'a self, plugin: &'a str) -> Reply<'a, Option<PluginState>> {
        self.count();
        self.inner.plugin_state(plugin)
    }

    fn plugin_facts<'a>(
        &'a self,
        plugin: &'a str,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<KeptPluginFact>> {
        self.count();
        self.inner.plugin_facts(plugin, after, limit)
    }
}

impl Store for Counted {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        self.count();
        if self.holds_commits.load(Ordering::SeqCst) {
            self.commits_held.fetch_add(1, Ordering::SeqCst);
            return Box::pin(std::future::pending());
        }
        self.commits.fetch_add(1, Ordering::SeqCst);
        let one_less = |left: usize| left.checked_sub(1);
        if self.conflicts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Box::pin(std::future::ready(Err(StoreError::Conflict)));
        }
        let mut answer = self.inner.commit_now(&commit);
        if answer.is_ok() {
            let new = commit.changes.iter().filter(|change| change.expected.version == 0);
            let events = new.filter(|change| matches!(&*change.record, Record::Event(_)));
            let events = events.map(|change| change.id.clone()).collect();
            let plugins = commit.plugin_states.iter().map(|change| change.plugin.clone()).collect();
            self.told.lock().expect("no holder panics").push((events, plugins));
        }
        if self.unknown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            answer = Err(StoreError::OutcomeUnknown);
        }
        self.written.notify_waiters();
        self.in_time(answer)
    }

    fn load<'a>(&'a self, id: &'a RecordId) -> Reply<'a, Option<Loaded>> {
        self.count();
        self.inner.load(id)
    }

    fn body<'a>(&'a self, id: &'a RecordId, body: BodyRef) -> Reply<'a, Option<Vec<u8>>> {
        self.count();
        self.inner.body(id, body)
    }

    fn key<'a>(&'a self, key: &'a IdempotencyKey) -> Reply<'a, Option<KeptKey>> {
        self.count();
        self.inner.key(key)
    }

    fn jobs(&self, query: JobQuery) -> Reply<'_, Page> {
        self.count();
        self.inner.jobs(query)
    }

    fn job_counts(&self) -> Reply<'_, Vec<(JobStateName, u64)>> {
        self.count();
        self.inner.job_counts()
    }

    fn open_jobs<'a>(&'a self, executor: &'a str) -> Reply<'a, store::OpenJobs> {
        self.count();
        self.inner.open_jobs(executor)
    }

    fn operations_of<'a>(&'a self, job: &'a JobId, limit: usize) -> Reply<'a, Vec<Arc<Record>>> {
        self.count();
        self.inner.operations_of(job, limit)
    }

    fn orphans(&self, after: Option<store::OrphanCursor>, limit: usize) -> Reply<'_, Vec<Arc<Record>>> {
        self.count();
        self.inner.orphans(after, limit)
    }

    fn orphan_count(&self) -> Reply<'_, u64> {
        self.count();
        self.inner.orphan_count()
    }

    fn facts_of<'a>(&'a self, id: &'a RecordId, after: u64, limit: usize) -> Reply<'a, Vec<StoredFact>> {
        self.count();
        self.inner.facts_of(id, after, limit)
    }

    fn facts_after(&self, position: u64, limit: usize) -> Reply<'_, Vec<StoredFact>> {
        self.count();
        self.inner.facts_after(position, limit)
    }

    fn take_due(&self, kind: RecordKind, take: Take) -> Reply<'_, Vec<Taken>> {
        self.count();
        let one_less = |left: usize| left.checked_sub(1);
        if self.refused_takes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Box::pin(std::future::ready(Err(StoreError::Unavailable("it is away".to_owned()))));
        }
        Box::pin(async move {
            let taken = self.inner.take_due(kind, take).await?;
            self.most_taken.fetch_max(taken.len(), Ordering::SeqCst);
            Ok(taken)
        })
    }

    fn take_ready<'a>(&'a self, lane: Lane<'a>, take: Take) -> Reply<'a, Vec<Taken>> {
        self.count();
        self.inner.take_ready(lane, take)
    }

    fn take<'a>(&'a self, id: &'a RecordId, take: Take) -> Reply<'a, Taken> {
        self.count();
        let taken = self.inner.take(id, take).now_or_never().expect("memory answers at once");
        self.in_time(taken)
    }

    fn renew<'a>(&'a self, id: &'a RecordId, fence: Fence, now: Timestamp, lease: Lease) -> Reply<'a, Taken> {
        self.count();
        self.inner.renew(id, fence, now, lease)
    }

    fn hand_back<'a>(
        &'a self,
        id: &'a RecordId,
        fence: Fence,
        now: Timestamp,
        due_at: Timestamp,
    ) -> Reply<'a, ()> {
        self.count();
        self.inner.hand_back(id, fence, now, due_at)
    }

    fn ready_lanes(&self) -> Reply<'_, Vec<Arc<str>>> {
        self.count();
        self.inner.ready_lanes()
    }

    fn earliest_due(&self, kind: RecordKind) -> Reply<'_, Option<Timestamp>> {
        self.count();
        self.inner.earliest_due(kind)
    }

    fn keep_token(&self, token: Token) -> Reply<'_, ()> {
        self.count();
        self.inner.keep_token(token)
    }

    fn token<'a>(&'a self, sha256: &'a Digest) -> Reply<'a, Option<Token>> {
        self.count();
        self.inner.token(sha256)
    }

    fn tokens(&self) -> Reply<'_, Vec<Token>> {
        self.count();
        self.inner.tokens()
    }

    fn revoke_token<'a>(&'a self, id: &'a str, at: Timestamp) -> Reply<'a, bool> {
        self.count();
        self.inner.revoke_token(id, at)
    }

    fn keep_node(&self, node: Node, forget_before: Timestamp) -> Reply<'_, ()> {
        self.count();
        self.inner.keep_node(node, forget_before)
    }

    fn nodes(&self) -> Reply<'_, Vec<Node>> {
        self.count();
        self.inner.nodes()
    }

    fn tell_node<'a>(&'a self, id: &'a str, taking: Taking) -> Reply<'a, bool> {
        self.count();
        self.inner.tell_node(id, taking)
    }

    fn remove_node<'a>(&'a self, id: &'a str) -> Reply<'a, ()> {
        self.count();
        self.inner.remove_node(id)
    }
}
