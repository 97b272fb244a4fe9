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
//! | `tally.rs` | how many jobs are in each state: kept, never counted |
//! | `hints.rs`, `shared.rs`, `time.rs`, `clock.rs`, `nodes.rs`, `versions.rs` | what nodes tell each other, the time that they share and its correction, who is there, and whether all work with the same schema |
//!
//! With SQLite it shares the encoding of commits (`prepare.rs`), the check of a commit (`checks.rs`), rows (`rows.rs`), the queue
//! (`queue.rs`) and every statement that is not about many rows at once.

mod address;
mod artifacts;
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
mod pool;
mod restore;
mod scratch;
mod session;
mod shared;
mod statements;
mod tally;
mod time;
mod tls;
mod versions;
mod writer;

use std::sync::Arc;

use domain::attention::Retention;
use domain::{RecordId, Timestamp};
use store::{
    ClaimOutcome, ClaimRequest, Commit, Committed, ReadAnswer, ReadRequest, Remembered, Reply, SideWrite,
    Store, StoreError,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answer::answer;
use crate::database::{integer, one, text};
use crate::dialect::Sql;
use crate::queue::Queue;
use crate::recent::Recent;
use crate::request::Item;
use crate::{ClaimLine, Durability, FactLine, OpenError, Rebuilt, Verified};
use crate::{export, floor};
use hints::Hints;
use migrate::Readiness;
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

    /// Takes nothing more in; returns when what waited is written.
    pub async fn close(mut self) {
        self.queue.close();
        for writer in self.writers.drain(..) {
            // One that panicked has told its callers by ending.
            let _ = writer.await;
        }
    }
}

impl Store for PostgresStore {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        self.queue.commit(commit)
    }

    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimOutcome> {
        self.queue.claim(request)
    }

    fn write(&self, write: SideWrite) -> Reply<'_, bool> {
        if !matches!(write, SideWrite::KeepClock { .. } | SideWrite::TimersMoved { .. }) {
            return self.queue.write(write);
        }
        Box::pin(async move {
            let write = &write;
            let change = |session: Arc<Session>| async move { clock::change(&session, write).await };
            let changed = self.pool.read(change).await;
            self.recent.forget_all();
            changed
        })
    }

    fn read(&self, request: ReadRequest) -> Reply<'_, ReadAnswer> {
        Box::pin(async move {
            let request = &request;
            let read = |session: Arc<Session>| async move {
                if let ReadRequest::JobCounts {} = request {
                    tally::job_counts(&session).await.map(ReadAnswer::JobCounts)
                } else if let ReadRequest::OpenJobs { executor } = request {
                    tally::open_jobs(&session, executor).await.map(ReadAnswer::OpenJobs)
                } else if let ReadRequest::Sights {} = request {
                    clock::sights(&session).await.map(ReadAnswer::Sights).map_err(PostgresError::told)
                } else {
                    answer(&*session, request).await
                }
            };
            self.pool.read(read).await
        })
    }

    fn remembered(&self, id: &RecordId) -> Option<Remembered> {
        self.recent.remembered(id)
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
