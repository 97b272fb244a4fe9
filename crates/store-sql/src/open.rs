//! Why a store cannot be opened, and what to do about it.

use std::path::PathBuf;

use thiserror::Error;

use crate::sqlite::Loss;

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it survives power loss.
    #[default]
    Full,
    /// When it survives the end of the process; power loss may take the last commits. An explicit choice. On a server: it may be one
    /// that does not sync.
    Relaxed,
}

/// A store that cannot be opened; nothing in it was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another daemon has it.
    #[error("{path} is in use by the process {pid}; stop it first, or use another data directory")]
    Locked {
        /// The store.
        path: PathBuf,
        /// The process that holds it.
        pid: String,
    },
    /// There is no store.
    #[error("there is no store at {path}; check the data directory")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is empty, and its log is not.
    #[error(
        "{path} is empty or gone, and {log} holds what was written last; put the file back, or move the log away and restore a backup"
    )]
    Emptied {
        /// The file.
        path: PathBuf,
        /// Its log.
        log: PathBuf,
    },
    /// Each name would have a log of its own.
    #[error(
        "{path} has {names} names (hard links), each of which would be a store of its own; remove the others, or use a copy of the file"
    )]
    ManyNames {
        /// One of them.
        path: PathBuf,
        /// How many there are.
        names: u64,
    },
    /// The file is not a database.
    #[error(
        "{path} is not a SQLite database, or is damaged: {reason}; restore a backup into another data directory"
    )]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// File and log are not what they were when commits were acknowledged.
    #[error(
        "{path} is damaged, or has lost commits that were acknowledged: {loss}; restore a backup into another data directory (longhaul restore \
         FILE --data-dir NEW), or go on without what is lost: longhaul serve --accept-loss"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        loss: Loss,
    },
    /// The database is another program's.
    #[error("{path} is a database of another program; longhaul does not touch it")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The database is a backup.
    #[error("{path} is a backup; make a store of it with: longhaul restore {path} --data-dir NEW")]
    Backup {
        /// The file.
        path: PathBuf,
    },
    /// A newer longhaul wrote it.
    #[error("the store has schema {found}, this longhaul knows up to {known}; use a newer longhaul")]
    NewerSchema {
        /// What the store has.
        found: i64,
        /// What we know.
        known: i64,
    },
    /// An older longhaul wrote it, and reading alone does not bring it up to date.
    #[error(
        "the store has schema {found}, this longhaul needs {known}; start the daemon once to bring it up to date"
    )]
    OlderSchema {
        /// What the store has.
        found: i64,
        /// What we need.
        known: i64,
    },
    /// A newer longhaul wrote the views.
    #[error("the views have format {found}, this longhaul knows up to {known}; use a newer longhaul")]
    NewerViews {
        /// What the store has.
        found: i64,
        /// What we know.
        known: i64,
    },
    /// The file system said no.
    #[error("cannot open {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// The database said no.
    #[error("the database refused: {0}")]
    Database(#[from] rusqlite::Error),
    /// The address of a database is not one.
    #[error(
        "the address of the database cannot be used: {reason}; for example postgres://user:password@host:5432/database"
    )]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// No server answers.
    #[error("no PostgreSQL answers at {address}: {reason}; check the address, and that the server runs")]
    Unreachable {
        /// Where, without a password.
        address: String,
        /// What was heard instead.
        reason: String,
    },
    /// The server has no such database.
    #[error("the server at {address} has no database {name:?}; make it with: createdb {name}")]
    NoDatabase {
        /// Where, without a password.
        address: String,
        /// The database.
        name: String,
    },
    /// The server does not let this user do that.
    #[error(
        "{address} does not let us in or work there: {reason}; check user and password, and let the user own its schema"
    )]
    Rights {
        /// Where, without a password.
        address: String,
        /// What the server said.
        reason: String,
    },
    /// There is no encrypted connection, or the server is not known to be the one that was named.
    #[error(
        "no encrypted connection to {address}: {reason}; name the certificate that vouches for the server with \
         sslrootcert=FILE, or use sslmode=disable where nobody can listen"
    )]
    Encryption {
        /// Where, without a password.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// The database has no room.
    #[error("the database at {address} is full: {reason}; make room on its disk and start again")]
    Full {
        /// Where, without a password.
        address: String,
        /// What the server said.
        reason: String,
    },
    /// The disk of a file has no room for what must be written before it can be read.
    #[error(
        "the disk of {path} is full, and what an older longhaul has written must be brought up to date before it can be read; make room and \
         start again: nothing is lost"
    )]
    FileFull {
        /// The file.
        path: PathBuf,
    },
    /// The disk of a file has no room for a new store.
    #[error("the disk of {path} is full, and a new store needs room; make room and start again")]
    NoRoom {
        /// The file.
        path: PathBuf,
    },
    /// The database takes no writes.
    #[error(
        "the database at {address} is read-only; use the primary server, or a user whose transactions may write"
    )]
    ReadOnly {
        /// Where, without a password.
        address: String,
    },
    /// The server keeps nothing through a power loss, and nobody has said that this will do.
    #[error(
        "the server at {address} runs with fsync off: what it acknowledges is lost with the power of its machine; turn fsync on, or say \
         `durability: relaxed` in longhaul.yaml"
    )]
    Unsynced {
        /// Where, without a password.
        address: String,
    },
    /// The database holds no store.
    #[error("there is no store in {address}; start the daemon once to make it, or check the address")]
    NoStore {
        /// Where, without a password.
        address: String,
    },
    /// Tables of another program are where ours would be.
    #[error(
        "{address} has a table {table:?} of another program; use a database or a schema of its own for longhaul"
    )]
    ForeignTable {
        /// Where, without a password.
        address: String,
        /// The table.
        table: String,
    },
    /// The server said something else.
    #[error("the database at {address} refused: {reason}")]
    Server {
        /// Where, without a password.
        address: String,
        /// What it said.
        reason: String,
    },
    /// What lies there is another store's.
    #[error("{path} is the data directory of another store, by {mark}: {hint}")]
    OtherStore {
        /// The data directory.
        path: PathBuf,
        /// What is in it of the other.
        mark: PathBuf,
        /// What to do.
        hint: &'static str,
    },
    /// A restore was interrupted, and there is no store.
    #[error(
        "a restore was interrupted here and there is no store yet, only {path}; run `longhaul restore` again, or use another data directory \
         for an empty store"
    )]
    HalfRestored {
        /// What it has left.
        path: PathBuf,
    },
    /// The views had to be rebuilt, and could not be.
    #[error("the views cannot be rebuilt: {0}")]
    Rebuild(String),
}

