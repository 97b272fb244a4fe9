//! What lies where a backup is to be, by its kind and its first bytes: only what is a backup, or was to become one, may be replaced.
//!
//! No digest is checked here: a backup that is damaged or cut off may be replaced by a whole one.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::{BACKUP_APPLICATION_ID, BackupError, beside};
use crate::sqlite::STORE_APPLICATION_ID;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Where SQLite has the number of the program that a database belongs to.
const APPLICATION_ID: std::ops::Range<usize> = 68..72;
const HEADER_BYTES: u64 = 100;

/// What lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// A file without a byte.
    Empty,
    /// A backup, whole or not.
    Backup,
    /// A store, or a draft that is not marked yet.
    Store,
    /// A database with its log beside it, in which its mark may still be.
    InUse,
    /// A draft whose first page was not written yet.
    Blank,
    /// Something else, in words.
    Other(&'static str),
}

impl Found {
    pub(super) fn at(path: &Path) -> std::io::Result<Self> {
        let kind = match path.symlink_metadata() {
            Ok(about) => about.file_type(),
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Ok(Self::Nothing);
            }
            Err(error) => return Err(error),
        };
        // Before it is opened: a pipe would wait for somebody, and a device may do anything.
        if kind.is_file() {
            Self::in_file(path)
        } else if kind.is_dir() {
            Ok(Self::Other("a directory"))
        } else if kind.is_symlink() {
            Ok(Self::Other("a symbolic link"))
        } else if kind.is_block_device() || kind.is_char_device() {
            Ok(Self::Other("a device"))
        } else if kind.is_fifo() {
            Ok(Self::Other("a pipe"))
        } else if kind.is_socket() {
            Ok(Self::Other("a socket"))
        } else {
            Ok(Self::Other("no regular file"))
        }
    }

    fn in_file(path: &Path) -> std::io::Result<Self> {
        let mut header = Vec::new();
        File::open(path)?.take(HEADER_BYTES).read_to_end(&mut header)?;
        let number =
            header.get(APPLICATION_ID).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
        Ok(if header.is_empty() {
            Self::Empty
        } else if header.iter().all(|byte| *byte == 0) {
            Self::Blank
        } else if !header.starts_with(MAGIC) {
            Self::Other("no backup")
        } else if number.map(i64::from) == Some(BACKUP_APPLICATION_ID) {
            Self::Backup
        } else if number.map(i64::from) == Some(STORE_APPLICATION_ID) {
            Self::Store
        } else if beside(path, "-wal").exists() {
            Self::InUse
        } else {
            Self::Other("another program's database")
        })
    }

    /// What it is, for a sentence that begins with its name.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Empty => "an empty file",
            Self::Backup => "a backup",
            Self::Store => "a store",
            Self::InUse => "a database with its log beside it, such as a store",
            Self::Blank => "no backup",
            Self::Other(what) => what,
        }
    }

    /// Refuses to be replaced by a backup.
    pub(super) fn in_the_way(self, path: &Path) -> BackupError {
        let what = self.in_words();
        let hint = if self == Self::Other("a directory") {
            "name a file in it"
        } else {
            "only a backup is replaced: choose another name"
        };
        BackupError::InTheWay { path: path.to_owned(), what, hint }
    }
}

/// The directory of a file is there.
pub(super) fn check_directory_of(path: &Path) -> Result<(), BackupError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    match directory.metadata() {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(BackupError::NotADirectory { path: directory.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(BackupError::NoDirectory { path: directory.to_owned() })
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(BackupError::NotADirectory { path: directory.to_owned() })
        }
        Err(error) => Err(BackupError::of_file(directory, error)),
    }
}
