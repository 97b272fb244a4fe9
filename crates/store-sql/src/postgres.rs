//! The store on a PostgreSQL database that any number of nodes share: writers with group commit, sessions for reading, hints between nodes.
//!
//! An answer is given only after the commit. Between nodes nothing is remembered here: what another node has written is read,
//! and what it is writing is waited for, row by row, in the order of ids.
//!
//! | file | is for |
//! | --- | --- |
//! | `address.rs`, `tls.rs` | where the database is, and who is spoken to |
//! | `session.rs`, `failure.rs` | one connection, and what its errors mean |
//! | `database.rs` | a session as `database.rs` of the crate asks for it: all reads, `verify`, `rebuild` and export are written there once |
//! | `migrate.rs` | the schema, under a lock |
//! | `pool.rs` | sessions for reading |
//! | `writer.rs`, `batch.rs`, `claims.rs`, `statements.rs`, `columnar.rs` | batches: repeated, carried out, in one statement per table |
//! | `backup.rs`, `restore.rs` | the whole of it into a backup, and out of one |
//! | `artifacts.rs` | what attempts leave, for all nodes |
//! | `peers.rs`, `asks.rs` | those who pull work, and what they say to each other |
//! | `tally.rs` | how many jobs are in each state: kept, never counted |
//! | `hints.rs`, `time.rs`, `clock.rs`, `nodes.rs`, `versions.rs` | what nodes tell each other, the time that they share and its correction, who is there, and whether all work with the same schema |
//!
//! With SQLite it shares the encoding of commits (`prepare.rs`), the check of a commit (`checks.rs`), rows (`rows.rs`), the queue
//! (`queue.rs`) and every statement that is not about many rows at once.

mod address;
mod artifacts;
mod asks;
mod backup;
mod batch;
mod claims;
mod clock;
mod columnar;
mod database;
mod failure;
mod figures;
mod hints;
mod migrate;
mod nodes;
mod peers;
mod plugin_state;
mod pool;
mod restore;
mod routing;
mod scratch;
mod session;
mod statements;
mod tally;
mod time;
mod tls;
mod versions;
mod writer;

use std::sync::Arc;

use domain::attention::Retention;
use domain::job::JobStateName;
use domain::{BodyRef, Digest, Fence, JobId, Lease, Record, RecordId, RecordKind, Timestamp};
use store::{
    Commit, Committed, Correction, IdempotencyKey, JobQuery, KeptKey, Lane, Loaded, Node, OpenJobs,
    OrphanCursor, Page, Pulse, Remembered, Reply, SeenSteps, SharedStore, Store, StoreError, StoredFact,
    Take, Taken, Taking, Token, Urgency,
};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::database::{integer, one, text};
use crate::dialect::Sql;
use crate::prepare::Prepared;
use crate::queue::Queue;
use crate::recent::Recent;
use crate::request::{Answer, ClaimRequest, Item, NodeRequest, Request, TokenRequest};
use crate::{ClaimLine, Durability, FactLine, OpenError, Rebuilt, Verified};
use crate::{export, floor, keys, lists, operations, reads, tokens};
use hints::Hints;
use migrate::Readiness;
use nodes::Heard;
use pool::Pool;
use session::Session;
use writer::Writer;

pub use address::PostgresAddress;
pub use failure::PostgresError;
pub use figures::PostgresFigures;
pub use migrate::migrate_postgres_to;
pub(crate) use restore::{Source, restore};
pub use scratch::{ScratchError, ScratchSchema, server_version};
pub use time::StoreTime;

/// How a store on a database is opened.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The database.
    pub address: PostgresAddress,
    /// Whether the server must sync.
    pub durability: Durability,
    /// Connections for writing: with two, one batch is put together while another is synced.
    pub writers: usize,
    /// Connections for reading, at most.
    pub readers: usize,
}

impl PostgresOptions {
    /// The usual settings for a database.
    pub fn at(address: PostgresAddress) -> Self {
        Self { address, durability: Durability::Full, writers: 2, readers: 4 }
    }
}

