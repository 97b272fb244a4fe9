//! The store on one SQLite file: one writer thread with group commit, readers beside it, checkpoints on their own.
//!
//! An answer is given only after the sync. Idle, every thread waits on its queue and nothing is asked of the file.

mod accepted_loss;
mod apply;
mod asks;
mod blank;
mod check;
mod checkpoint;
mod claims;
mod clock;
mod connect;
mod connections;
mod counts;
mod database;
mod failure;
mod lock;
mod log_scan;
mod losses;
mod peers;
mod plugin_state;
mod readers;
mod routing;
mod watermark;
mod writer;

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use domain::attention::Retention;
use domain::job::JobStateName;
use domain::{BodyRef, Digest, Fence, JobId, Lease, Record, RecordId, RecordKind, Timestamp};
use store::{
    Commit, Committed, IdempotencyKey, JobQuery, KeptKey, Lane, Loaded, Node, OpenJobs, OrphanCursor, Page,
    Reply, Store, StoreError, StoredFact, Take, Taken, Taking, Token, Urgency,
};
use tokio::sync::{oneshot, watch};

use crate::database::at_once;
use crate::prepare::Prepared;
use crate::queue::Queue;
use crate::recent::Recent;
use crate::request::{Answer, ClaimRequest, Item, NodeRequest, Request, TokenRequest};
use crate::{ClaimLine, Durability, FactLine, OpenError, Rebuilt, Verified};
use crate::{export, floor, keys, lists, nodes, operations, reads, tokens};
use checkpoint::Checkpointer;
use connections::Connections;
use counts::Counts;
use readers::Readers;
use watermark::MarkWriter;
use writer::Writer;

pub use accepted_loss::{AcceptedLoss, accepted_loss};
pub(crate) use apply::last_position;
pub use blank::{Filled, filled};
pub(crate) use connect::{APPLICATION_ID as STORE_APPLICATION_ID, writer};
pub use lock::FileLock;
pub use log_scan::{LogContent, LogScan, scan_log};
pub use losses::{FileHeader, Loss, judge};
pub(crate) use watermark::mark_of;
pub use watermark::{BootId, LogPlace, Phase, Watermark};
pub use writer::WriterFigures;

/// For its owner alone.
pub(crate) const FILE_MODE: u32 = 0o600;

/// The version of the SQLite that is built in.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// How a store on a file is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The database file.
    pub path: PathBuf,
    /// When a commit counts as done.
    pub durability: Durability,
    /// Connections for reading.
    pub readers: usize,
    /// Another file layer under SQLite, for tests; then there is no lock file either.
    pub vfs: Option<String>,
    /// When somebody said that damage and lost commits are accepted; none refuses them.
    pub accept_loss: Option<Timestamp>,
}

/// A store on one SQLite file.
pub struct SqliteStore {
    queue: Arc<Queue<Item>>,
    readers: Readers,
    recent: Arc<Recent>,
    counts: Arc<Counts>,
    checkpointer: Checkpointer,
    writer: Option<JoinHandle<()>>,
    stopped: watch::Receiver<Option<String>>,
    figures: Arc<WriterFigures>,
    newest_fact: Timestamp,
    /// None where a test has another file layer.
    mark: Option<Arc<Mutex<MarkWriter>>>,
    _lock: Option<FileLock>,
}

impl SqliteOptions {
    /// The usual settings for a file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), durability: Durability::Full, readers: 2, vfs: None, accept_loss: None }
    }
}

/// Opens a connection that only reads, beside a running daemon: for `verify` and `export`.
pub fn open_for_reading(path: &Path) -> Result<rusqlite::Connection, OpenError> {
    check_there(path)?;
    let mut examined = losses::examine(path)?;
    if examined.loss.is_some() {
        // A daemon may have started meanwhile, and writes what was just read.
        examined = losses::examine(path)?;
    }
    examined.refuse(path)?;
    connect::checked_reader(path, None, |connection| examined.check_ledger(connection, path))
}

/// Opens a connection for `rebuild`; refused while a daemon has the file. The lock lasts as long as the guard.
pub fn open_for_rebuilding(path: &Path) -> Result<(rusqlite::Connection, impl Sized), OpenError> {
    // Before the lock, which would be left where there is nothing.
    check_there(path)?;
    let lock = FileLock::acquire(path)?;
    let examined = losses::examine_locked(path)?;
    examined.refuse(path)?;
    accepted_loss::sync_file(path).map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    connect::check_has_tables(path)?;
    let options = SqliteOptions::at(path);
    let check = |connection: &rusqlite::Connection| {
        examined.check_ledger(connection, path)?;
        MarkWriter::new(path, &examined, options.durability).opening();
        Ok(())
    };
    Ok((connect::checked_writer(&options, check)?, lock))
}

