//! One daemon per file, and per data directory: a lock beside the database that names its holder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::OpenError;

/// Held as long as the store is open; the operating system frees it when the process ends, however it ends. A daemon whose store is elsewhere
/// holds that of the file that would be in its data directory.
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock, or says who has it.
    pub fn acquire(database: &Path) -> Result<Self, OpenError> {
        let path = lock_path(database);
        let io = |source| OpenError::Io { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).map_err(io)?;
                return Err(OpenError::Locked { path: database.to_owned(), pid: pid.trim().to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        file.set_len(0).map_err(io)?;
        file.rewind().map_err(io)?;
        write!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }

    /// The process that has the lock, if there is one.
    pub(crate) fn holder(database: &Path) -> Option<String> {
        let mut file = File::open(lock_path(database)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).ok()?;
                Some(pid.trim().to_owned())
            }
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

/// Beside the file itself, wherever the name leads: one file has one lock.
fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.canonicalize().unwrap_or_else(|_| database.to_owned()).into_os_string();
    name.push(".lock");
    PathBuf::from(name)
}
