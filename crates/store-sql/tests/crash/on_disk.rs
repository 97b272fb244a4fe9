//! A store on a disk in memory, and a plain connection beside it.

use std::time::Duration;

use crash_vfs::Disk;
use rusqlite::{Connection, OpenFlags};
use store::StoreError;
use store_sql::{Durability, OpenError, SqliteOptions, SqliteStore, Verified, verify};

const NAME: &str = "longhaul.sqlite";
/// A store that has to stop does so at once; this is only so that one that does not is told.
const STOPS_WITHIN: Duration = Duration::from_secs(20);

pub fn open(disk: &Disk, durability: Durability) -> Result<SqliteStore, OpenError> {
    let vfs = Some(disk.vfs_name().to_owned());
    SqliteStore::open(&SqliteOptions { durability, readers: 1, vfs, ..SqliteOptions::at(NAME) })
}

pub fn connect(disk: &Disk) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags_and_vfs(NAME, flags, disk.vfs_name())
}

pub fn verified(disk: &Disk) -> Result<Verified, StoreError> {
    verify(&connect(disk).map_err(|error| StoreError::Broken(error.to_string()))?)
}

/// Why the store has stopped.
pub async fn stopped(store: &SqliteStore) -> String {
    tokio::time::timeout(STOPS_WITHIN, store.stopped()).await.expect("the store goes on")
}