fn check_there(path: &Path) -> Result<(), OpenError> {
    blank::check(path)?;
    if path.exists() { Ok(()) } else { Err(OpenError::Missing { path: path.to_owned() }) }
}

/// Verify on a file: see `Verified`.
pub fn verify(connection: &rusqlite::Connection) -> Result<Verified, StoreError> {
    at_once(crate::verify::verify(connection))
}

/// Verify on a file of what facts after a position are about.
pub fn verify_since(connection: &rusqlite::Connection, position: u64) -> Result<Verified, StoreError> {
    at_once(crate::verify::verify_since(connection, position))
}

/// Rebuild on a file: every view and the agenda anew. If any stream is damaged nothing is changed, and the error names it.
pub fn rebuild(
    connection: &mut rusqlite::Connection,
    retention: Retention,
    now: Timestamp,
) -> Result<Rebuilt, StoreError> {
    at_once(crate::rebuild::rebuild(&*connection, retention, now))
}

/// The next page of a file's ledger after a position, not interpreted; empty at its end.
pub fn facts_after(connection: &rusqlite::Connection, position: u64) -> Result<Vec<FactLine>, StoreError> {
    at_once(export::facts_after(connection, position))
}

/// The next page of a file's claims after a record; empty at the end.
pub fn claims_after(
    connection: &rusqlite::Connection,
    record_id: &str,
) -> Result<Vec<ClaimLine>, StoreError> {
    at_once(export::claims_after(connection, record_id))
}

/// Nobody else has the file from here on, and it is there.
fn lock_and_make(path: &Path) -> Result<FileLock, OpenError> {
    let mut lock = FileLock::acquire(path)?;
    if let Some(restoring) = crate::backup::interrupted(path) {
        return Err(OpenError::HalfRestored { path: restoring });
    }
    blank::check(path)?;
    make_for_its_owner_alone(path)?;
    // Again, now that it is known where a link leads.
    blank::check(path)?;
    lock.follow(path)?;
    Ok(lock)
}

/// An empty file is a new store, and its log gets the same rights. A link may lead to where it shall be.
fn make_for_its_owner_alone(path: &Path) -> Result<(), OpenError> {
    if path.exists() {
        return Ok(());
    }
    let made = File::options().write(true).create(true).truncate(false).mode(FILE_MODE).open(path);
    made.map(|_| ()).map_err(|source| OpenError::Io { path: path.to_owned(), source })
}

impl SqliteStore {
    /// Opens the file, making it if it is not there, and brings it up to date.
    pub fn open(options: &SqliteOptions) -> Result<Self, OpenError> {
        let lock = match options.vfs {
            None => Some(lock_and_make(&options.path)?),
            Some(_) => None,
        };
        // Connections first, threads last: an open that fails leaves no thread behind that would keep the file.
        let connections = Connections::open(options)?;
        let (connection, mark) = (connections.writer, connections.mark);
        let newest_fact = at_once(floor::newest_fact(&connection))?;
        let (stop, stopped) = watch::channel(None);
        let stop = Arc::new(stop);
        let mut store = Self {
            queue: Arc::new(Queue::new()),
            readers: Readers::new(),
            recent: Arc::new(Recent::default()),
            counts: Arc::new(Counts::default()),
            checkpointer: Checkpointer::new(),
            writer: None,
            stopped,
            figures: Arc::new(WriterFigures::default()),
            newest_fact,
            mark: mark.clone(),
            _lock: lock,
        };
        let writer = Writer::new(
            connection,
            store.queue.clone(),
            stop.clone(),
            store.figures.clone(),
            store.recent.clone(),
            store.counts.clone(),
            store.checkpointer.wake_up(),
        )?
        .marking(mark);
        // From here on a failure drops the store, which ends the threads that it has.
        store.checkpointer.start(connections.checkpointer, stop)?;
        store.readers.start(connections.readers)?;
        store.writer = Some(spawn("longhaul-writer", move || writer.run())?);
        Ok(store)
    }

    /// Waits until the store stops for good, because the disk failed, and says why. The process must end then.
    pub async fn stopped(&self) -> String {
        let mut stopped = self.stopped.clone();
        let reason = match stopped.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone(),
            Err(_) => None,
        };
        reason.unwrap_or_else(|| "the writer has ended".to_owned())
    }

    /// The time of the newest fact when the store was opened: the clock starts no earlier.
    pub fn newest_fact(&self) -> Timestamp {
        self.newest_fact
    }

    /// Ends the leases of all owners whose ids begin so, because they are known to be dead: only one process has the file, so
    /// what an earlier one held is free. Before any work is taken under such an id.
    pub fn end_leases_of(&self, owners: &str, now: Timestamp) -> Reply<'_, ()> {
        self.claim(ClaimRequest::EndLeases { owners: owners.to_owned(), now }, Answer::done)
    }

    /// What the writer has done so far.
    pub fn figures(&self) -> &WriterFigures {
        &self.figures
    }

    /// Queues work for the writer; the answer comes after the sync.
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

