//! What is refused, and that nothing was touched by it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::given::{create, expect, stderr};
use crate::home::{Home, Kind, backup_file, text};

/// Bits that are flipped, one at a time.
const FLIPS: u64 = 40;

#[track_caller]
fn refused(code: &str, output: &Output) -> String {
    expect(1, output);
    let told = stderr(output);
    assert!(told.starts_with(&format!("error[{code}]: ")), "{told}");
    told
}

/// A store with a job or two, and a backup of it.
fn backed_up(kind: Kind, file: &Path) -> Home {
    let home = Home::new(kind);
    let daemon = home.daemon(&["--no-dispatch"]);
    for title in ["one", "two"] {
        create(home.path(), &[title, "--executor", "noop", "--input", r#"{"some": "input"}"#]);
    }
    home.backup(file);
    drop(daemon);
    home
}

#[test]
fn flipped_bit_anywhere_is_refused_and_nothing_is_made() {
    let (dir, file) = backup_file();
    backed_up(Kind::File, &file);
    let whole = std::fs::read(&file).unwrap();
    let flipped = dir.path().join("flipped.backup");
    let bits = whole.len() as u64 * 8;
    // The first, the last, and others all over the file.
    let places = (0..FLIPS).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % bits).chain([bits - 1]);
    for place in places {
        let mut bytes = whole.clone();
        bytes[usize::try_from(place / 8).unwrap()] ^= 1 << (place % 8);
        std::fs::write(&flipped, bytes).unwrap();
        let target = Home::new(Kind::File);
        let output = target.run(&["restore", text(&flipped)]);
        let told = stderr(&output);
        expect(1, &output);
        let known = ["error[backup_damaged]: ", "error[not_a_backup]: "];
        assert!(known.iter().any(|code| told.starts_with(code)), "bit {place}: {told}");
        assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 0, "bit {place}");
    }
}

#[test]
fn what_is_no_backup_or_only_a_part_of_one_is_refused() {
    let (dir, file) = backup_file();
    let home = backed_up(Kind::File, &file);
    let target = Home::new(Kind::File);
    let restore = |file: &Path| target.run(&["restore", text(file)]);
    let part = dir.path().join("part.backup");
    let whole = std::fs::read(&file).unwrap();
    for length in [0, 10, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&part, &whole[..length]).unwrap();
        refused("not_a_backup", &restore(&part));
    }
    refused("not_a_backup", &restore(&home.path().join("longhaul.sqlite")));
    refused("not_a_backup", &restore(dir.path()));
    refused("io", &restore(&dir.path().join("missing")));
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 0);
    // A backup is no store either: it is restored, and not served.
    std::fs::copy(&file, target.path().join("longhaul.sqlite")).unwrap();
    refused("is_a_backup", &target.run(&["verify"]));
}

#[test]
fn backup_of_a_newer_schema_is_refused_and_says_what_to_do() {
    let (_dir, file) = backup_file();
    backed_up(Kind::File, &file);
    // As a newer longhaul would have sealed it.
    resealed(&file, |backup| backup.pragma_update(None, "user_version", 1_000).unwrap());
    for kind in [Kind::File, Kind::Server] {
        let told = refused("newer_schema", &Home::new(kind).run(&["restore", text(&file)]));
        assert!(told.contains("use a newer longhaul"), "{told}");
    }
    resealed(&file, |backup| {
        backup
            .execute_batch("PRAGMA user_version = 0; UPDATE backup SET value = 2 WHERE name = 'format'")
            .unwrap();
    });
    refused("newer_backup", &Home::new(Kind::File).run(&["restore", text(&file)]));
}

