//! Why a store cannot be opened, and what to do about it.

use std::path::PathBuf;

use thiserror::Error;

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
    /// The file is not a database.
    #[error("{path} is not a SQLite database, or is damaged: {reason}")]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The database is another program's.
    #[error("{path} is a database of another program; longhaul does not touch it")]
    Foreign {
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
            Self::NotADatabase { .. } => "not_a_database",
            Self::Foreign { .. } => "foreign_database",
            Self::NewerSchema { .. } => "newer_schema",
            Self::OlderSchema { .. } => "older_schema",
            Self::NewerViews { .. } => "newer_views",
            Self::Io { .. } => "store_io",
            Self::Database(_) => "store_refused",
            Self::Rebuild(_) => "views_not_rebuilt",
        }
    }
}