impl Store for SqliteStore {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        let urgency = commit.urgency;
        self.write(Prepared::new(commit).map(Request::Commit), urgency, Answer::committed)
    }

    fn load<'a>(&'a self, id: &'a RecordId) -> Reply<'a, Option<Loaded>> {
        if let Some(loaded) = self.recent.get(id) {
            return Box::pin(std::future::ready(Ok(Some(loaded))));
        }
        let id = id.clone();
        self.readers.read(move |connection| at_once(reads::load(connection, &id)))
    }

    fn body<'a>(&'a self, id: &'a RecordId, body: BodyRef) -> Reply<'a, Option<Vec<u8>>> {
        if let Some(bytes) = self.recent.body(id, body) {
            return Box::pin(std::future::ready(Ok(Some(bytes.to_vec()))));
        }
        let id = id.clone();
        self.readers.read(move |connection| at_once(reads::body(connection, &id, body)))
    }

    fn key<'a>(&'a self, key: &'a IdempotencyKey) -> Reply<'a, Option<KeptKey>> {
        let key = key.clone();
        self.readers.read(move |connection| at_once(keys::key(connection, &key)))
    }

    fn jobs(&self, query: JobQuery) -> Reply<'_, Page> {
        self.readers.read(move |connection| at_once(lists::jobs(connection, &query)))
    }

    fn job_counts(&self) -> Reply<'_, Vec<(JobStateName, u64)>> {
        if let Some(counts) = self.counts.known() {
            return Box::pin(std::future::ready(Ok(counts)));
        }
        let counts = self.counts.clone();
        self.readers.read(move |connection| counts.count(connection))
    }

    fn open_jobs<'a>(&'a self, executor: &'a str) -> Reply<'a, OpenJobs> {
        if let Some(open) = self.counts.known_open(executor) {
            return Box::pin(std::future::ready(Ok(open)));
        }
        let (counts, executor) = (self.counts.clone(), executor.to_owned());
        self.readers.read(move |connection| counts.count_open(connection, &executor))
    }

    fn operations_of<'a>(&'a self, job: &'a JobId, limit: usize) -> Reply<'a, Vec<Arc<Record>>> {
        let job = job.clone();
        self.readers.read(move |connection| at_once(operations::of_job(connection, &job, limit)))
    }

    fn orphans(&self, after: Option<OrphanCursor>, limit: usize) -> Reply<'_, Vec<Arc<Record>>> {
        self.readers.read(move |connection| at_once(operations::orphans(connection, after.as_ref(), limit)))
    }

    fn orphan_count(&self) -> Reply<'_, u64> {
        self.readers.read(|connection| at_once(operations::orphan_count(connection)))
    }

    fn facts_of<'a>(
        &'a self,
        id: &'a RecordId,
        after_version: u64,
        limit: usize,
    ) -> Reply<'a, Vec<StoredFact>> {
        let id = id.clone();
        self.readers.read(move |connection| at_once(reads::facts_of(connection, &id, after_version, limit)))
    }

    fn facts_after(&self, position: u64, limit: usize) -> Reply<'_, Vec<StoredFact>> {
        self.readers.read(move |connection| at_once(reads::facts_after(connection, position, limit)))
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
        self.readers.read(|connection| at_once(reads::ready_lanes(connection)))
    }

    fn earliest_due(&self, kind: RecordKind) -> Reply<'_, Option<Timestamp>> {
        self.readers.read(move |connection| at_once(reads::earliest_due(connection, kind)))
    }

    fn keep_token(&self, token: Token) -> Reply<'_, ()> {
        let request = token.check().map(|()| Request::Token(TokenRequest::Keep(token)));
        self.write(request, Urgency::Result, Answer::done)
    }

    fn token<'a>(&'a self, sha256: &'a Digest) -> Reply<'a, Option<Token>> {
        let sha256 = *sha256;
        self.readers.read(move |connection| at_once(tokens::token(connection, sha256)))
    }

    fn tokens(&self) -> Reply<'_, Vec<Token>> {
        self.readers.read(|connection| at_once(tokens::tokens(connection)))
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
        self.readers.read(|connection| at_once(nodes::nodes(connection)))
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

impl Drop for SqliteStore {
    /// What waits is still written; then the threads end.
    fn drop(&mut self) {
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // A panicking writer has told its callers; there is nobody left to tell.
            let _ = writer.join();
        }
        self.readers.stop();
        self.checkpointer.stop();
        if let Some(mark) = &self.mark {
            mark.lock().expect("no holder of the lock panics").closed();
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|source| OpenError::Io { path: PathBuf::from(name), source })
}