/// A store on a PostgreSQL database.
pub struct PostgresStore {
    queue: Arc<Queue<Item>>,
    recent: Arc<Recent>,
    pool: Pool,
    writers: Vec<JoinHandle<()>>,
    hinting: JoinHandle<()>,
    heard: watch::Receiver<u64>,
    time: Arc<watch::Sender<Option<StoreTime>>>,
    stop: Arc<watch::Sender<Option<String>>>,
    figures: Arc<PostgresFigures>,
    newest_fact: Timestamp,
}

static FSYNC: Sql = Sql::new("SELECT current_setting('fsync')");
static LEDGER_LOCK: Sql = Sql::new("SELECT hashtextextended('longhaul facts ' || current_schema(), 0)");

impl PostgresStore {
    /// Connects, makes the store if it is not there, and brings it up to date. Nodes may do so at the same time.
    pub async fn open(options: &PostgresOptions) -> Result<Self, OpenError> {
        let address = &options.address;
        let failed = |error: PostgresError| OpenError::refused(address, &error);
        let first = Session::connect(address, None).await?;
        if options.durability == Durability::Full {
            let fsync = one(&first, &FSYNC, &[], |row| text(row, 0)).await.map_err(failed)?;
            if fsync.as_deref() == Some("off") {
                return Err(OpenError::Unsynced { address: address.to_string() });
            }
        }
        migrate::prepare(&first, address, Readiness::BringUpToDate).await?;
        let newest_fact = floor::newest_fact(&first).await.map_err(failed)?;
        let ledger_lock = one(&first, &LEDGER_LOCK, &[], |row| integer(row, 0)).await.map_err(failed)?;
        let ledger_lock = ledger_lock.unwrap_or_default();
        drop(first);
        let (time, stop) = (Arc::new(watch::Sender::new(None)), Arc::new(watch::Sender::new(None)));
        let (hints, heard, hinting) = Hints::start(address.clone());
        let queue = Arc::new(Queue::new());
        let figures = Arc::new(PostgresFigures::default());
        let recent = Arc::new(Recent::default());
        let writers = (0..options.writers.max(1))
            .map(|_| {
                let writer = Writer {
                    address: address.clone(),
                    queue: queue.clone(),
                    figures: figures.clone(),
                    time: time.clone(),
                    hints: hints.clone(),
                    stop: stop.clone(),
                    ledger_lock,
                    recent: recent.clone(),
                    session: None,
                    known_steps: batch::KnownSteps::default(),
                };
                tokio::spawn(writer.run())
            })
            .collect();
        let pool = Pool::new(address.clone(), options.readers);
        Ok(Self { queue, recent, pool, writers, hinting, heard, time, stop, figures, newest_fact })
    }

    /// The time of the newest fact when the store was opened: the clock starts no earlier.
    pub fn newest_fact(&self) -> Timestamp {
        self.newest_fact
    }

    /// What the writers have done so far.
    pub fn figures(&self) -> &PostgresFigures {
        &self.figures
    }

    /// The database's time as the last batch or heartbeat heard it.
    pub fn time(&self) -> watch::Receiver<Option<StoreTime>> {
        self.time.subscribe()
    }

    /// Changes whenever another node may have written something. Only a hint: none may come, or one for nothing.
    pub fn hints(&self) -> watch::Receiver<u64> {
        self.heard.clone()
    }

    /// Waits until nothing can be written any more, because another longhaul has changed the schema, and says why. The process must
    /// end then.
    pub async fn stopped(&self) -> String {
        let mut stop = self.stop.subscribe();
        let reason = stop.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_else(|| "the store has ended".to_owned())
    }

    /// The key of this name that all nodes have in common; the one that is proposed if there was none.
    pub async fn shared_key(&self, name: &str, proposed: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.pool.read(|session| async move { nodes::shared_key(&session, name, proposed).await }).await
    }

