//! Where stores are made: files in a scratch directory, or schemas of a database; each gone when it is dropped.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use reporting::Progress;
use rusqlite::{Connection, OpenFlags};
use store::Store;
use store_sql::{
    Durability, PostgresAddress, PostgresOptions, PostgresStore, SCHEMA_VERSION, ScratchSchema,
    SqliteOptions, SqliteStore, migrate_postgres_to,
};
use tokio::runtime::Runtime;

use crate::books::Books;
use crate::raw;

/// What a scratch schema is named after, with the process and a number.
const SCHEMA: &str = "longhaul_bench";
/// How soon a wait hears that it is over.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Where everything of a bench is.
pub struct Ground {
    /// The program that is measured.
    pub binary: PathBuf,
    /// A directory of the bench's own.
    pub scratch: PathBuf,
    /// A PostgreSQL database; without one, stores are files.
    pub server: Option<String>,
    /// For what is done in this process: all cores.
    pub runtime: Runtime,
    /// Set from outside to end it early.
    pub interrupted: Arc<AtomicBool>,
    progress: Mutex<Progress>,
    made: AtomicU32,
}

impl Ground {
    /// On this directory, which is there.
    pub fn new(
        binary: PathBuf,
        scratch: PathBuf,
        server: Option<String>,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let progress = Mutex::default();
        Ok(Self { binary, scratch, server, runtime, interrupted, progress, made: AtomicU32::new(0) })
    }

    /// Fails if somebody wants to see the end of it.
    pub fn go_on(&self) -> Result<()> {
        if self.interrupted.load(Ordering::SeqCst) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Lets time go by, unless somebody wants to see the end of it.
    pub fn wait(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.go_on()?;
            std::thread::sleep(left.min(LOOK_EVERY));
        }
        Ok(())
    }

    /// Says what goes on.
    pub fn say(&self, line: &str) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).show(line);
    }

    /// Says that something else begins.
    pub fn begin(&self, line: &str) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).begin(line);
    }

    /// Nothing goes on any more.
    pub fn hush(&self) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A place for a store that is not there yet.
    pub fn site(&self) -> Result<Site<'_>> {
        self.go_on()?;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let dir = self.scratch.join(format!("store-{number}"));
        std::fs::create_dir(&dir)?;
        let schema = match &self.server {
            None => None,
            Some(server) => {
                let name = format!("{SCHEMA}_{}_{number}", std::process::id());
                Some(self.runtime.block_on(ScratchSchema::make(server, &name))?)
            }
        };
        Ok(Site { ground: self, dir, schema })
    }
}

/// A place for one store.
pub struct Site<'a> {
    /// Where it is one of many.
    pub ground: &'a Ground,
    /// The data directory of a daemon.
    pub dir: PathBuf,
    schema: Option<ScratchSchema>,
}

/// Our store, in this process.
pub enum Opened {
    /// On a file.
    Sqlite(Arc<SqliteStore>),
    /// On a schema.
    Postgres(Arc<PostgresStore>),
}

impl Site<'_> {
    /// The file of the store.
    pub fn file(&self) -> PathBuf {
        self.dir.join("longhaul.sqlite")
    }

    /// Whether the store is a file.
    pub fn is_file(&self) -> bool {
        self.schema.is_none()
    }

    /// What a daemon is told of it.
    pub fn arguments(&self) -> Vec<OsString> {
        match &self.schema {
            None => Vec::new(),
            Some(schema) => vec!["--database".into(), schema.address().into()],
        }
    }

    /// Opens our store.
    pub fn open(&self, durability: Durability) -> Result<Opened> {
        let Some(schema) = &self.schema else {
            let options = SqliteOptions { durability, ..SqliteOptions::at(self.file()) };
            let _in_runtime = self.ground.runtime.enter();
            return Ok(Opened::Sqlite(Arc::new(SqliteStore::open(&options)?)));
        };
        let options = PostgresOptions::at(PostgresAddress::parse(schema.address())?);
        Ok(Opened::Postgres(Arc::new(self.ground.runtime.block_on(PostgresStore::open(&options))?)))
    }

    /// Opens what stands in it, to read.
    pub fn books(&self) -> Result<Books> {
        match &self.schema {
            None => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
                Ok(Books::Sqlite(Connection::open_with_flags(self.file(), flags)?))
            }
            Some(schema) => self.client(schema),
        }
    }

    /// Opens it to write into it behind the store's back: nobody else has it. The tables are made if they are not there.
    pub fn raw(&self) -> Result<Books> {
        match &self.schema {
            None => Ok(Books::Sqlite(raw::open(&self.file())?)),
            Some(schema) => {
                let address = PostgresAddress::parse(schema.address())?;
                self.ground.runtime.block_on(migrate_postgres_to(&address, SCHEMA_VERSION))?;
                self.client(schema)
            }
        }
    }

    fn client(&self, schema: &ScratchSchema) -> Result<Books> {
        let runtime = &self.ground.runtime;
        Ok(Books::Postgres(runtime.handle().clone(), runtime.block_on(schema.client())?))
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
        if let Some(schema) = &self.schema
            && let Err(error) = self.ground.runtime.block_on(schema.drop_it())
        {
            eprintln!("longhaul: a scratch schema is left: {error:#}");
        }
    }
}

impl Opened {
    /// For an engine.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }

    /// Durable transactions so far.
    pub fn transactions(&self) -> u64 {
        match self {
            Self::Sqlite(store) => store.figures().batches(),
            Self::Postgres(store) => store.figures().batches(),
        }
    }

    /// Waits until all of it has ended.
    pub fn close(self, ground: &Ground) {
        match self {
            Self::Sqlite(store) => drop(store),
            Self::Postgres(store) => {
                if let Some(store) = Arc::into_inner(store) {
                    ground.runtime.block_on(store.close());
                }
            }
        }
    }
}
