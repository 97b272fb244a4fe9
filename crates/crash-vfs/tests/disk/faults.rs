//! Faults: the disk fills up, a write fails, a sync fails.

use crash_vfs::{Disk, Fault};
use rusqlite::{Connection, Error, Result, ffi};

use crate::notebook::{Remains, count_notes, create_in_wal, remains, write_note};

/// Enough for a few checkpoints.
const NOTES: u32 = 30;
const CHECKPOINT_PAGES: u32 = 10;
const IMAGES_PER_FAULT: u64 = 5;

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

#[test]
fn whoever_stops_at_the_first_failed_write_or_sync_loses_nothing_acknowledged() {
    let undisturbed = Disk::new();
    let mut written = 0;
    write_until_failure(&undisturbed, &mut written).unwrap();
    assert_eq!(written, NOTES);

    for fault in [Fault::WriteFails, Fault::SyncFails] {
        for operation in 0..undisturbed.operations() {
            let disk = Disk::new();
            disk.fail_after(operation, fault);
            let mut acknowledged = 0;
            // A checkpoint that fails is not reported: the note before it was committed.
            let _ = write_until_failure(&disk, &mut acknowledged);
            let log = disk.log();
            for seed in 0..IMAGES_PER_FAULT {
                match remains(&log.power_lost_at(log.len(), seed)) {
                    Remains::Whole(notes) => assert!(notes >= acknowledged, "{fault:?} at {operation}"),
                    Remains::Broken(why) => panic!("{fault:?} at {operation}: {why}"),
                }
            }
        }
    }
}

fn write_until_failure(disk: &Disk, acknowledged: &mut u32) -> Result<()> {
    let mut connection = create_in_wal(disk)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    for note in 1..=NOTES {
        write_note(&mut connection, note)?;
        *acknowledged = note;
    }
    Ok(())
}
