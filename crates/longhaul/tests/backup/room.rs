//! A disk that is too small: told before anything is written where that is known, and nothing is left in any case.
//!
//! The disk is real: a small one in memory, mounted for the test.

use crate::disk::Disk;
use crate::given::{expect, stderr};
use crate::home::{Kind, backup_file, filled, text};

const SIZE: &str = "1m";

#[track_caller]
fn has_nothing(disk: &Disk) {
    let names: Vec<_> = std::fs::read_dir(disk.path())
        .expect("it is a directory")
        .map(|entry| entry.expect("it is there").file_name())
        .collect();
    assert!(names.iter().all(|name| name == "longhaul.sqlite.lock"), "{names:?}");
}

#[test]
fn disk_that_is_too_small_for_a_backup_is_told_and_nothing_is_left_on_it() {
    for kind in [Kind::File, Kind::Server] {
        let (home, disk) = (filled(kind), Disk::mount(SIZE));
        let refused = home.run(&["backup", text(&disk.path().join("made.backup"))]);
        expect(1, &refused);
        let told = stderr(&refused);
        assert!(told.starts_with("error[disk_full]: "), "{told}");
        // How much a database will take is known only when it was read.
        assert_eq!(told.contains(" bytes and its disk has "), kind == Kind::File, "{told}");
        has_nothing(&disk);
    }
}

#[test]
fn disk_that_is_too_small_for_a_store_is_told_and_no_store_is_left_on_it() {
    let (home, disk) = (filled(Kind::File), Disk::mount(SIZE));
    let (_dir, file) = backup_file();
    home.backup(&file);
    let refused = crate::given::binary(&["restore", text(&file), "--data-dir", text(disk.path())]).output();
    let refused = refused.expect("the binary runs");
    expect(1, &refused);
    assert!(stderr(&refused).starts_with("error[disk_full]: "), "{}", stderr(&refused));
    has_nothing(&disk);
}