    /// What was heard is the time; a database that has become another's is the end.
    fn hear(&self, heard: Result<Heard, PostgresError>) -> Result<Pulse, StoreError> {
        match heard {
            Ok(heard) => {
                self.time.send_replace(Some(heard.time));
                Ok(heard.pulse)
            }
            Err(error) => {
                if let PostgresError::Skewed(told) = &error {
                    self.stop.send_replace(Some(told.clone()));
                }
                Err(error.told())
            }
        }
    }

    /// Ends the leases of all owners whose ids begin so, because they are known to be dead: the caller knows.
    pub fn end_leases_of(&self, owners: &str, now: Timestamp) -> Reply<'_, ()> {
        self.claim(ClaimRequest::EndLeases { owners: owners.to_owned(), now }, Answer::done)
    }

    /// Takes nothing more in; returns when what waited is written.
    pub async fn close(mut self) {
        self.queue.close();
        for writer in self.writers.drain(..) {
            // One that panicked has told its callers by ending.
            let _ = writer.await;
        }
    }

    /// Queues work for the writers; the answer comes after the commit.
    fn write<'a, T: Send + 'a>(
        &'a self,
        request: Result<Request, StoreError>,
        urgency: Urgency,
        pick: fn(Answer) -> Option<T>,
    ) -> Reply<'a, T> {
        let (reply, answer) = oneshot::channel();
        let queued = request.and_then(|request| {
            let weight = request.weight();
            self.queue.push(Item::new(request, reply), urgency, weight)
        });
        Box::pin(async move {
            queued?;
            // A writer that ended without an answer may have committed.
            let answer = answer.await.unwrap_or(Err(StoreError::OutcomeUnknown))?;
            Ok(pick(answer).expect("every request is answered in kind"))
        })
    }

    fn claim<T: Send + 'static>(&self, request: ClaimRequest, pick: fn(Answer) -> Option<T>) -> Reply<'_, T> {
        self.write(Ok(Request::Claim(request)), Urgency::Result, pick)
    }
}

