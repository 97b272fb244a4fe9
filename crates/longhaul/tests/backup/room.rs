//! A disk that is too small: told before anything is written where that is known, and nothing is left in any case.
//!
//! The disk is real: a small one in memory, mounted for the test.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::given::{expect, stderr};
use crate::home::{Kind, backup_file, filled, text};

const DISK: &str = "size=1m";

/// A small disk, gone with its guard.
struct Disk {
    mount: TempDir,
}

impl Disk {
    fn mount() -> Self {
        let disk = Self { mount: TempDir::new().expect("there is room") };
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(disk.path()).status();
        assert!(
            mounted.is_ok_and(|mounted| mounted.success()),
            "mounting a small disk needs root: run this as root"
        );
        disk
    }

    fn path(&self) -> &Path {
        self.mount.path()
    }

    #[track_caller]
    fn has_nothing(&self) {
        let names: Vec<_> = std::fs::read_dir(self.path())
            .expect("it is a directory")
            .map(|entry| entry.expect("it is there").file_name())
            .collect();
        assert!(names.iter().all(|name| name == "longhaul.sqlite.lock"), "{names:?}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

#[test]
fn disk_that_is_too_small_for_a_backup_is_told_and_nothing_is_left_on_it() {
    for kind in [Kind::File, Kind::Server] {
        let (home, disk) = (filled(kind), Disk::mount());
        let refused = home.run(&["backup", text(&disk.path().join("made.backup"))]);
        expect(1, &refused);
        let told = stderr(&refused);
        assert!(told.starts_with("error[disk_full]: "), "{told}");
        // How much a database will take is known only when it was read.
        assert_eq!(told.contains(" bytes and its disk has "), kind == Kind::File, "{told}");
        disk.has_nothing();
    }
}

#[test]
fn disk_that_is_too_small_for_a_store_is_told_and_no_store_is_left_on_it() {
    let (home, disk) = (filled(Kind::File), Disk::mount());
    let (_dir, file) = backup_file();
    home.backup(&file);
    let refused = crate::given::binary(&["restore", text(&file), "--data-dir", text(disk.path())]).output();
    let refused = refused.expect("the binary runs");
    expect(1, &refused);
    assert!(stderr(&refused).starts_with("error[disk_full]: "), "{}", stderr(&refused));
    disk.has_nothing();
}
