//! Which operations a power loss may take away, file by file and operation by operation.

use super::*;
use crate::Image;
use crate::fault::{Failure, Fault};
use crate::log::OperationLog;
use crate::storage::{HandleId, OpenMode, Storage};

const SEEDS: u64 = 200;
/// Whose handle it is makes a difference only after a failed sync.
const HANDLE: HandleId = HandleId(0);

fn empty_disk() -> Storage {
    Storage::new(&Image::default())
}

fn make(disk: &mut Storage, name: &str) -> FileId {
    disk.open(name, OpenMode::New).unwrap().0
}

/// Every content that the file has in some image of a power loss at the end; `None` where it is missing.
fn outcomes(log: &OperationLog, name: &str) -> Vec<Option<Vec<u8>>> {
    let images = (0..SEEDS).map(|seed| log.power_lost_at(log.len(), seed));
    let mut contents: Vec<_> = images.map(|image| image.files.get(name).cloned()).collect();
    contents.sort();
    contents.dedup();
    contents
}

#[test]
fn synced_file_is_there_under_every_seed() {
    let mut disk = empty_disk();
    let file = make(&mut disk, "a");
    disk.write(file, 0, b"kept").unwrap();
    disk.sync(file, HANDLE).unwrap();
    assert_eq!(outcomes(&disk.log(), "a"), [Some(b"kept".to_vec())]);
}

#[test]
fn sync_of_one_file_does_nothing_for_the_writes_of_another() {
    let mut disk = empty_disk();
    let (one, other) = (make(&mut disk, "one"), make(&mut disk, "other"));
    disk.write(one, 0, b"x").unwrap();
    disk.write(other, 0, b"y").unwrap();
    disk.sync(other, HANDLE).unwrap();
    assert_eq!(outcomes(&disk.log(), "one"), [Some(vec![]), Some(b"x".to_vec())]);
}

#[test]
fn unsynced_write_is_kept_or_dropped_or_cut_at_each_sector_boundary() {
    let mut disk = empty_disk();
    let file = make(&mut disk, "a");
    disk.sync(file, HANDLE).unwrap();
    // From 100 to 1636 of the file there are the boundaries 512, 1024 and 1536.
    disk.write(file, 100, &[7; 3 * SECTOR_BYTES]).unwrap();
    let sizes: Vec<_> =
        outcomes(&disk.log(), "a").into_iter().map(|content| content.unwrap().len()).collect();
    assert_eq!(sizes, [0, 512, 1024, 1536, 1636]);
}

#[test]
fn unsynced_truncation_may_be_undone() {
    let mut disk = empty_disk();
    let file = make(&mut disk, "a");
    disk.write(file, 0, b"long").unwrap();
    disk.sync(file, HANDLE).unwrap();
    disk.truncate(file, 1).unwrap();
    assert_eq!(outcomes(&disk.log(), "a"), [Some(b"l".to_vec()), Some(b"long".to_vec())]);
}

#[test]
fn deletion_is_settled_by_the_next_directory_sync() {
    let mut disk = empty_disk();
    let file = make(&mut disk, "a");
    disk.write(file, 0, b"old").unwrap();
    disk.sync(file, HANDLE).unwrap();
    disk.delete("a").unwrap();
    assert_eq!(outcomes(&disk.log(), "a"), [None, Some(b"old".to_vec())]);
    disk.sync_directory();
    assert_eq!(outcomes(&disk.log(), "a"), [None]);
}

#[test]
fn file_made_again_under_its_name_never_shows_the_old_bytes_once_synced() {
    let mut disk = empty_disk();
    let old = make(&mut disk, "a");
    disk.write(old, 0, b"old and long").unwrap();
    disk.sync(old, HANDLE).unwrap();
    disk.delete("a").unwrap();
    let new = make(&mut disk, "a");
    disk.write(new, 0, b"new").unwrap();
    disk.sync(new, HANDLE).unwrap();
    assert_eq!(outcomes(&disk.log(), "a"), [Some(b"new".to_vec())]);
}

#[test]
fn later_sync_does_not_make_up_for_a_failed_one() {
    let mut disk = empty_disk();
    let file = make(&mut disk, "a");
    disk.sync(file, HANDLE).unwrap();
    disk.write(file, 0, b"x").unwrap();
    disk.faults.arm(disk.operations(), Fault::SyncFails);
    assert_eq!(disk.sync(file, HANDLE), Err(Failure::SyncFailed));
    disk.sync(file, HANDLE).unwrap();
    assert_eq!(outcomes(&disk.log(), "a"), [Some(vec![]), Some(b"x".to_vec())]);
}

#[test]
fn failed_sync_is_told_once_to_everyone_who_had_the_file_open() {
    let mut disk = empty_disk();
    let (file, ours) = disk.open("a", OpenMode::New).unwrap();
    let (_, theirs) = disk.open("a", OpenMode::Existing).unwrap();
    disk.faults.arm(disk.operations(), Fault::SyncFails);
    assert_eq!(disk.sync(file, ours), Err(Failure::SyncFailed));
    let (_, later) = disk.open("a", OpenMode::Existing).unwrap();
    assert_eq!(disk.sync(file, later), Ok(()));
    assert_eq!(disk.sync(file, theirs), Err(Failure::SyncFailed));
    assert_eq!(disk.sync(file, theirs), Ok(()));
    assert_eq!(disk.sync(file, ours), Ok(()));
}

#[test]
fn log_of_a_disk_made_from_an_image_starts_with_the_image() {
    let mut first = empty_disk();
    let file = make(&mut first, "a");
    first.write(file, 0, b"one").unwrap();
    let image = first.log().killed_at(first.operations());

    let mut second = Storage::new(&image);
    let (file, _) = second.open("a", OpenMode::Existing).unwrap();
    second.write(file, 3, b"two").unwrap();
    assert_eq!(second.log().killed_at(0), image);
    assert_eq!(outcomes(&second.log(), "a"), [Some(b"one".to_vec()), Some(b"onetwo".to_vec())]);
}

#[test]
fn same_seed_gives_the_same_image() {
    let mut disk = empty_disk();
    let file = make(&mut disk, "a");
    for write in 0..50 {
        disk.write(file, write * 100, &[1; 100]).unwrap();
    }
    let log = disk.log();
    assert_eq!(log.power_lost_at(40, 3), log.power_lost_at(40, 3));
    assert_ne!(log.power_lost_at(40, 3), log.power_lost_at(40, 4));
}
