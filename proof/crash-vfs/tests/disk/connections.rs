//! Several connections to one file of one disk, in one process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crash_vfs::{Disk, Image, OperationLog};
use rusqlite::{ErrorCode, Result};

use crate::notebook::{Remains, count_notes, create, create_in_wal, open, remains, write_note};

const NOTES: u32 = 300;

fn whole_notes(image: &Image) -> u32 {
    match remains(image) {
        Remains::Whole(notes) => notes,
        Remains::Broken(why) => panic!("{why}"),
    }
}

fn after_the_end(log: &OperationLog) -> Image {
    log.killed_at(log.len())
}

#[test]
fn writer_checkpointer_and_reader_in_three_threads_share_a_wal_database() {
    let disk = Disk::new();
    let mut writer = create_in_wal(&disk).unwrap();
    // Left to the checkpointer.
    writer.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    let done = &AtomicBool::new(false);

    let (checkpointed_pages, largest_count) = thread::scope(|threads| {
        let checkpointing = threads.spawn(|| checkpoint_until(&disk, done));
        let reading = threads.spawn(|| count_until(&disk, done));
        for number in 1..=NOTES {
            write_note(&mut writer, number).unwrap();
        }
        done.store(true, Ordering::Release);
        (checkpointing.join().unwrap().unwrap(), reading.join().unwrap().unwrap())
    });

    assert!(checkpointed_pages > 0);
    assert_eq!(largest_count, NOTES);
    // The writer is still open: this is a kill, not a close.
    assert_eq!(whole_notes(&after_the_end(&disk.log())), NOTES);
    drop(writer);
    assert_eq!(whole_notes(&after_the_end(&disk.log())), NOTES);
}

/// Checkpoints over and over, once more after the writer is done; the most pages that were copied at once.
fn checkpoint_until(disk: &Disk, done: &AtomicBool) -> Result<i64> {
    let connection = open(disk)?;
    // A connection that has read nothing does not know yet that there is a WAL, and copies nothing.
    count_notes(&connection)?;
    let mut most = 0;
    loop {
        let last = done.load(Ordering::Acquire);
        // Minus one where the writer was in the way.
        let pages = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(2))?;
        most = most.max(pages);
        if last {
            return Ok(most);
        }
    }
}

/// Counts over and over, once more after the writer is done; the last count.
fn count_until(disk: &Disk, done: &AtomicBool) -> Result<u32> {
    let connection = open(disk)?;
    let mut before = 0;
    loop {
        let last = done.load(Ordering::Acquire);
        let count = count_notes(&connection)?;
        assert!(count >= before, "{before} notes became {count}");
        before = count;
        if last {
            return Ok(count);
        }
    }
}

#[test]
fn reader_keeps_its_snapshot_while_another_connection_writes() {
    let disk = Disk::new();
    let mut writer = create_in_wal(&disk).unwrap();
    let reader = open(&disk).unwrap();
    write_note(&mut writer, 1).unwrap();

    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(count_notes(&reader).unwrap(), 1);
    write_note(&mut writer, 2).unwrap();
    assert_eq!(count_notes(&reader).unwrap(), 1);
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(count_notes(&reader).unwrap(), 2);
}

#[test]
fn second_writer_is_told_that_the_database_is_busy() {
    for journal_mode in ["WAL", "DELETE"] {
        let disk = Disk::new();
        let first = open(&disk).unwrap();
        first.execute_batch(&format!("PRAGMA journal_mode = {journal_mode}")).unwrap();
        create(&first).unwrap();
        let second = open(&disk).unwrap();
        second.busy_timeout(Duration::ZERO).unwrap();

        first.execute_batch("BEGIN IMMEDIATE").unwrap();
        let refused = second.execute_batch("BEGIN IMMEDIATE").unwrap_err();
        assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DatabaseBusy), "{journal_mode}");
        first.execute_batch("ROLLBACK").unwrap();
        second.execute_batch("BEGIN IMMEDIATE").unwrap();
    }
}

#[test]
fn connection_outlives_the_disk_it_was_opened_on() {
    let disk = Disk::new();
    let mut connection = create_in_wal(&disk).unwrap();
    drop(disk);
    write_note(&mut connection, 1).unwrap();
    assert_eq!(count_notes(&connection).unwrap(), 1);
}

#[test]
fn two_disks_do_not_see_each_other() {
    let (one, other) = (Disk::new(), Disk::new());
    assert_ne!(one.vfs_name(), other.vfs_name());
    drop(create_in_wal(&one).unwrap());
    assert!(one.operations() > 0);
    assert!(other.log().is_empty());
}
