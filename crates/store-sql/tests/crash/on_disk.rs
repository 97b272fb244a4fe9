//! A store on a disk in memory, and a plain connection beside it.

use crash_vfs::Disk;
use rusqlite::{Connection, OpenFlags};
use store_sql::{Durability, OpenError, SqliteOptions, SqliteStore, Verified, verify};

const NAME: &str = "longhaul.sqlite";

pub fn open(disk: &Disk, durability: Durability) -> Result<SqliteStore, OpenError> {
    let vfs = Some(disk.vfs_name().to_owned());
    SqliteStore::open(&SqliteOptions { durability, readers: 1, vfs, ..SqliteOptions::at(NAME) })
}

pub fn connect(disk: &Disk) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags_and_vfs(NAME, flags, disk.vfs_name())
}

pub fn verified(disk: &Disk) -> rusqlite::Result<Verified> {
    verify(&connect(disk)?)
}
