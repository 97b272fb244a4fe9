//! What an error of SQLite means for the caller and for the store.

use rusqlite::{ErrorCode, ffi};
use store::StoreError;

/// Whether the store can go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No space: nothing was written, and it may work later.
    Full,
    /// No space after the log was written: another writer cannot see it, a restart may. It may work later.
    FullInDoubt,
    /// The disk failed; nothing that was not synced may be trusted. The store stops.
    Fatal(String),
    /// Another program keeps the file locked; nothing was written.
    Locked,
    /// This statement failed; other work may be fine.
    Statement(String),
}

impl Failure {
    /// What an error of COMMIT means. By then only a full disk is known to have written nothing.
    pub(crate) fn at_commit(error: rusqlite::Error) -> Self {
        if is_out_of_index_space(&error) {
            return Self::FullInDoubt;
        }
        match Self::from(error) {
            Self::Full => Self::Full,
            Self::FullInDoubt => Self::FullInDoubt,
            Self::Fatal(reason) | Self::Statement(reason) => Self::Fatal(reason),
            Self::Locked => Self::Fatal("the database was locked at the commit".to_owned()),
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        if is_out_of_index_space(&error) {
            return Self::Full;
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            // A quota that is used up is reported as SQLITE_IOERR_WRITE, like a failed disk. Only the errno of the connection tells them
            // apart, and reading it takes unsafe code.
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

/// A write without space is told as full; only the index of the log, which could not grow, is told as an I/O error. It is
/// shared memory: nothing of it has to survive, and so nothing is lost.
pub(super) fn is_out_of_index_space(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE)
}

/// What the caller of a read is told.
pub(crate) fn read_failed(error: rusqlite::Error) -> StoreError {
    // Without a code it is not SQLite that failed: a value was read that does not fit its column's meaning.
    if error.sqlite_error_code().is_none() {
        return StoreError::Broken(error.to_string());
    }
    match Failure::from(error) {
        Failure::Full | Failure::FullInDoubt => StoreError::Full,
        Failure::Locked => locked(),
        Failure::Fatal(reason) => StoreError::Broken(reason),
        Failure::Statement(reason) => StoreError::Unavailable(reason),
    }
}

/// What callers are told while another program keeps the file locked.
pub(crate) fn locked() -> StoreError {
    StoreError::Unavailable("another program keeps the database locked".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(extended_code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(extended_code), None)
    }

    #[test]
    fn every_shape_of_a_full_disk_is_full_and_stops_nothing() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
            assert_eq!(Failure::from(error(code)), Failure::Full);
            assert_eq!(read_failed(error(code)), StoreError::Full);
        }
        assert_eq!(Failure::at_commit(error(ffi::SQLITE_FULL)), Failure::Full);
        // The log may be on the disk by then.
        assert_eq!(Failure::at_commit(error(ffi::SQLITE_IOERR_SHMSIZE)), Failure::FullInDoubt);
    }

    #[test]
    fn failed_disk_stays_fatal() {
        for code in [
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_IOERR_SHMMAP,
            ffi::SQLITE_IOERR_SHMOPEN,
            ffi::SQLITE_CORRUPT,
        ] {
            for failure in [Failure::from(error(code)), Failure::at_commit(error(code))] {
                assert!(matches!(failure, Failure::Fatal(_)), "{code}: {failure:?}");
            }
        }
    }

    #[test]
    fn any_other_failure_of_a_commit_is_fatal_and_of_a_statement_is_not() {
        assert_eq!(Failure::from(error(ffi::SQLITE_BUSY)), Failure::Locked);
        assert!(matches!(Failure::from(error(ffi::SQLITE_CONSTRAINT)), Failure::Statement(_)));
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_CONSTRAINT] {
            assert!(matches!(Failure::at_commit(error(code)), Failure::Fatal(_)));
        }
    }
}
