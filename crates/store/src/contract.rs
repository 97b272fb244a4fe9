//! The contract of every store: five methods to implement, with requests and answers as data. All typed calls follow from them.
//!
//! A new read is one line in `reads!` and one arm where each store answers (`memory/reads.rs`, and `answer.rs` of `store-sql` for both
//! databases); a new write is one line in `side_writes!` and one arm in `memory/writes.rs` and in `side_writes.rs` there. What stands
//! between a caller and a store (the simulator's network, a test's counter) passes requests on without knowing them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use domain::ask::{Ask, Closing};
use domain::job::JobStateName;
use domain::peer::{Peer, PeerKey, Sighting};
use domain::timeline::{Anchor, Step};
use domain::{BodyRef, Digest, Fence, JobId, Lease, Record, RecordId, RecordKind, Timestamp};

use crate::requests::{effect, owned, picked, read_calls, read_requests, write_calls, write_requests};
use crate::{
    Adopted, AskQuery, ClaimOutcome, ClaimRequest, Commit, Committed, DuePlace, IdempotencyKey, JobQuery,
    KeptKey, KeptPluginFact, Lane, Loaded, Node, OpenJobs, OrphanCursor, Page, PeerPage, PeerQuery,
    PluginState, RecordPage, RecordQuery, Remembered, Sight, StoreClock, StoreError, StoredFact, Take, Taken,
    Taking, Token,
};

/// What a store answers, later.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Every read: its request, its typed call, its answer.
macro_rules! reads {
    ($generate:ident) => {
        $generate! {
            /// One record with the head of its stream and its claim.
            Load: load(id: &RecordId) -> Option<Loaded>;
            /// The bytes of one body, checked against the reference; none if the record does not store it, or not any more. `BodyDamaged` if
            /// the bytes are others, or are missing although the record says that they are stored.
            Body: body(id: &RecordId, body: BodyRef) -> Option<Vec<u8>>;
            /// What was answered under an idempotency key.
            Key: key(key: &IdempotencyKey) -> Option<KeptKey>;
            /// Jobs that fit, newest change first, a page at a time. A page may be short: only one without `next` is the last.
            Jobs: jobs(query: JobQuery) -> Page;
            /// How many jobs are in each state.
            JobCounts: job_counts() -> Vec<(JobStateName, u64)>;
            /// How many jobs are not over, of those that name an executor: of this one, and in all.
            OpenJobs: open_jobs(executor: &str) -> OpenJobs;
            /// The operations of one job, newest change first.
            OperationsOf: operations_of(job: &JobId, limit: usize) -> Vec<Arc<Record>>;
            /// Jobs that fit, of those whose work a service knows by this id, newest change first. A page looks at as many of the circle as
            /// it may hold; few that fit make it short, and only one without `next` is the last.
            JobsKnownAs: jobs_known_as(external_job_id: &str, query: JobQuery) -> Page;
            /// The operations that may still run outside although they are over here, oldest end first, after a place in that list.
            Orphans: orphans(after: Option<OrphanCursor>, limit: usize) -> Vec<Arc<Record>>;
            /// How many those are.
            OrphanCount: orphan_count() -> u64;
            /// Records of a kind that fit, newest first, a page at a time.
            Records: records(query: RecordQuery) -> RecordPage;
            /// The newest record of a kind with this name that was begun under this key.
            NewestRecord: newest_record(kind: RecordKind, name: &str, key: &str) -> Option<Arc<Record>>;
            /// The facts of one record after a version, oldest first.
            FactsOf: facts_of(id: &RecordId, after_version: u64, limit: usize) -> Vec<StoredFact>;
            /// The facts of all records after a position, in the order of their commits.
            FactsAfter: facts_after(position: u64, limit: usize) -> Vec<StoredFact>;
            /// The lanes in which something is ready, each named once.
            ReadyLanes: ready_lanes() -> Vec<Arc<str>>;
            /// When the next record of this kind is due.
            EarliestDue: earliest_due(kind: RecordKind) -> Option<Timestamp>;
            /// Records of a kind that are due after a place and no later than a time, the first of them first.
            DueBetween: due_between(kind: RecordKind, after: DuePlace, until: Timestamp, limit: usize) -> Vec<(Timestamp, RecordId)>;
            /// The token with this digest, revoked or not.
            Token: token(sha256: &Digest) -> Option<Token>;
            /// All tokens, oldest first: at most `MAX_TOKENS`.
            Tokens: tokens() -> Vec<Token>;
            /// The nodes that were heard of, newest first: at most `MAX_NODES`.
            Nodes: nodes() -> Vec<Node>;
            /// One peer.
            Peer: peer(key: &PeerKey) -> Option<Peer>;
            /// Peers that fit, by id and circle, a page at a time. A page may be short; its `next` says whether it is the last.
            Peers: peers(query: PeerQuery) -> PeerPage;
            /// The ask with this correlation id.
            Ask: ask(id: &str) -> Option<Ask>;
            /// Asks that fit, newest first.
            Asks: asks(query: AskQuery) -> Vec<Ask>;
            /// What a plugin remembers; none before its first commit.
            PluginState: plugin_state(plugin: &str) -> Option<PluginState>;
            /// The facts of a plugin after a number, oldest first.
            PluginFacts: plugin_facts(plugin: &str, after: u64, limit: usize) -> Vec<KeptPluginFact>;
            /// What the store knows of its own time.
            Clock: clock() -> StoreClock;
            /// What each node has written down of the server's clock. A store that no other node shares has none.
            Sights: sights() -> Vec<Sight>;
        }
    };
}

