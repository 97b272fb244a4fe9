//! A fault at every operation, after which the writer stops and the power fails. Whoever hears of each failed
//! sync loses nothing acknowledged; an automatic checkpoint keeps one to itself.

use crash_vfs::{Disk, Fault};
use rusqlite::{Connection, Result};

use crate::notebook::{Remains, create_in_wal, remains, write_note};

const NOTES: u32 = 30;
const NOTES_PER_CHECKPOINT: u32 = 5;
/// About as often.
const CHECKPOINT_PAGES: u32 = 10;
const IMAGES_PER_FAULT: u64 = 5;

/// Who copies the WAL back.
#[derive(Clone, Copy)]
enum Checkpoints {
    /// SQLite within a commit, which succeeds whatever becomes of the checkpoint.
    Automatic,
    /// The writer, who stops if it fails.
    Checked,
}

#[test]
fn writer_that_stops_at_the_first_failure_loses_nothing_acknowledged() {
    assert_eq!(losses(Fault::WriteFails, Checkpoints::Checked), 0);
    assert_eq!(losses(Fault::SyncFails, Checkpoints::Checked), 0);
}

#[test]
fn automatic_checkpoint_hides_a_failed_sync_and_notes_acknowledged_after_it_are_lost() {
    assert!(losses(Fault::SyncFails, Checkpoints::Automatic) > 0);
}

/// In how many images a note is missing that had been acknowledged, over a fault at every operation.
fn losses(fault: Fault, checkpoints: Checkpoints) -> usize {
    let undisturbed = write_until_failure(&Disk::new(), checkpoints);
    assert_eq!(undisturbed.acknowledged, NOTES);

    let mut losses = 0;
    for operation in 0..undisturbed.at {
        let disk = Disk::new();
        disk.fail_after(operation, fault);
        let stop = write_until_failure(&disk, checkpoints);
        for seed in 0..IMAGES_PER_FAULT {
            match remains(&disk.log().power_lost_at(stop.at, seed)) {
                Remains::Whole(notes) if notes < stop.acknowledged => losses += 1,
                Remains::Whole(_) => {}
                Remains::Broken(why) => panic!("{fault:?} at {operation}: {why}"),
            }
        }
    }
    losses
}

/// Where a writer ended.
struct Stop {
    acknowledged: u32,
    /// The operation that it did not reach, which comes before those of closing the connection.
    at: usize,
}

fn write_until_failure(disk: &Disk, checkpoints: Checkpoints) -> Stop {
    let mut acknowledged = 0;
    let Ok(mut connection) = notebook(disk, checkpoints) else {
        return Stop { acknowledged, at: disk.operations() };
    };
    for note in 1..=NOTES {
        if write_note(&mut connection, note).is_err() {
            break;
        }
        acknowledged = note;
        if note % NOTES_PER_CHECKPOINT == 0 && checkpoint(&connection, checkpoints).is_err() {
            break;
        }
    }
    Stop { acknowledged, at: disk.operations() }
}

fn notebook(disk: &Disk, checkpoints: Checkpoints) -> Result<Connection> {
    let connection = create_in_wal(disk)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let pages = match checkpoints {
        Checkpoints::Automatic => CHECKPOINT_PAGES,
        Checkpoints::Checked => 0,
    };
    connection.pragma_update(None, "wal_autocheckpoint", pages)?;
    Ok(connection)
}

fn checkpoint(connection: &Connection, checkpoints: Checkpoints) -> Result<()> {
    match checkpoints {
        Checkpoints::Automatic => Ok(()),
        Checkpoints::Checked => connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())),
    }
}