impl Store for PostgresStore {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        let urgency = commit.urgency;
        self.write(Prepared::new(commit).map(Request::Commit), urgency, Answer::committed)
    }

    fn load<'a>(&'a self, id: &'a RecordId) -> Reply<'a, Option<Loaded>> {
        Box::pin(self.pool.read(move |session| async move { reads::load(&*session, id).await }))
    }

    fn remembered(&self, id: &RecordId) -> Option<Remembered> {
        self.recent.remembered(id)
    }

    fn body<'a>(&'a self, id: &'a RecordId, body: BodyRef) -> Reply<'a, Option<Vec<u8>>> {
        Box::pin(self.pool.read(move |session| async move { reads::body(&*session, id, body).await }))
    }

    fn key<'a>(&'a self, key: &'a IdempotencyKey) -> Reply<'a, Option<KeptKey>> {
        Box::pin(self.pool.read(move |session| async move { keys::key(&*session, key).await }))
    }

    fn jobs(&self, query: JobQuery) -> Reply<'_, Page> {
        let query = Arc::new(query);
        Box::pin(self.pool.read(move |session| {
            let query = query.clone();
            async move { lists::jobs(&*session, &query).await }
        }))
    }

    fn job_counts(&self) -> Reply<'_, Vec<(JobStateName, u64)>> {
        Box::pin(self.pool.read(|session| async move { tally::job_counts(&session).await }))
    }

    fn open_jobs<'a>(&'a self, executor: &'a str) -> Reply<'a, OpenJobs> {
        Box::pin(self.pool.read(move |session| async move { tally::open_jobs(&session, executor).await }))
    }

    fn operations_of<'a>(&'a self, job: &'a JobId, limit: usize) -> Reply<'a, Vec<Arc<Record>>> {
        Box::pin(
            self.pool.read(move |session| async move { operations::of_job(&*session, job, limit).await }),
        )
    }

    fn orphans(&self, after: Option<OrphanCursor>, limit: usize) -> Reply<'_, Vec<Arc<Record>>> {
        let after = Arc::new(after);
        Box::pin(self.pool.read(move |session| {
            let after = after.clone();
            async move { operations::orphans(&*session, (*after).as_ref(), limit).await }
        }))
    }

    fn orphan_count(&self) -> Reply<'_, u64> {
        Box::pin(self.pool.read(|session| async move { operations::orphan_count(&*session).await }))
    }

    fn facts_of<'a>(
        &'a self,
        id: &'a RecordId,
        after_version: u64,
        limit: usize,
    ) -> Reply<'a, Vec<StoredFact>> {
        Box::pin(
            self.pool.read(move |session| async move {
                reads::facts_of(&*session, id, after_version, limit).await
            }),
        )
    }

    fn facts_after(&self, position: u64, limit: usize) -> Reply<'_, Vec<StoredFact>> {
        Box::pin(
            self.pool
                .read(move |session| async move { reads::facts_after(&*session, position, limit).await }),
        )
    }

    fn take_due(&self, kind: RecordKind, take: Take) -> Reply<'_, Vec<Taken>> {
        self.claim(ClaimRequest::TakeDue { kind, take }, Answer::taken)
    }

    fn take_ready<'a>(&'a self, lane: Lane<'a>, take: Take) -> Reply<'a, Vec<Taken>> {
        let Lane { name, limit } = lane;
        self.claim(ClaimRequest::TakeReady { lane: name.to_owned(), limit, take }, Answer::taken)
    }

    fn take<'a>(&'a self, id: &'a RecordId, take: Take) -> Reply<'a, Taken> {
        self.claim(ClaimRequest::Take { id: id.clone(), take }, Answer::one_taken)
    }

    fn renew<'a>(&'a self, id: &'a RecordId, fence: Fence, now: Timestamp, lease: Lease) -> Reply<'a, Taken> {
        self.claim(ClaimRequest::Renew { id: id.clone(), fence, now, lease }, Answer::one_taken)
    }

    fn hand_back<'a>(
        &'a self,
        id: &'a RecordId,
        fence: Fence,
        now: Timestamp,
        due_at: Timestamp,
    ) -> Reply<'a, ()> {
        self.claim(ClaimRequest::HandBack { id: id.clone(), fence, now, due_at }, Answer::done)
    }

    fn ready_lanes(&self) -> Reply<'_, Vec<Arc<str>>> {
        Box::pin(self.pool.read(|session| async move { reads::ready_lanes(&*session).await }))
    }

    fn earliest_due(&self, kind: RecordKind) -> Reply<'_, Option<Timestamp>> {
        Box::pin(self.pool.read(move |session| async move { reads::earliest_due(&*session, kind).await }))
    }

    fn keep_token(&self, token: Token) -> Reply<'_, ()> {
        let request = token.check().map(|()| Request::Token(TokenRequest::Keep(token)));
        self.write(request, Urgency::Result, Answer::done)
    }

    fn token<'a>(&'a self, sha256: &'a Digest) -> Reply<'a, Option<Token>> {
        let sha256 = *sha256;
        Box::pin(self.pool.read(move |session| async move { tokens::token(&*session, sha256).await }))
    }

    fn tokens(&self) -> Reply<'_, Vec<Token>> {
        Box::pin(self.pool.read(|session| async move { tokens::tokens(&*session).await }))
    }

    fn revoke_token<'a>(&'a self, id: &'a str, at: Timestamp) -> Reply<'a, bool> {
        let request = Request::Token(TokenRequest::Revoke { id: id.to_owned(), at });
        self.write(Ok(request), Urgency::Result, Answer::known)
    }

    fn keep_node(&self, node: Node, forget_before: Timestamp) -> Reply<'_, ()> {
        let request = node.check().map(|()| Request::Node(NodeRequest::Keep { node, forget_before }));
        self.write(request, Urgency::Result, Answer::done)
    }

    fn nodes(&self) -> Reply<'_, Vec<Node>> {
        Box::pin(self.pool.read(|session| async move { crate::nodes::nodes(&*session).await }))
    }

    fn tell_node<'a>(&'a self, id: &'a str, taking: Taking) -> Reply<'a, bool> {
        let request = Request::Node(NodeRequest::Tell { id: id.to_owned(), taking });
        self.write(Ok(request), Urgency::Result, Answer::known)
    }

    fn remove_node<'a>(&'a self, id: &'a str) -> Reply<'a, ()> {
        let request = Request::Node(NodeRequest::Remove { id: id.to_owned() });
        self.write(Ok(request), Urgency::Result, Answer::done)
    }
}

