//! Faults: the disk fills up, a write fails, a sync fails.

use crash_vfs::{Disk, Fault};
use rusqlite::{Connection, Error, Result, ffi};

use crate::notebook::{count_notes, create_in_wal, write_note};

fn notebook_with_one_note(disk: &Disk) -> Result<Connection> {
    let mut connection = create_in_wal(disk)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    write_note(&mut connection, 1)?;
    Ok(connection)
}

fn result_code(error: &Error) -> i32 {
    error.sqlite_error().map_or(ffi::SQLITE_OK, |error| error.extended_code)
}

#[test]
fn full_disk_refuses_writes_and_serves_reads_until_space_returns() {
    let disk = Disk::new();
    let mut connection = notebook_with_one_note(&disk).unwrap();

    disk.fail_after(disk.operations(), Fault::DiskFull);
    for _ in 0..3 {
        assert_eq!(result_code(&write_note(&mut connection, 2).unwrap_err()), ffi::SQLITE_FULL);
        assert_eq!(count_notes(&connection).unwrap(), 1);
    }
    assert!(disk.faults_fired() >= 3);

    disk.heal();
    write_note(&mut connection, 2).unwrap();
    assert_eq!(count_notes(&connection).unwrap(), 2);
}

#[test]
fn failed_sync_fails_the_commit_once_and_is_counted() {
    let disk = Disk::new();
    let mut connection = notebook_with_one_note(&disk).unwrap();

    disk.fail_after(disk.operations(), Fault::SyncFails);
    assert_eq!(disk.faults_fired(), 0);
    assert_eq!(result_code(&write_note(&mut connection, 2).unwrap_err()), ffi::SQLITE_IOERR_FSYNC);
    assert_eq!(disk.faults_fired(), 1);
    assert_eq!(count_notes(&connection).unwrap(), 1);

    write_note(&mut connection, 2).unwrap();
    assert_eq!(disk.faults_fired(), 1);
}

#[test]
fn failed_write_fails_one_transaction() {
    let disk = Disk::new();
    let mut connection = notebook_with_one_note(&disk).unwrap();

    disk.fail_after(disk.operations(), Fault::WriteFails);
    assert_eq!(result_code(&write_note(&mut connection, 2).unwrap_err()), ffi::SQLITE_IOERR_WRITE);
    write_note(&mut connection, 2).unwrap();
    assert_eq!((disk.faults_fired(), count_notes(&connection).unwrap()), (1, 2));
}

#[test]
fn fault_waits_for_its_operation() {
    let disk = Disk::new();
    let mut connection = notebook_with_one_note(&disk).unwrap();

    let operations_before = disk.operations();
    write_note(&mut connection, 2).unwrap();
    let operations_per_note = disk.operations() - operations_before;

    disk.fail_after(disk.operations() + operations_per_note, Fault::WriteFails);
    write_note(&mut connection, 3).unwrap();
    assert_eq!(disk.faults_fired(), 0);
    write_note(&mut connection, 4).unwrap_err();
    assert_eq!(disk.faults_fired(), 1);
}
