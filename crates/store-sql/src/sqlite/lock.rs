//! One daemon per file, and per data directory: a lock beside the database that names its holder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::OpenError;

/// How often a lock whose recorded holder is dead is tried again: a child that it had just forked keeps the lock until it runs its program.
const TRIES_AFTER_DEATH: u32 = 100;
/// How long to wait between two of these tries.
const WAIT_AFTER_DEATH: Duration = Duration::from_millis(20);

/// Held as long as the store is open; the operating system frees it when the process ends, however it ends. A daemon whose store is elsewhere
/// holds that of the file that would be in its data directory.
pub struct FileLock {
    /// Beside the name.
    _named: File,
    /// Where the name is a link, also beside the file that it leads to: it may have other names.
    linked: Option<File>,
}

impl FileLock {
    /// Takes the lock, or says who has it.
    pub fn acquire(database: &Path) -> Result<Self, OpenError> {
        let named = take(database, &beside(&name(database)))?;
        let mut lock = Self { _named: named, linked: None };
        lock.follow(database)?;
        Ok(lock)
    }

    /// The same beside the file that the name leads to, once that has been made.
    pub(super) fn follow(&mut self, database: &Path) -> Result<(), OpenError> {
        if self.linked.is_none()
            && let Some(target) = target(database)
            && !is_one(&beside(&name(database)), &beside(&target))
        {
            self.linked = Some(take(database, &beside(&target))?);
        }
        Ok(())
    }

    /// The process that has the lock, if there is one.
    pub(crate) fn holder(database: &Path) -> Option<String> {
        [Some(name(database)), target(database)].into_iter().flatten().find_map(|path| {
            let mut file = File::open(beside(&path)).ok()?;
            match file.try_lock_shared() {
                Err(TryLockError::WouldBlock) => {
                    let mut pid = String::new();
                    file.read_to_string(&mut pid).ok()?;
                    Some(pid.trim().to_owned())
                }
                Ok(()) | Err(TryLockError::Error(_)) => None,
            }
        })
    }
}

fn take(database: &Path, path: &Path) -> Result<File, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
    let mut tries = 0;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.rewind().map_err(io)?;
                file.read_to_string(&mut pid).map_err(io)?;
                let pid = pid.trim().to_owned();
                if tries == TRIES_AFTER_DEATH || is_alive(&pid) {
                    return Err(OpenError::Locked { path: database.to_owned(), pid });
                }
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        tries += 1;
        std::thread::sleep(WAIT_AFTER_DEATH);
    }
    match write_holder(&mut file) {
        // Who has it is told to whoever is refused; the lock itself needs no room.
        Err(source) if source.kind() == ErrorKind::StorageFull => Ok(file),
        Err(source) => Err(io(source)),
        Ok(()) => Ok(file),
    }
}

/// Whether a process of this number runs, as far as this process can see.
fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

/// Over what was there, which takes no room where there was something.
fn write_holder(file: &mut File) -> std::io::Result<()> {
    let pid = std::process::id().to_string();
    file.rewind()?;
    file.write_all(pid.as_bytes())?;
    file.set_len(pid.len() as u64)
}

/// The name by the real path of its directory, so that it is one with the file's if it is no link.
fn name(database: &Path) -> PathBuf {
    let directory = match database.parent() {
        Some(directory) if directory.as_os_str().is_empty() => Path::new(".").canonicalize().ok(),
        Some(directory) => directory.canonicalize().ok(),
        None => None,
    };
    match (directory, database.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => database.to_owned(),
    }
}

/// The file that the name leads to, if it is a link to one that is there.
fn target(database: &Path) -> Option<PathBuf> {
    database.canonicalize().ok().filter(|target| *target != name(database))
}

/// Whether both names lead to one file: whoever has its lock cannot take it again.
fn is_one(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_without_a_directory_is_that_of_a_file_here() {
        let here = Path::new(".").canonicalize().unwrap();
        assert_eq!(name(Path::new("Cargo.toml")), here.join("Cargo.toml"));
        assert_eq!(target(Path::new("Cargo.toml")), None);
    }

    #[test]
    fn lock_that_outlives_its_dead_holder_is_awaited() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("store.sqlite");
        let held = File::create(beside(&database)).unwrap();
        held.lock().unwrap();
        // No process has this number.
        std::fs::write(beside(&database), "4194305").unwrap();
        let free = std::thread::spawn(move || {
            std::thread::sleep(WAIT_AFTER_DEATH * 3);
            drop(held);
        });
        FileLock::acquire(&database).unwrap();
        free.join().unwrap();
        std::fs::write(beside(&database), std::process::id().to_string()).unwrap();
        let held = File::open(beside(&database)).unwrap();
        held.lock().unwrap();
        assert!(matches!(FileLock::acquire(&database), Err(OpenError::Locked { .. })));
    }

    #[test]
    fn linked_file_whose_lock_is_linked_too_is_locked_once() {
        let (dir, disk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["store.sqlite", "store.sqlite.lock"] {
            std::fs::write(disk.path().join(name), "").unwrap();
            std::os::unix::fs::symlink(disk.path().join(name), dir.path().join(name)).unwrap();
        }
        let lock = FileLock::acquire(&dir.path().join("store.sqlite")).unwrap();
        assert!(FileLock::acquire(&disk.path().join("store.sqlite")).is_err());
        drop(lock);
        FileLock::acquire(&disk.path().join("store.sqlite")).unwrap();
    }
}