impl SharedStore for PostgresStore {
    fn beat(&self, node: Node) -> Reply<'_, Pulse> {
        Box::pin(async move {
            node.check()?;
            let node = &node;
            let beat = |session: Arc<Session>| async move { self.hear(nodes::beat(&session, node).await) };
            self.pool.read(beat).await
        })
    }

    fn pulse<'a>(&'a self, node_id: &'a str) -> Reply<'a, Pulse> {
        let pulse =
            move |session: Arc<Session>| async move { self.hear(nodes::pulse(&session, node_id).await) };
        Box::pin(self.pool.read(pulse))
    }

    fn see_step<'a>(&'a self, node_id: &'a str, by_micros: Option<i64>) -> Reply<'a, SeenSteps> {
        let see = move |session: Arc<Session>| async move {
            clock::see_step(&session, node_id, by_micros).await.map_err(PostgresError::told)
        };
        Box::pin(self.pool.read(see))
    }

    fn correct_clock(&self, correction: Correction) -> Reply<'_, bool> {
        Box::pin(async move {
            let correct = |session: Arc<Session>| async move { clock::correct(&session, &correction).await };
            let corrected = self.pool.read(correct).await;
            self.recent.forget_all();
            corrected
        })
    }

    fn versions<'a>(&'a self, ids: &'a [RecordId]) -> Reply<'a, Vec<(RecordId, u64)>> {
        let read = move |session: Arc<Session>| async move {
            nodes::versions(&session, ids).await.map_err(PostgresError::told)
        };
        Box::pin(self.pool.read(read))
    }
}

impl Drop for PostgresStore {
    /// What waits is still written, as long as the runtime lives; nobody is hinted to any more.
    fn drop(&mut self) {
        self.queue.close();
        self.hinting.abort();
    }
}

/// A store on a database, opened beside nodes that run: for `verify`, `rebuild` and `export`.
pub struct PostgresLedger {
    session: Session,
}

impl PostgresLedger {
    /// Connects to a store that must be there and up to date.
    pub async fn open(address: &PostgresAddress) -> Result<Self, OpenError> {
        let session = Session::connect(address, None).await?;
        migrate::prepare(&session, address, Readiness::MustBeThere).await?;
        Ok(Self { session })
    }

    /// Compares every view, column, agenda row, checksum and body with what the facts say.
    pub async fn verify(&self) -> Result<Verified, StoreError> {
        crate::verify::verify(&self.session).await
    }

    /// The same for the records that facts after this position are about.
    pub async fn verify_since(&self, position: u64) -> Result<Verified, StoreError> {
        crate::verify::verify_since(&self.session, position).await
    }

    /// Writes every view and the agenda anew, while nodes that run wait. If any stream is damaged nothing is changed, and the error
    /// names it.
    pub async fn rebuild(&self, retention: Retention, now: Timestamp) -> Result<Rebuilt, StoreError> {
        crate::rebuild::rebuild(&self.session, retention, now).await
    }

    /// The next page of the ledger after a position, not interpreted; empty at its end.
    pub async fn facts_after(&self, position: u64) -> Result<Vec<FactLine>, StoreError> {
        export::facts_after(&self.session, position).await
    }

    /// The next page of claims after a record; empty at the end.
    pub async fn claims_after(&self, record_id: &str) -> Result<Vec<ClaimLine>, StoreError> {
        export::claims_after(&self.session, record_id).await
    }
}
