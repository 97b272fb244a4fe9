//! The store on one SQLite file: one writer thread with group commit, readers beside it, checkpoints on their own.
//!
//! An answer is given only after the sync. Idle, every thread waits on its queue and nothing is asked of the file.

mod accepted_loss;
mod apply;
mod blank;
mod check;
mod checkpoint;
mod claims;
mod connect;
mod connections;
mod counts;
mod database;
mod failure;
mod jumps;
mod lock;
mod log_scan;
mod losses;
mod readers;
mod watermark;
mod writer;

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use domain::Timestamp;
use domain::attention::Retention;
use store::{
    ClaimOutcome, ClaimRequest, Commit, Committed, ReadAnswer, ReadRequest, Reply, SideWrite, Store,
    StoreError,
};
use tokio::sync::watch;

use crate::answer::answer;
use crate::database::at_once;
use crate::queue::Queue;
use crate::recent::Recent;
use crate::request::Item;
use crate::{ClaimLine, Durability, FactLine, OpenError, Rebuilt, Verified};
use crate::{export, floor};
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
pub use losses::{FileHeader, Loss, judge, refuse_damaged};
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

    /// What the writer has done so far.
    pub fn figures(&self) -> &WriterFigures {
        &self.figures
    }

    /// What needs no read.
    fn known(&self, request: &ReadRequest) -> Option<ReadAnswer> {
        if let ReadRequest::Load { id } = request {
            self.recent.get(id).map(|loaded| ReadAnswer::Load(Some(loaded)))
        } else if let ReadRequest::Body { id, body } = request {
            self.recent.body(id, *body).map(|bytes| ReadAnswer::Body(Some(bytes.to_vec())))
        } else if let ReadRequest::JobCounts {} = request {
            self.counts.known().map(ReadAnswer::JobCounts)
        } else if let ReadRequest::OpenJobs { executor } = request {
            self.counts.known_open(executor).map(ReadAnswer::OpenJobs)
        } else if let ReadRequest::Sights {} = request {
            Some(ReadAnswer::Sights(Vec::new()))
        } else {
            None
        }
    }
}

impl Store for SqliteStore {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        self.queue.commit(commit)
    }

    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimOutcome> {
        self.queue.claim(request)
    }

    fn write(&self, write: SideWrite) -> Reply<'_, bool> {
        self.queue.write(write)
    }

    fn read(&self, request: ReadRequest) -> Reply<'_, ReadAnswer> {
        if let Some(known) = self.known(&request) {
            return Box::pin(std::future::ready(Ok(known)));
        }
        let counts = self.counts.clone();
        self.readers.read(move |connection| {
            if let ReadRequest::JobCounts {} = request {
                counts.count(connection).map(ReadAnswer::JobCounts)
            } else if let ReadRequest::OpenJobs { executor } = &request {
                counts.count_open(connection, executor).map(ReadAnswer::OpenJobs)
            } else {
                at_once(answer(connection, &request))
            }
        })
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
