//! What an error of SQLite means for the caller and for the store.

use rusqlite::ErrorCode;
use store::StoreError;

/// Whether the store can go on.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No space: nothing was written, and it may work later.
    Full,
    /// The disk failed; nothing that was not synced may be trusted. The store stops.
    Fatal(String),
    /// Another program keeps the file locked; nothing was written.
    Locked,
    /// This statement failed; other work may be fine.
    Statement(String),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Fatal(error.to_string()),
            _ => Self::Statement(error.to_string()),
        }
    }
}

/// What the caller of a read is told.
pub(crate) fn read_failed(error: rusqlite::Error) -> StoreError {
    // Without a code it is not SQLite that failed: a value was read that does not fit its column's meaning.
    if error.sqlite_error_code().is_none() {
        return StoreError::Broken(error.to_string());
    }
    match Failure::from(error) {
        Failure::Full => StoreError::Full,
        Failure::Locked => locked(),
        Failure::Fatal(reason) => StoreError::Broken(reason),
        Failure::Statement(reason) => StoreError::Unavailable(reason),
    }
}

/// What callers are told while another program keeps the file locked.
pub(crate) fn locked() -> StoreError {
    StoreError::Unavailable("another program keeps the database locked".to_owned())
}
