//! A backup in the making: under another name beside its own until it is verified and sealed. Whoever is killed leaves no backup, only
//! a draft that the next one of this name replaces.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params};
use store::ArtifactName;

use super::found::{Found, check_directory_of};
use super::page_copy::Snapshot;
use super::tables::{MAKE_EXTRAS, forget_processes};
use super::{
    BACKUP_APPLICATION_ID, BackupError, Contents, FORMAT, Stage, Watch, artifacts, beside, remove_database,
    remove_logs, seal, sync_directory_of,
};
use crate::database::unsigned;
use crate::rows::signed;
use crate::sqlite::FILE_MODE;
#[cfg(feature = "postgres")]
use crate::{PostgresAddress, PostgresLedger};

/// 64 MiB.
const CACHE_KIB: i64 = 65_536;
const ABOUT: &str = "INSERT INTO backup (name, value) VALUES (?1, ?2)";

/// What happens to a file that has the backup's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and there is no backup.
    Kept,
    /// It stays until the backup is done, and is replaced by it if it is a backup or empty.
    Replaced,
}

/// A backup that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The last position of the ledger that is in it.
    pub position: u64,
    /// Records in it.
    pub records: u64,
    /// Facts in it.
    pub facts: u64,
    /// Artifacts in it.
    pub artifacts: u64,
    /// Bytes of its file.
    pub bytes: u64,
}

/// A backup in the making; dropped before it is finished, nothing is left of it.
pub struct Draft {
    path: PathBuf,
    /// Where it is until it is done.
    unfinished: PathBuf,
    existing: Existing,
    connection: Connection,
    /// Held until the draft has its name, so that two never write one file.
    lock: File,
}

impl Draft {
    /// Begins a backup that will have this name.
    pub fn begin(path: &Path, existing: Existing) -> Result<Self, BackupError> {
        check_name(path, existing)?;
        let unfinished = beside(path, ".partial");
        let lock = lock(path, &unfinished)?;
        // Nothing of what an earlier one has left is in this one.
        let emptied = remove_logs(&unfinished).and_then(|()| lock.set_len(0));
        emptied.map_err(|source| BackupError::of_file(&unfinished, source))?;
        let connection = open(&unfinished).map_err(|error| BackupError::of_database(&unfinished, error))?;
        Ok(Self { path: path.to_owned(), unfinished, existing, connection, lock })
    }

    /// Copies the store that is a file, as it is at one moment. So many bytes of artifacts will come besides.
    pub fn copy_file(
        &mut self,
        store: &Path,
        artifact_bytes: u64,
        watch: Watch<'_>,
    ) -> Result<(), BackupError> {
        let snapshot = Snapshot::of(store)?;
        self.check_room(snapshot.bytes + artifact_bytes)?;
        snapshot.copy_to(&mut self.connection, store, &self.unfinished, watch)?;
        // The copy is in WAL mode, as the store is: a backup is one file.
        let connection = &self.connection;
        let settled = configure(connection).and_then(|()| connection.execute_batch(MAKE_EXTRAS));
        settled.map_err(|error| self.failed(error))?;
        self.settle()
    }

    /// Copies the store that is in a database, as it is at one moment.
    #[cfg(feature = "postgres")]
    pub async fn copy_server(
        &mut self,
        address: &PostgresAddress,
        contents: Contents,
        watch: Watch<'_>,
    ) -> Result<(), BackupError> {
        let ledger = PostgresLedger::open(address).await?;
        // Before the first table, or never. With its mark the next one of this name knows the draft as one.
        let begun = self
            .connection
            .pragma_update(None, "auto_vacuum", "INCREMENTAL")
            .and_then(|()| self.connection.pragma_update(None, "application_id", BACKUP_APPLICATION_ID));
        begun.map_err(|error| self.failed(error))?;
        crate::migrate_to(&mut self.connection, crate::SCHEMA_VERSION)?;
        self.connection.execute_batch(MAKE_EXTRAS).map_err(|error| self.failed(error))?;
        ledger.copy_to(&self.connection, &self.unfinished, contents, watch).await?;
        self.settle()
    }

