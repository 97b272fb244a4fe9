//! The contract of the store: what may be committed and read, and `MemoryStore`, the model of it.
//!
//! A commit is the unit of atomicity and may span records. The ledger of facts is the truth; views, agenda and
//! bodies are written with the facts, in one transaction. Nothing here decides what may happen to a record.

mod agenda;
mod artifacts;
mod asks;
mod body_check;
mod checksum;
mod clock;
mod codec;
mod commit;
mod error;
mod facts;
mod failpoint;
mod keys;
mod memory;
mod nodes;
mod peers;
mod plugin_state;
mod query;
mod routing;
mod tokens;
mod upcast;
mod view;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use domain::{Digest, Fence, JobId, Lease, OwnerId, Record, RecordId, RecordKind, Timestamp};

pub use agenda::{AgendaRow, Taken};
pub use artifacts::{ARTIFACT_CHUNK_BYTES, ArtifactName, MAX_SHARED_ARTIFACT_BYTES, SharedArtifacts};
pub use asks::{AskQuery, AskStore, Direction, check_ask, too_many_asks};
pub use body_check::{BodyDamage, check_body, damaged_body_reads};
pub use checksum::{Checksum, FactText, body_ref, sha256};
pub use clock::{ClockStore, Correction, DuePlace, SeenSteps, StoreClock};
pub use codec::{CodecError, decode_fact, encode_fact, fact_kind};
pub use commit::{Change, Commit, Committed, NewBody, NewFact, Removal, Urgency, limits};
pub use error::StoreError;
pub use facts::{FactId, StoredFact};
pub use failpoint::failpoint;
pub use keys::{IdempotencyKey, KeptKey};
pub use memory::{KeptAsk, KeptPlugin, MemoryStore, Tables};
pub use nodes::{
    MAX_NODE_EXECUTORS, MAX_NODE_TEXT_BYTES, MAX_NODES, Node, Pulse, Ready, SILENT_AFTER_SECONDS,
    SharedStore, Taking,
};
pub use peers::{
    MAX_SIGHTINGS, OfCircle, PeerPage, PeerQuery, PeerStore, check_peer, check_sightings, decode_words,
    encode_words, too_many_peers,
};
pub use plugin_state::{
    KEPT_PLUGIN_FACTS, KeptPluginFact, MAX_NEW_PLUGIN_FACTS, MAX_PLUGIN_STATE_BYTES, MAX_PLUGIN_STATES,
    PluginFact, PluginState, PluginStateChange, PluginStore,
};
pub use query::{
    Cursor, Head, JobFilter, JobQuery, Leading, Loaded, OpenJobs, OrphanCursor, Page, PageWalk, Remembered,
};
pub use routing::{
    RoutedKind, RoutingCursor, RoutingPage, RoutingQuery, RoutingStore, RoutingWalk, routing_columns,
};
pub use tokens::{MAX_TOKEN_SCOPES, MAX_TOKEN_TEXT_CHARS, MAX_TOKENS, Token};
pub use view::{
    JobColumns, OperationColumns, RoutingColumns, VIEW_FORMAT, decode_sealed_view, decode_view, encode_view,
    seal_view,
};

/// What a store answers, later.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where the records live.
pub trait Store: PeerStore + AskStore + RoutingStore + PluginStore + ClockStore + Send + Sync {
    /// Writes a commit, all or nothing, and answers only when it is on stable storage.
    ///
    /// Safe to repeat word for word as long as its records are kept: a commit whose facts are there already, under the
    /// same ids, is answered as done. Once a record was retired its facts are gone and a repeat would be taken for a new
    /// commit. Whoever repeats does so within seconds; records are kept for days after their end.
    fn commit(&self, commit: Commit) -> Reply<'_, Committed>;

