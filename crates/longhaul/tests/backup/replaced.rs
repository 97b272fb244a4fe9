//! What a backup may take the place of, and what stays whatever is asked for.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Output;

use crate::given::{binary, create, expect, stderr};
use crate::home::{Home, Kind, backup_file, text};

#[track_caller]
fn refused(code: &str, output: &Output) -> String {
    expect(1, output);
    let told = stderr(output);
    assert!(told.starts_with(&format!("error[{code}]: ")), "{told}");
    assert_eq!(told.matches("os error").count().max(1), 1, "a cause is said once: {told}");
    told
}

/// A store with one job, and its daemon is gone.
fn store() -> Home {
    let home = Home::new(Kind::File);
    let daemon = home.daemon(&["--no-dispatch"]);
    create(home.path(), &["one", "--executor", "noop"]);
    drop(daemon);
    home
}

#[test]
fn no_backup_is_written_into_the_data_directory_or_over_a_file_of_the_store() {
    let home = store();
    let (dir, _) = backup_file();
    let sqlite = home.path().join("longhaul.sqlite");
    let (hard, soft) = (dir.path().join("hard"), dir.path().join("soft"));
    std::fs::hard_link(&sqlite, &hard).unwrap();
    std::os::unix::fs::symlink(&sqlite, &soft).unwrap();
    let before = std::fs::read(&sqlite).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    std::os::unix::fs::symlink(home.path(), &elsewhere).unwrap();
    let inside =
        ["longhaul.sqlite", "longhaul.sqlite-wal", "longhaul.sqlite.lock", "artifacts/new", "nightly.backup"];
    let inside = inside.map(|name| home.path().join(name));
    let through_a_link = elsewhere.join("nightly.backup");
    let refusals = inside.iter().chain([&through_a_link]).map(|file| ("in_the_data_directory", file));
    for (code, file) in refusals.chain([("not_a_backup", &hard), ("not_a_backup", &soft)]) {
        for force in [&["--force"][..], &[]] {
            refused(code, &home.run(&[&["backup", text(file)], force].concat()));
        }
    }
    assert!(std::fs::read(&sqlite).unwrap() == before);
    // Under two names it is no store.
    std::fs::remove_file(&hard).unwrap();
    home.verify();
}

#[test]
fn what_is_no_backup_stays_whatever_is_asked_for() {
    let (home, other) = (store(), store());
    let (dir, _) = backup_file();
    let place = |name: &str| dir.path().join(name);
    std::fs::write(place("letter"), "dear reader").unwrap();
    // Which moves what is in its log into the file.
    other.backup(&place("other.backup"));
    std::fs::copy(other.path().join("longhaul.sqlite"), place("store")).unwrap();
    std::fs::create_dir(place("directory")).unwrap();
    std::os::unix::fs::symlink("letter", place("link")).unwrap();
    let _socket = UnixListener::bind(place("socket")).unwrap();
    for (name, what) in [
        ("letter", "is no backup; "),
        ("store", "is a store; "),
        ("directory", "is a directory; name a file in it"),
        ("link", "is a symbolic link; "),
        ("socket", "is a socket; "),
    ] {
        let before = std::fs::symlink_metadata(place(name)).unwrap();
        for force in [&["--force"][..], &[]] {
            let told = refused("not_a_backup", &home.run(&[&["backup", text(&place(name))], force].concat()));
            assert!(told.contains(what), "{told}");
        }
        let after = std::fs::symlink_metadata(place(name)).unwrap();
        assert_eq!((before.file_type(), before.len()), (after.file_type(), after.len()), "{name}");
        assert!(!place(&format!("{name}.partial")).exists());
    }
    // A name that only looks like that of a draft.
    std::fs::write(place("mine.partial"), "of somebody").unwrap();
    refused("not_a_backup", &home.run(&["backup", text(&place("mine"))]));
    assert_eq!(std::fs::read(place("mine.partial")).unwrap(), b"of somebody");
}

#[test]
fn backup_that_is_damaged_cut_off_or_empty_is_replaced_if_that_is_asked_for() {
    let home = store();
    let (_dir, file) = backup_file();
    home.backup(&file);
    let whole = std::fs::read(&file).unwrap();
    for length in [0, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        let told = refused("backup_exists", &home.run(&["backup", text(&file)]));
        assert!(told.contains("--force"), "{told}");
        expect(0, &home.run(&["backup", text(&file), "--force"]));
        Home::new(Kind::File).restore(&file);
    }
}

#[test]
fn place_that_is_not_there_is_named_once_and_standard_output_is_refused() {
    let home = store();
    let (dir, file) = backup_file();
    let directory = dir.path().join("no/such");
    let told = refused("io", &home.run(&["backup", text(&directory.join("made.backup"))]));
    assert!(told.contains(&format!("the directory {} does not exist", directory.display())), "{told}");
    home.backup(&file);
    let told = refused("io", &home.run(&["backup", text(&file.join("made.backup"))]));
    assert!(told.contains("made.backup is not a directory"), "{told}");
    let dash = home.run(&["backup", "-"]);
    expect(2, &dash);
    assert!(stderr(&dash).contains("standard output"), "{}", stderr(&dash));

    let missing = dir.path().join("missing");
    let told = refused("io", &Home::new(Kind::File).run(&["restore", text(&missing)]));
    assert!(told.contains("missing: "), "{told}");
    let restored = |to: &Path| binary(&["restore", text(&file), "--data-dir", text(to)]).output();
    let told = refused("io", &restored(&file).unwrap());
    assert!(told.contains("made.backup is not a directory"), "{told}");
}

#[test]
fn restore_says_what_is_in_its_way_and_what_it_has_restored() {
    let home = store();
    let (_dir, file) = backup_file();
    home.backup(&file);
    let target = Home::new(Kind::File);
    let told = refused("not_a_backup", &target.run(&["restore", text(&home.path().join("longhaul.sqlite"))]));
    assert!(told.contains("it is a store; make a backup of it"), "{told}");
    let new = Home::new(Kind::File);
    let daemon = new.daemon(&["--no-dispatch"]);
    let told = refused("not_a_backup", &target.run(&["restore", text(&new.path().join("longhaul.sqlite"))]));
    assert!(told.contains("a store; make a backup of it"), "{told}");
    drop(daemon);
    let daemon = home.daemon(&["--no-dispatch"]);
    let told = refused("store_not_empty", &home.run(&["restore", text(&file)]));
    assert!(told.contains("a daemon is running on this store") && !told.contains("move"), "{told}");
    daemon.kill();
    let told = refused("store_not_empty", &home.run(&["restore", text(&file)]));
    assert!(told.contains("move this store away"), "{told}");
    let told = expect(0, &target.run(&["restore", text(&file)]));
    assert!(told.contains(", 0 artifacts, "), "{told}");
}