#[test]
fn backup_whose_views_are_older_is_brought_up_to_date_on_the_way_to_either_database() {
    let (_dir, file) = backup_file();
    let home = backed_up(Kind::File, &file);
    resealed(&file, |backup| {
        backup
            .execute_batch("UPDATE meta SET value = 1 WHERE name = 'view_format'; DELETE FROM jobs")
            .unwrap();
    });
    for kind in [Kind::File, Kind::Server] {
        let target = Home::new(kind);
        // What one that was killed has left.
        std::fs::write(target.path().join("restoring.sqlite"), "half").unwrap();
        let arguments = target.with_store(&["restore", text(&file)]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let restored = crate::given::binary(&arguments).env("TMPDIR", "/nowhere/at/all").output();
        expect(0, &restored.expect("the binary runs"));
        assert_eq!(target.path().join("restoring.sqlite").exists(), kind == Kind::File);
        target.verify();
        assert_eq!(target.facts_up_to(u64::MAX), home.facts_up_to(u64::MAX));
    }
}

/// Differences that only a walk can find are found before anything is made.
#[test]
fn backup_that_does_not_agree_with_its_ledger_is_not_restored() {
    let (_dir, file) = backup_file();
    backed_up(Kind::File, &file);
    resealed(&file, |backup| {
        backup.execute_batch("UPDATE jobs SET state = 'failed' WHERE rowid = 1").unwrap();
    });
    for kind in [Kind::File, Kind::Server] {
        let target = Home::new(kind);
        refused("store_differs", &target.run(&["restore", text(&file)]));
        expect(1, &target.run(&["verify"]));
        if kind == Kind::File {
            assert!(!target.path().join("longhaul.sqlite").exists());
            assert!(!target.path().join("longhaul.sqlite.restoring").exists());
        }
    }
}

/// Changes a backup and seals it anew.
fn resealed(file: &Path, change: impl FnOnce(&rusqlite::Connection)) {
    const SEAL_BYTES: usize = 48;
    let bytes = std::fs::read(file).expect("it is there");
    std::fs::write(file, &bytes[..bytes.len() - SEAL_BYTES]).expect("it is there");
    let backup = rusqlite::Connection::open(file).expect("it is a database");
    change(&backup);
    backup.close().expect("it is a database");
    let mut bytes = std::fs::read(file).expect("it is there");
    let digest = store::sha256(&bytes).0;
    bytes.extend_from_slice(b"longhaul backup\n");
    bytes.extend_from_slice(&digest);
    std::fs::write(file, bytes).expect("it is there");
}

#[test]
fn store_that_is_there_is_never_touched_whether_its_daemon_runs_or_not() {
    let (_dir, file) = backup_file();
    let backed_up = backed_up(Kind::File, &file);
    for kind in [Kind::File, Kind::Server] {
        let home = Home::new(kind);
        let daemon = home.daemon(&["--no-dispatch"]);
        create(home.path(), &["another"]);
        refused("store_not_empty", &home.run(&["restore", text(&file)]));
        daemon.kill();
        refused("store_not_empty", &home.run(&["restore", text(&file)]));
        home.verify();
        assert_eq!(home.facts_up_to(u64::MAX).len(), 1);
    }
    // A daemon that has just begun, and has no file yet, has its lock.
    let lock = Home::new(Kind::File);
    let held = std::fs::File::create(lock.path().join("longhaul.sqlite.lock")).unwrap();
    held.lock().unwrap();
    refused("store_locked", &lock.run(&["restore", text(&file)]));
    // The log of a store that is gone would become part of this one.
    let left = Home::new(Kind::File);
    std::fs::write(left.path().join("longhaul.sqlite-wal"), "left").unwrap();
    refused("store_not_empty", &left.run(&["restore", text(&file)]));
    drop(backed_up);
}

#[test]
fn file_of_that_name_stays_unless_it_may_be_replaced_and_is_for_its_owner_alone() {
    let (dir, file) = backup_file();
    let home = backed_up(Kind::File, &file);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let before = std::fs::read(&file).unwrap();
    refused("backup_exists", &home.run(&["backup", text(&file)]));
    assert!(std::fs::read(&file).unwrap() == before);
    {
        let _daemon = home.daemon(&["--no-dispatch"]);
        create(home.path(), &["three"]);
    }
    expect(0, &home.run(&["backup", text(&file), "--force"]));
    assert!(std::fs::read(&file).unwrap() != before);
    refused("store_missing", &Home::new(Kind::File).run(&["backup", text(&dir.path().join("none.backup"))]));
    refused("io", &home.run(&["backup", text(&dir.path().join("no/such/directory.backup"))]));
    // Nothing is left of those that were not made.
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["made.backup"]);
}

#[test]
fn store_that_does_not_agree_with_its_ledger_is_not_backed_up() {
    let (dir, file) = backup_file();
    let home = backed_up(Kind::File, &file);
    let damage = rusqlite::Connection::open(home.path().join("longhaul.sqlite")).unwrap();
    damage.execute_batch("UPDATE jobs SET state = 'failed' WHERE rowid = 1").unwrap();
    drop(damage);
    let told = refused("store_differs", &home.run(&["backup", text(&dir.path().join("second.backup"))]));
    assert!(told.contains("longhaul verify"), "{told}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
