//! Why a backup is not made or not restored, and what to do about it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use store::StoreError;
use thiserror::Error;

use crate::{OpenError, Verified};

/// A backup that is not made, or not restored; nothing half-made has a name that anybody takes for whole.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be read or written.
    #[error("{0}; nothing was made")]
    Store(#[from] StoreError),
    /// There is a file of that name.
    #[error("{path} is there already; choose another name, or replace it with --force")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Something of that name is no backup, and stays.
    #[error("{path} is {what}; {hint}")]
    InTheWay {
        /// The place.
        path: PathBuf,
        /// What is there.
        what: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// A backup that goes with its store is none, and one that is written over it leaves neither.
    #[error("{path} is in the data directory of the store that is backed up; choose a place outside of it")]
    InTheDataDirectory {
        /// The file.
        path: PathBuf,
    },
    /// There is no directory to make a file in.
    #[error("the directory {path} does not exist; make it, or choose another one")]
    NoDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// What should be a directory is something else.
    #[error("{path} is not a directory; choose another one")]
    NotADirectory {
        /// The place.
        path: PathBuf,
    },
    /// Another process is at it.
    #[error("another backup is being written to {path}; wait for it, or choose another name")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The disk is too small, as far as is known beforehand.
    #[error("{path} needs {needed} bytes and its disk has {free} left; make room, or choose another disk")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        needed: u64,
        /// Bytes that are left.
        free: u64,
    },
    /// The disk became full.
    #[error("the disk of {path} is full; make room, or choose another disk; nothing was made")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The daemon writes faster than its store can be read.
    #[error(
        "the log of {path} has grown by {grown} bytes meanwhile, which is as much as a backup may cost; take it when less is written"
    )]
    LogGrew {
        /// The store.
        path: PathBuf,
        /// By how much.
        grown: u64,
    },
    /// The store is not in order.
    #[error(
        "{count} differences to the ledger, the first: {first}; run `longhaul verify`, and `longhaul rebuild` if only views differ"
    )]
    Differs {
        /// How many.
        count: u64,
        /// The first.
        first: String,
    },
    /// The file is something else.
    #[error("{path} is no backup, or not all of one: {reason}")]
    NotABackup {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is not as it was made.
    #[error("{path} is damaged: {reason}; use another copy of it, or an earlier backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer longhaul made the file.
    #[error("{path} has the format {found}, this longhaul knows up to {known}; use a newer longhaul")]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: i64,
        /// What we know.
        known: i64,
    },
    /// The target is in use.
    #[error("there is something at {place} already; a backup is restored only where nothing is: {hint}")]
    NotEmpty {
        /// The target.
        place: String,
        /// What to do.
        hint: String,
    },
    /// The file system said no.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

impl BackupError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Open(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Exists { .. } => "backup_exists",
            Self::Busy { .. } => "backup_busy",
            Self::InTheDataDirectory { .. } => "in_the_data_directory",
            Self::TooLarge { .. } | Self::Full { .. } => "disk_full",
            Self::LogGrew { .. } => "log_too_long",
            Self::Differs { .. } => "store_differs",
            Self::NotABackup { .. } | Self::InTheWay { .. } => "not_a_backup",
            Self::Damaged { .. } => "backup_damaged",
            Self::NewerFormat { .. } => "newer_backup",
            Self::NotEmpty { .. } => "store_not_empty",
            Self::NoDirectory { .. } | Self::NotADirectory { .. } | Self::Io { .. } => "io",
        }
    }

    /// A store that is not as its ledger says.
    pub(crate) fn differs(verified: &Verified) -> Self {
        let first = verified.differences.first().map(ToString::to_string).unwrap_or_default();
        Self::Differs { count: verified.difference_count, first }
    }

    /// What an error of the file system means for a file that is written or read.
    pub fn of_file(path: &Path, source: std::io::Error) -> Self {
        let path = path.to_owned();
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
        if full.contains(&source.kind()) { Self::Full { path } } else { Self::Io { path, source } }
    }

    /// What an error of SQLite means for a file that is written.
    pub(crate) fn of_database(path: &Path, error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path: path.to_owned() },
            _ => Self::Open(OpenError::Database(error)),
        }
    }
}