/// Every write beside the ledger: its request and its typed call. The answer is whether it had an effect, where a caller asks for that.
macro_rules! side_writes {
    ($generate:ident) => {
        $generate! {
            /// Keeps an access token. Its id and its digest are new, or it is a `Conflict`; `TooLarge` if all are in use.
            KeepToken: keep_token(token: Token) -> ();
            /// Takes a token back; false if there is no such token. The first time counts.
            RevokeToken: revoke_token(id: &str, at: Timestamp) -> bool;
            /// Writes down that a node lives, and forgets those that were not heard of since. Whether it takes work stays as it is.
            KeepNode: keep_node(node: Node, forget_before: Timestamp) -> ();
            /// Orders a node to take work or not; false if it is not known.
            TellNode: tell_node(id: &str, taking: Taking) -> bool;
            /// A node has ended.
            RemoveNode: remove_node(id: &str) -> ();
            /// Keeps a registration. Its version is one more than that of the registration that is there, or it is a `Conflict`; `TooLarge`
            /// if there are too many.
            KeepPeer: keep_peer(peer: Peer) -> ();
            /// Forgets a peer, if its registration is this one; false if it is not.
            ForgetPeer: forget_peer(key: &PeerKey, version: u64) -> bool;
            /// Peers have come or gone, at most `MAX_SIGHTINGS`. Those that are not registered in that circle are passed over, and a node
            /// does not say that a peer has gone that another one hears of.
            NoteSightings: note_sightings(sightings: Vec<Sighting>) -> ();
            /// Keeps an ask; false if its id is there already, and then nothing is written. `TooLarge` if too many are open for its peer.
            /// The ask that it replies to is closed with it, if that is open.
            KeepAsk: keep_ask(ask: Ask, replied: Option<Closing>) -> bool;
            /// Closes an ask; false if it was closed before, or is not there.
            CloseAsk: close_ask(id: &str, closing: Closing) -> bool;
            /// Keeps where the store's time stands, and a step that was adopted, with which every lease that is held is moved.
            KeepClock: keep_clock(anchor: Anchor, adopted: Option<Adopted>) -> ();
            /// Keeps how often timers must still be moved over a step, if it is the newest.
            TimersMoved: timers_moved(step: Step, passes_left: u8) -> ();
        }
    };
}

reads!(read_requests);
side_writes!(write_requests);

/// Where the records live.
///
/// A store implements `commit`, `claim`, `write` and `read`, and `remembered` if it knows anything without a read. Everything else is
/// one of these with its request made and its answer picked out, and is not to be implemented anew.
pub trait Store: Send + Sync {
    /// Writes a commit, all or nothing, and answers only when it is on stable storage.
    ///
    /// Safe to repeat word for word as long as its records are kept: a commit whose facts are there already, under the
    /// same ids, is answered as done. Once a record was retired its facts are gone and a repeat would be taken for a new
    /// commit. Whoever repeats does so within seconds; records are kept for days after their end. If a fact of a commit has gone with a
    /// later checkpoint, a repeat is a `Conflict`.
    fn commit(&self, commit: Commit) -> Reply<'_, Committed>;
    /// Takes, renews or gives back: only the agenda changes, never a fact.
    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimOutcome>;
    /// Writes beside the ledger; whether that had an effect.
    fn write(&self, write: SideWrite) -> Reply<'_, bool>;
    /// Reads.
    fn read(&self, request: ReadRequest) -> Reply<'_, ReadAnswer>;
    /// What this process knows of a record without a read; nothing if a read costs as little.
    fn remembered(&self, _: &RecordId) -> Option<Remembered> {
        None
    }

    reads!(read_calls);
    side_writes!(write_calls);

    /// Takes records that are due: a lease each, oldest first.
    fn take_due(&self, kind: RecordKind, take: Take) -> Reply<'_, Vec<Taken>> {
        picked(self.claim(ClaimRequest::TakeDue { kind, take }), ClaimOutcome::taken)
    }
    /// Takes jobs that are ready in a lane: a lease each, by priority and age, and no more than its limit leaves.
    fn take_ready(&self, lane: Lane<'_>, take: Take) -> Reply<'_, Vec<Taken>> {
        let Lane { name, limit } = lane;
        let request = ClaimRequest::TakeReady { lane: name.to_owned(), limit, take };
        picked(self.claim(request), ClaimOutcome::taken)
    }
    /// Takes one record, if nobody holds it.
    fn take(&self, id: &RecordId, take: Take) -> Reply<'_, Taken> {
        picked(self.claim(ClaimRequest::Take { id: id.clone(), take }), ClaimOutcome::one)
    }
    /// Prolongs a lease; the fence that comes back replaces the old one.
    fn renew(&self, id: &RecordId, fence: Fence, now: Timestamp, lease: Lease) -> Reply<'_, Taken> {
        picked(self.claim(ClaimRequest::Renew { id: id.clone(), fence, now, lease }), ClaimOutcome::one)
    }
    /// Gives a record back before its lease ends; it is due when the giver says, or earlier by its own limit. One that was
    /// released already stays as it is.
    fn hand_back(&self, id: &RecordId, fence: Fence, now: Timestamp, due_at: Timestamp) -> Reply<'_, ()> {
        let request = ClaimRequest::HandBack { id: id.clone(), fence, now, due_at };
        picked(self.claim(request), ClaimOutcome::released)
    }
    /// Ends the leases of all owners whose ids begin so, because they are known to be dead: the caller knows. Before any work is taken
    /// under such an id.
    fn end_leases_of(&self, owners: &str, now: Timestamp) -> Reply<'_, ()> {
        let request = ClaimRequest::EndLeases { owners: owners.to_owned(), now };
        picked(self.claim(request), ClaimOutcome::released)
    }
}