    /// Takes out what belongs to the processes of the store, and marks what is left as a backup.
    fn settle(&self) -> Result<(), BackupError> {
        let failed = |error| self.failed(error);
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        forget_processes(&transaction)?;
        transaction.pragma_update(None, "application_id", BACKUP_APPLICATION_ID).map_err(failed)?;
        let position =
            number(&transaction, "SELECT coalesce(max(position), 0) FROM facts").map_err(failed)?;
        for (name, value) in [("format", FORMAT), ("position", signed(position))] {
            transaction.execute(ABOUT, params![name, value]).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    /// Keeps a key that lies beside the store.
    pub fn keep_key(&self, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let kept = self.connection.execute(
            "INSERT INTO backup_shared_keys (name, bytes) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING",
            params![name, bytes],
        );
        kept.map(|_| ()).map_err(|error| self.failed(error))
    }

    /// Keeps what an attempt has left beside the store. What is there already, or belongs to a job that is not in the backup or was
    /// purged, is passed over.
    pub fn keep_artifact(
        &self,
        artifact: ArtifactName<'_>,
        from: &mut impl Read,
    ) -> Result<u64, BackupError> {
        artifacts::keep(&self.connection, &self.unfinished, artifact, from)
    }

    /// Verifies the backup, seals it and gives it its name.
    pub fn finish(self, watch: Watch<'_>) -> Result<BackedUp, BackupError> {
        watch(Stage::Verifying, 0, None);
        let verified = crate::verify(&self.connection)?;
        if verified.difference_count > 0 {
            return Err(BackupError::differs(&verified));
        }
        let failed = |error| self.failed(error);
        let position = number(&self.connection, "SELECT value FROM backup WHERE name = 'position'");
        let artifacts = artifacts::count(&self.connection, artifacts::Sizes::All);
        let (position, artifacts) = (position.map_err(failed)?, artifacts.map_err(failed)?);
        // Whatever is left in the cache; after this the file is only read.
        self.connection.cache_flush().map_err(failed)?;
        let bytes = seal::seal(&self.unfinished, watch)?;
        self.name()?;
        Ok(BackedUp { position, records: verified.records, facts: verified.facts, artifacts, bytes })
    }

    fn name(&self) -> Result<(), BackupError> {
        check_name(&self.path, self.existing)?;
        // Nothing is in its logs any more. They go while nobody else may begin a draft.
        let named = remove_logs(&self.unfinished)
            .and_then(|()| std::fs::rename(&self.unfinished, &self.path))
            .and_then(|()| sync_directory_of(&self.path));
        named.map_err(|source| BackupError::of_file(&self.path, source))
    }

    fn check_room(&self, needed: u64) -> Result<(), BackupError> {
        let disk = rustix::fs::statvfs(&self.unfinished);
        let disk = disk.map_err(|error| BackupError::of_file(&self.unfinished, error.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < needed {
            return Err(BackupError::TooLarge { path: self.path.clone(), needed, free });
        }
        Ok(())
    }

    fn failed(&self, error: rusqlite::Error) -> BackupError {
        BackupError::of_database(&self.path, error)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Once it has its name, what is there is the draft of another, who could begin since. What cannot be removed is replaced by
        // the next of this name.
        if is_at(&self.lock, &self.unfinished).unwrap_or(false) {
            let _ = remove_database(&self.unfinished);
        }
    }
}

fn check_name(path: &Path, existing: Existing) -> Result<(), BackupError> {
    let found = Found::at(path).map_err(|source| BackupError::of_file(path, source))?;
    match (found, existing) {
        (Found::Nothing, _) => check_directory_of(path),
        (Found::Empty | Found::Backup, Existing::Replaced) => Ok(()),
        (Found::Empty | Found::Backup, Existing::Kept) => Err(BackupError::Exists { path: path.to_owned() }),
        (Found::Store | Found::InUse | Found::Blank | Found::Other(_), _) => Err(found.in_the_way(path)),
    }
}

fn lock(path: &Path, draft: &Path) -> Result<File, BackupError> {
    let failed = |source| BackupError::of_file(draft, source);
    let busy = || BackupError::Busy { path: path.to_owned() };
    // A draft that was left is emptied; what only has its name is not.
    let found = Found::at(draft).map_err(failed)?;
    if matches!(found, Found::InUse | Found::Other(_)) {
        return Err(found.in_the_way(draft));
    }
    let options = File::options().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).clone();
    let lock = options.open(draft).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(busy()),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    // Whoever had the lock before may have given this very file its name.
    if is_at(&lock, draft).map_err(failed)? { Ok(lock) } else { Err(busy()) }
}

/// Whether this very file still has this name.
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    let ours = file.metadata()?;
    let there = std::fs::symlink_metadata(path).ok();
    Ok(there.is_some_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

fn open(draft: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(draft, flags)?;
    configure(&connection)?;
    Ok(connection)
}

/// Nothing is undone and nothing synced on the way: a draft is whole, or it is thrown away.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    for mode in ["DELETE", "OFF"] {
        connection.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(()))?;
    }
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    connection.query_row(sql, [], |row| Ok(unsigned(row, 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draft_that_has_got_its_name_leaves_the_one_that_another_has_begun_since() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nightly.backup");
        let first = Draft::begin(&path, Existing::Replaced).unwrap();
        first.name().unwrap();
        let second = Draft::begin(&path, Existing::Replaced).unwrap();
        drop(first);
        assert!(second.unfinished.exists());
        let unfinished = second.unfinished.clone();
        drop(second);
        assert!(!unfinished.exists() && path.exists());
    }
}
