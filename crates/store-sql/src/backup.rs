//! A backup: one SQLite file with everything that a store holds at one position of its ledger, whatever database it comes from and
//! goes to.
//!
//! It is written under another name beside its own (`draft.rs`), verified by the same walk as a store, sealed with a digest over every
//! byte (`seal.rs`) and only then given its name. What of a store goes in, and what becomes of it, says `tables.rs`. A restore reads
//! nothing that the seal does not vouch for (`sealed.rs`), and gives its target the name of a store, or commits, as its last step
//! (`unpack.rs`, `postgres/restore.rs`). Where artifacts and keys lie beside a store is the caller's to know.

mod artifacts;
mod draft;
mod error;
mod found;
mod page_copy;
mod seal;
mod sealed;
pub(crate) mod tables;
mod unpack;

use std::path::{Path, PathBuf};

pub(crate) use artifacts::CHUNKS_TO_SHARE;
pub use artifacts::Sizes;
pub use draft::{BackedUp, Draft, Existing};
pub use error::BackupError;
pub use sealed::{Restored, SealedBackup};
pub use unpack::{Unpacked, interrupted};

/// Says in the file that it is a backup and no store: "LHBK".
pub(crate) const BACKUP_APPLICATION_ID: i64 = 0x4c48_424b;
/// The tables that only a backup has.
const FORMAT: i64 = 1;
/// Bytes of a file that are read or written together.
const BLOCK_BYTES: usize = 1_048_576;
/// Positions that a restored store leaves out. What was written after the backup is lost, and whoever followed the ledger has seen it:
/// were its positions given again, a follower would pass over what is new.
pub(crate) const POSITIONS_LEFT_OUT: u64 = 1 << 32;

/// What is being done, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The store is read.
    Copying,
    /// What attempts have left is read or written.
    Artifacts,
    /// Everything is compared with the ledger.
    Verifying,
    /// Every byte is read for the seal.
    Sealing,
    /// The store is written.
    Restoring,
}

/// What goes into a backup of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Everything.
    Everything,
    /// Everything but what attempts have left.
    WithoutArtifacts,
}

/// Who watches: how much of a stage is done, and of how much, if that is known.
pub type Watch<'a> = &'a mut dyn FnMut(Stage, u64, Option<u64>);

/// Puts what belongs to a store in its place, before that counts.
pub type Place<'a> = &'a mut dyn FnMut(Watch<'_>) -> Result<(), BackupError>;

/// The same path with something added to its name.
pub(crate) fn beside(path: &Path, added: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(added);
    PathBuf::from(name)
}

/// Where SQLite keeps what it has not moved into a file yet.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// Removes a database that nobody may take for a whole one, and what SQLite keeps beside it.
fn remove_database(path: &Path) -> std::io::Result<()> {
    remove_logs(path)?;
    remove(path)
}

/// Removes what SQLite keeps beside a database: it would become part of the next one of that name.
fn remove_logs(path: &Path) -> std::io::Result<()> {
    ["-wal", "-shm", "-journal"].iter().try_for_each(|added| remove(&beside(path, added)))
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The name of a file on stable storage too.
fn sync_directory_of(path: &Path) -> std::io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    std::fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