    /// One record with the head of its stream and its claim.
    fn load<'a>(&'a self, id: &'a RecordId) -> Reply<'a, Option<Loaded>>;
    /// What this process knows of a record without a read; nothing if a read costs as little.
    fn remembered(&self, _: &RecordId) -> Option<Remembered> {
        None
    }
    /// The bytes of one body, checked against the reference; none if the record does not store it, or not any more. `BodyDamaged` if
    /// the bytes are others, or are missing although the record says that they are stored.
    fn body<'a>(&'a self, id: &'a RecordId, body: domain::BodyRef) -> Reply<'a, Option<Vec<u8>>>;
    /// What was answered under an idempotency key.
    fn key<'a>(&'a self, key: &'a IdempotencyKey) -> Reply<'a, Option<KeptKey>>;
    /// Jobs that fit, newest change first, a page at a time. A page may be short: only one without `next` is the last.
    fn jobs(&self, query: JobQuery) -> Reply<'_, Page>;
    /// How many jobs are in each state.
    fn job_counts(&self) -> Reply<'_, Vec<(domain::job::JobStateName, u64)>>;
    /// How many jobs are not over, of those that name an executor: of this one, and in all.
    fn open_jobs<'a>(&'a self, executor: &'a str) -> Reply<'a, OpenJobs>;
    /// The operations of one job, newest change first.
    fn operations_of<'a>(&'a self, job: &'a JobId, limit: usize) -> Reply<'a, Vec<Arc<Record>>>;
    /// The operations that may still run outside although they are over here, oldest end first, after a place in that list.
    fn orphans(&self, after: Option<OrphanCursor>, limit: usize) -> Reply<'_, Vec<Arc<Record>>>;
    /// How many those are.
    fn orphan_count(&self) -> Reply<'_, u64>;
    /// The facts of one record after a version, oldest first.
    fn facts_of<'a>(
        &'a self,
        id: &'a RecordId,
        after_version: u64,
        limit: usize,
    ) -> Reply<'a, Vec<StoredFact>>;
    /// The facts of all records after a position, in the order of their commits.
    fn facts_after(&self, position: u64, limit: usize) -> Reply<'_, Vec<StoredFact>>;

    /// Takes records that are due: a lease each, oldest first.
    fn take_due(&self, kind: RecordKind, take: Take) -> Reply<'_, Vec<Taken>>;
    /// Takes jobs that are ready in a lane: a lease each, by priority and age, and no more than its limit leaves.
    fn take_ready<'a>(&'a self, lane: Lane<'a>, take: Take) -> Reply<'a, Vec<Taken>>;
    /// Takes one record, if nobody holds it.
    fn take<'a>(&'a self, id: &'a RecordId, take: Take) -> Reply<'a, Taken>;
    /// Prolongs a lease; the fence that comes back replaces the old one.
    fn renew<'a>(&'a self, id: &'a RecordId, fence: Fence, now: Timestamp, lease: Lease) -> Reply<'a, Taken>;
    /// Gives a record back before its lease ends; it is due when the giver says, or earlier by its own limit. One that was
    /// released already stays as it is.
    fn hand_back<'a>(
        &'a self,
        id: &'a RecordId,
        fence: Fence,
        now: Timestamp,
        due_at: Timestamp,
    ) -> Reply<'a, ()>;
    /// The lanes in which something is ready, each named once.
    fn ready_lanes(&self) -> Reply<'_, Vec<Arc<str>>>;
    /// When the next record of this kind is due.
    fn earliest_due(&self, kind: RecordKind) -> Reply<'_, Option<Timestamp>>;

    /// Keeps an access token. Its id and its digest are new, or it is a `Conflict`; `TooLarge` if all are in use.
    fn keep_token(&self, token: Token) -> Reply<'_, ()>;
    /// The token with this digest, revoked or not.
    fn token<'a>(&'a self, sha256: &'a Digest) -> Reply<'a, Option<Token>>;
    /// All tokens, oldest first: at most `MAX_TOKENS`.
    fn tokens(&self) -> Reply<'_, Vec<Token>>;
    /// Takes a token back; false if there is no such token. The first time counts.
    fn revoke_token<'a>(&'a self, id: &'a str, at: Timestamp) -> Reply<'a, bool>;

    /// Writes down that a node lives, and forgets those that were not heard of since. Whether it takes work stays as it is.
    fn keep_node(&self, node: Node, forget_before: Timestamp) -> Reply<'_, ()>;
    /// The nodes that were heard of, newest first: at most `MAX_NODES`.
    fn nodes(&self) -> Reply<'_, Vec<Node>>;
    /// Orders a node to take work or not; false if it is not known.
    fn tell_node<'a>(&'a self, id: &'a str, taking: Taking) -> Reply<'a, bool>;
    /// A node has ended.
    fn remove_node<'a>(&'a self, id: &'a str) -> Reply<'a, ()>;
}

/// A lane, and its limit.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many of its jobs may be held at the same time, whoever holds them; none if only their takers know. Those of all lanes that
    /// are the same but for the node that they are pinned to count together.
    pub limit: Option<usize>,
}

impl<'a> From<&'a str> for Lane<'a> {
    /// A lane without a limit.
    fn from(name: &'a str) -> Self {
        Self { name, limit: None }
    }
}

/// Who takes, when, for how long, and how many at most.
#[derive(Clone, Debug)]
pub struct Take {
    /// Who takes; of several the first.
    pub owner: OwnerId,
    /// Who else takes: one record each, in this order. Empty if the first takes all.
    pub others: Vec<OwnerId>,
    /// The time of taking.
    pub now: Timestamp,
    /// The lease that the taker gets.
    pub lease: Lease,
    /// The most records.
    pub limit: usize,
    /// What it stands on once it is answered.
    pub footing: Footing,
}

/// What a take stands on once it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footing {
    /// Stable storage: its taker may be told, wherever that is.
    Stable,
    /// The first commit after it: a power loss before that undoes the take, and if its taker outlives the store's machine, the fence refuses
    /// its commit. For whoever commits before doing anything that must not be done twice.
    NextCommit,
}

impl Take {
    /// By one taker.
    pub fn by(owner: OwnerId, now: Timestamp, lease: Lease, limit: usize) -> Self {
        Self { owner, others: Vec::new(), now, lease, limit, footing: Footing::Stable }
    }

    /// The same for a worker that commits before it does anything that must not be done twice: no sync is waited for.
    #[must_use]
    pub fn until_next_commit(self) -> Self {
        Self { footing: Footing::NextCommit, ..self }
    }

    /// One record for each of these, at most; none if there are none.
    pub fn one_each(owners: impl IntoIterator<Item = OwnerId>, now: Timestamp, lease: Lease) -> Option<Self> {
        let mut owners = owners.into_iter();
        let owner = owners.next()?;
        let others: Vec<OwnerId> = owners.collect();
        let limit = others.len() + 1;
        Some(Self { owner, others, now, lease, limit, footing: Footing::Stable })
    }

    /// Who takes the record that so many were taken before.
    pub fn owner_after(&self, taken: usize) -> &OwnerId {
        taken.checked_sub(1).and_then(|nth| self.others.get(nth)).unwrap_or(&self.owner)
    }
}
