//! A file that was emptied, lost its log or has several names is not taken for a store, by no verb, and nothing that is left of it goes.

use std::path::Path;

use crate::given::{Daemon, expect, longhaul, stderr, verify};
use crate::whose::{refused, serve, talk};

/// A store that was killed before its log was moved into the file.
fn killed(dir: &Path) -> String {
    let daemon = Daemon::start(dir);
    let id = talk(dir);
    daemon.kill();
    assert!(dir.join("longhaul.sqlite-wal").metadata().expect("it is there").len() > 0);
    id
}

fn has_output(dir: &Path, id: &str) -> bool {
    dir.join("artifacts").join(id).exists()
}

/// Every verb that opens the store.
#[track_caller]
fn all_refused(code: &str, dir: &Path) {
    let elsewhere = tempfile::tempdir().expect("there is room");
    let file = elsewhere.path().join("of.backup");
    for verb in
        [&["verify"][..], &["export", "facts"], &["rebuild"], &["backup", file.to_str().expect("text")]]
    {
        refused(code, &longhaul(dir, verb));
    }
}

#[test]
fn log_of_an_emptied_file_is_left_alone_by_every_verb() {
    let dir = tempfile::tempdir().unwrap();
    let id = killed(dir.path());
    let (file, log) = (dir.path().join("longhaul.sqlite"), dir.path().join("longhaul.sqlite-wal"));
    let (page, pages) = (std::fs::read(&file).unwrap(), std::fs::read(&log).unwrap());
    std::fs::write(&file, "").unwrap();
    all_refused("store_emptied", dir.path());
    refused("store_emptied", &serve(dir.path(), &[]));
    std::fs::remove_file(&file).unwrap();
    all_refused("store_emptied", dir.path());
    refused("store_emptied", &serve(dir.path(), &[]));
    assert!(std::fs::read(&log).unwrap() == pages && has_output(dir.path(), &id));
    std::fs::write(&file, page).unwrap();
    verify(dir.path());
}

#[test]
fn young_file_without_its_log_is_no_empty_store() {
    let dir = tempfile::tempdir().unwrap();
    let id = killed(dir.path());
    std::fs::remove_file(dir.path().join("longhaul.sqlite-wal")).unwrap();
    all_refused("log_damaged", dir.path());
    refused("log_damaged", &serve(dir.path(), &[]));
    // An empty store would remove the output of what is lost.
    refused("other_store", &serve(dir.path(), &["--accept-loss"]));
    assert!(has_output(dir.path(), &id));
}

#[test]
fn young_file_without_log_and_watermark_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let id = killed(dir.path());
    std::fs::remove_file(dir.path().join("longhaul.sqlite-wal")).unwrap();
    // Without the watermark nobody knows that there was more.
    std::fs::remove_file(dir.path().join("longhaul.sqlite.mark")).unwrap();
    all_refused("store_missing", dir.path());
    refused("other_store", &serve(dir.path(), &[]));
    assert!(has_output(dir.path(), &id));
}

#[test]
fn young_file_without_its_log_is_served_if_the_loss_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let id = killed(dir.path());
    std::fs::remove_file(dir.path().join("longhaul.sqlite-wal")).unwrap();
    std::fs::rename(dir.path().join("artifacts"), dir.path().join("artifacts-of-before")).unwrap();
    refused("log_damaged", &serve(dir.path(), &[]));
    let daemon = Daemon::start_with(dir.path(), &["--accept-loss"]);
    expect(4, &longhaul(dir.path(), &["jobs", "show", &id]));
    daemon.kill();
    drop(Daemon::start(dir.path()));
}

#[test]
fn young_file_whose_log_cannot_be_read_takes_no_output_along_and_verbs_that_read_leave_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let id = killed(dir.path());
    let log = dir.path().join("longhaul.sqlite-wal");
    let mut pages = std::fs::read(&log).unwrap();
    // A bit of its first frame: nothing of it counts any more.
    pages[100] ^= 1;
    std::fs::write(&log, &pages).unwrap();
    all_refused("log_damaged", dir.path());
    assert!(std::fs::read(&log).unwrap() == pages);
    refused("log_damaged", &serve(dir.path(), &[]));
    assert!(has_output(dir.path(), &id));
}

#[test]
fn file_of_two_hard_links_is_served_under_neither() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop(Daemon::start(dir.path()));
    let second = other.path().join("longhaul.sqlite");
    std::fs::hard_link(dir.path().join("longhaul.sqlite"), &second).unwrap();
    refused("store_many_names", &serve(other.path(), &[]));
    refused("store_many_names", &serve(dir.path(), &[]));
    all_refused("store_many_names", other.path());
    std::fs::remove_file(&second).unwrap();
    drop(Daemon::start(dir.path()));
}

#[test]
fn output_that_a_backup_does_not_know_is_set_aside_by_its_restore() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = elsewhere.path().join("of.backup");
    let daemon = Daemon::start(dir.path());
    let known = talk(dir.path());
    expect(0, &longhaul(dir.path(), &["backup", file.to_str().unwrap()]));
    let newer = talk(dir.path());
    drop(daemon);
    for name in ["longhaul.sqlite", "longhaul.sqlite-wal"] {
        std::fs::rename(dir.path().join(name), elsewhere.path().join(name)).unwrap();
    }
    let restored = longhaul(dir.path(), &["restore", file.to_str().unwrap()]);
    expect(0, &restored);
    assert!(stderr(&restored).contains("artifacts/before-restore-1"), "{}", stderr(&restored));
    drop(Daemon::start(dir.path()));
    assert!(has_output(dir.path(), &known) && !has_output(dir.path(), &newer));
    assert!(dir.path().join("artifacts/before-restore-1").join(newer).exists());
}
