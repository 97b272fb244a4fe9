//! Files that SQLite would take for an empty database, seen before it opens them: it removes the log of a file without a byte, and a file
//! without a table is a new store to whoever opens it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::OpenError;
use crate::backup::log_of;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Where a file says how many pages it has.
const PAGE_COUNT: std::ops::Range<usize> = 28..32;
const HEADER_BYTES: u64 = 100;

/// What a file and its log hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// Nothing, or nothing but the first page of a database that no table was made in.
    Blank,
    /// A log, and no file that it belongs to.
    LogAlone,
    /// Something.
    Something,
}

/// What is there, whatever links lead to it. Not for a file that this process has open: it is opened and closed here, and with that every lock
/// that SQLite has on it in this process is gone.
pub fn filled(path: &Path) -> Result<Filled, OpenError> {
    let log = log_bytes(path)?;
    Ok(match header(path)? {
        Header { bytes: 0, .. } if log > 0 => Filled::LogAlone,
        Header { has_tables: false, .. } if log == 0 => Filled::Blank,
        Header { .. } => Filled::Something,
    })
}

/// Refuses what SQLite must not open: an empty file whose log it would remove, and a file of several names, each of which would have a log of
/// its own. Opens nothing.
pub(super) fn check(path: &Path) -> Result<(), OpenError> {
    let (bytes, names) = match path.metadata() {
        Ok(about) if about.is_file() => (about.len(), about.nlink()),
        // Told by whoever opens it.
        Ok(_) => return Ok(()),
        Err(error) => (missing_or(path, error)?, 1),
    };
    if bytes == 0 && log_bytes(path)? > 0 {
        return Err(OpenError::Emptied { path: path.to_owned(), log: log_path(path) });
    }
    if names > 1 {
        return Err(OpenError::ManyNames { path: path.to_owned(), names });
    }
    Ok(())
}

struct Header {
    bytes: u64,
    /// A table needs a second page, also in a file that was cut off since. What is no database is not without tables.
    has_tables: bool,
}

fn header(path: &Path) -> Result<Header, OpenError> {
    let read = File::open(path).and_then(|file| {
        let (bytes, mut header) = (file.metadata()?.len(), Vec::new());
        file.take(HEADER_BYTES).read_to_end(&mut header)?;
        Ok((bytes, header))
    });
    let (bytes, header) = match read {
        Ok(read) => read,
        Err(error) => {
            missing_or(path, error)?;
            (0, Vec::new())
        }
    };
    let pages = header.get(PAGE_COUNT).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let has_tables = bytes > 0 && (!header.starts_with(MAGIC) || pages.is_none_or(|pages| pages > 1));
    Ok(Header { bytes, has_tables })
}

fn log_bytes(path: &Path) -> Result<u64, OpenError> {
    let log = log_path(path);
    match log.metadata() {
        Ok(about) => Ok(about.len()),
        Err(error) => missing_or(&log, error),
    }
}

/// SQLite keeps it beside the file itself.
fn log_path(path: &Path) -> PathBuf {
    log_of(&path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

/// What is missing has no bytes; nor has a directory, which whoever opens it finds out about.
fn missing_or(path: &Path, source: std::io::Error) -> Result<u64, OpenError> {
    const HOLDS_NOTHING: [ErrorKind; 3] =
        [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::IsADirectory];
    if HOLDS_NOTHING.contains(&source.kind()) {
        return Ok(0);
    }
    Err(OpenError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteOptions, SqliteStore};

    #[test]
    fn file_without_a_table_is_blank_unless_its_log_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.sqlite");
        assert_eq!(filled(&path).unwrap(), Filled::Blank);
        let store = SqliteStore::open(&SqliteOptions::at(&path)).unwrap();
        assert_eq!(filled(&path).unwrap(), Filled::Something, "in its log");
        let young = directory.path().join("young.sqlite");
        std::fs::copy(&path, &young).unwrap();
        assert_eq!(filled(&young).unwrap(), Filled::Blank, "its log did not come along");
        std::fs::copy(log_of(&path), log_of(&young)).unwrap();
        assert_eq!(filled(&young).unwrap(), Filled::Something);
        std::fs::write(&young, "").unwrap();
        assert_eq!(filled(&young).unwrap(), Filled::LogAlone);
        drop(store);
        assert_eq!(filled(&path).unwrap(), Filled::Something, "its log was moved into it");
        std::fs::write(&young, "no database").unwrap();
        std::fs::remove_file(log_of(&young)).unwrap();
        assert_eq!(filled(&young).unwrap(), Filled::Something);
    }
}