impl OpenError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "store_locked",
            Self::Missing { .. } => "store_missing",
            Self::Emptied { .. } => "store_emptied",
            Self::ManyNames { .. } => "store_many_names",
            Self::NotADatabase { .. } => "not_a_database",
            Self::Damaged { loss, .. } => loss.code(),
            Self::Foreign { .. } => "foreign_database",
            Self::Backup { .. } => "is_a_backup",
            Self::NewerSchema { .. } => "newer_schema",
            Self::OlderSchema { .. } => "older_schema",
            Self::NewerViews { .. } => "newer_views",
            Self::Io { .. } => "store_io",
            Self::Database(_) => "store_refused",
            Self::Address { .. } => "database_address",
            Self::Unreachable { .. } => "database_unreachable",
            Self::NoDatabase { .. } => "database_missing",
            Self::Rights { .. } => "database_rights",
            Self::Encryption { .. } => "database_encryption",
            Self::Full { .. } => "database_full",
            Self::FileFull { .. } | Self::NoRoom { .. } => "store_full",
            Self::ReadOnly { .. } => "database_read_only",
            Self::OtherStore { .. } => "other_store",
            Self::Unsynced { .. } => "database_unsynced",
            Self::NoStore { .. } => "store_missing",
            Self::ForeignTable { .. } => "foreign_database",
            Self::Server { .. } => "store_refused",
            Self::HalfRestored { .. } => "half_restored",
            Self::Rebuild(_) => "views_not_rebuilt",
        }
    }
}
