//! A backup made a store again, as a file: a copy without seal and without what only a backup has, brought up to date, verified, and
//! given the name of a store as the last step.
//!
//! Until then it is `<store>.restoring`. A restore that was killed leaves that name behind; a daemon that finds it and no store refuses
//! to start with an empty one, and the next restore begins anew.

use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::found::check_directory_of;
use super::tables::DROP_EXTRAS;
use super::{BackupError, Restored, Stage, Watch, beside, remove, remove_database, seal, sync_directory_of};
use crate::rows::signed;
use crate::sqlite::{FILE_MODE, FileLock, STORE_APPLICATION_ID, mark_of, writer};
use crate::{SqliteOptions, Verified};

const DIRECTORY_MODE: u32 = 0o700;
/// What a backup of an older longhaul is brought up to date as, on its way to a server.
const UP_TO_DATE: &str = "restoring.sqlite";

/// A sealed backup, to be copied.
#[derive(Clone, Copy)]
pub(super) struct Copy<'a> {
    pub(super) path: &'a Path,
    pub(super) length: u64,
    pub(super) position: u64,
}

/// A store that is whole and has not got its name yet; dropped before that, nothing is left of it.
pub struct Unpacked {
    store: PathBuf,
    restoring: PathBuf,
    restored: Restored,
    _lock: FileLock,
}

/// What an interrupted restore has left where a store would be.
pub fn interrupted(store: &Path) -> Option<PathBuf> {
    let restoring = beside(store, ".restoring");
    (!store.exists() && restoring.exists()).then_some(restoring)
}

impl Unpacked {
    pub(super) fn restore(
        copy: Copy<'_>,
        store: &Path,
        goes_on_after: u64,
        watch: Watch<'_>,
    ) -> Result<Self, BackupError> {
        check_empty(store)?;
        if let Some(directory) = store.parent() {
            make_directory(directory)?;
        }
        let lock = FileLock::acquire(store)?;
        // Whoever had the lock may have made a store.
        check_empty(store)?;
        let restoring = beside(store, ".restoring");
        remove_database(&restoring).map_err(|source| BackupError::of_file(&restoring, source))?;
        let mut unpacked = Self {
            store: store.to_owned(),
            restoring,
            restored: Restored { position: copy.position, goes_on_after, records: 0, facts: 0 },
            _lock: lock,
        };
        watch(Stage::Restoring, 0, None);
        let verified = unpacked.fill(copy, watch)?;
        unpacked.restored.records = verified.records;
        unpacked.restored.facts = verified.facts;
        Ok(unpacked)
    }

    fn fill(&self, copy: Copy<'_>, watch: Watch<'_>) -> Result<Verified, BackupError> {
        let failed = |error| BackupError::of_database(&self.restoring, error);
        copy.make(&self.restoring)?;
        make_a_store(&self.restoring, self.restored.goes_on_after).map_err(failed)?;
        let connection = writer(&SqliteOptions::at(&self.restoring))?;
        watch(Stage::Verifying, 0, None);
        let verified = crate::verify(&connection)?;
        if verified.difference_count > 0 {
            return Err(BackupError::differs(&verified));
        }
        // The last connection to close moves the log into the file.
        connection.close().map_err(|(_, error)| failed(error))?;
        let synced = File::open(&self.restoring).and_then(|file| file.sync_all());
        synced.map_err(|source| BackupError::of_file(&self.restoring, source))?;
        Ok(verified)
    }

    /// Gives the store its name: from here on a daemon may serve it.
    pub fn finish(self) -> Result<Restored, BackupError> {
        // The watermark of a store that was here before is not that of this one.
        remove(&mark_of(&self.store)).map_err(|source| BackupError::of_file(&self.store, source))?;
        let named =
            std::fs::rename(&self.restoring, &self.store).and_then(|()| sync_directory_of(&self.store));
        named.map_err(|source| BackupError::of_file(&self.store, source))?;
        Ok(self.restored)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // Once it has its name there is nothing to remove. What cannot be removed is told by the next start.
        let _ = remove_database(&self.restoring);
    }
}

fn make_directory(directory: &Path) -> Result<(), BackupError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
    made.map_err(|source| BackupError::of_file(directory, source))
}

/// The log of a store that is gone would be taken for that of the one that is restored.
fn check_empty(store: &Path) -> Result<(), BackupError> {
    if store.parent().is_some_and(Path::exists) {
        check_directory_of(store)?;
    }
    if let Some(pid) = FileLock::holder(store).filter(|_| store.exists()) {
        let hint = format!("a daemon is running on this store, process {pid}; use another data directory");
        return Err(BackupError::NotEmpty { place: store.display().to_string(), hint });
    }
    for (added, hint) in [
        ("", "use another data directory, or move this store away"),
        ("-wal", "it is left of a store that is gone; move it away"),
        ("-journal", "it is left of a store that is gone; move it away"),
    ] {
        let place = beside(store, added);
        if place.symlink_metadata().is_ok() {
            return Err(BackupError::NotEmpty { place: place.display().to_string(), hint: hint.to_owned() });
        }
    }
    Ok(())
}

impl Copy<'_> {
    fn make(self, to: &Path) -> Result<(), BackupError> {
        let failed = |source| BackupError::of_file(to, source);
        let made = File::options().write(true).create_new(true).mode(FILE_MODE).open(to);
        seal::copy_unsealed(self.path, &mut made.map_err(failed)?, self.length).map_err(failed)
    }

    /// A copy with the newest schema and views in this directory, gone with its guard; one that was killed is replaced by the next.
    pub(super) fn up_to_date(self, dir: &Path) -> Result<UpToDate, BackupError> {
        make_directory(dir)?;
        let path = dir.join(UP_TO_DATE);
        let lock = FileLock::acquire(&path)?;
        remove_database(&path).map_err(|source| BackupError::of_file(&path, source))?;
        let file = RemovedWhenDropped { path };
        self.make(&file.path)?;
        let marked = make_a_store(&file.path, self.position);
        marked.map_err(|error| BackupError::of_database(&file.path, error))?;
        Ok(UpToDate { connection: writer(&SqliteOptions::at(&file.path))?, _file: file, _lock: lock })
    }
}

/// A store for the time of a restore.
pub(super) struct UpToDate {
    pub(super) connection: Connection,
    _file: RemovedWhenDropped,
    _lock: FileLock,
}

struct RemovedWhenDropped {
    path: PathBuf,
}

impl Drop for RemovedWhenDropped {
    fn drop(&mut self) {
        let _ = remove_database(&self.path);
    }
}

/// Takes out what only a backup has, and gives what is left the mark of a store. Nothing is undone or synced on the way: it has no name yet.
fn make_a_store(path: &Path, goes_on_after: u64) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.execute_batch(DROP_EXTRAS)?;
    connection.execute(
        "INSERT INTO meta (name, value) VALUES ('last_position', ?1) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [signed(goes_on_after)],
    )?;
    connection.pragma_update(None, "application_id", STORE_APPLICATION_ID)?;
    // The room of the artifacts, which are files again.
    let mut pages = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut rows = pages.query([])?;
    while rows.next()?.is_some() {}
    drop(rows);
    drop(pages);
    connection.close().map_err(|(_, error)| error)
}
