//! A data directory is one store's: what another store knows nothing of would be swept away there.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use test_postgres::Schema;

use crate::given::{Daemon, binary, create, ended, expect, longhaul, stderr, verify};

/// A daemon that has not ended by then has not been refused.
const SERVES_AFTER: Duration = Duration::from_secs(30);

pub fn schema() -> Schema {
    tokio::runtime::Runtime::new().expect("there is room").block_on(Schema::new())
}

/// A job whose output is in the directory.
pub fn talk(dir: &Path) -> String {
    let input = r#"{"argv":["echo","precious"]}"#;
    let id = create(dir, &["talks", "--executor", "command", "--input", input]);
    ended(dir, &id, "completed");
    id
}

#[track_caller]
fn is_there(dir: &Path, id: &str) {
    assert_eq!(expect(0, &longhaul(dir, &["jobs", "logs", id])), "precious\n");
}

/// A daemon that is expected to end by itself; one that serves is ended.
pub fn serve(dir: &Path, more: &[&str]) -> Output {
    let mut daemon = binary(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    let mut daemon = daemon
        .arg(dir)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let began = Instant::now();
    while daemon.try_wait().expect("it is ours").is_none() && began.elapsed() < SERVES_AFTER {
        std::thread::yield_now();
    }
    // It may have ended by itself.
    let _ = daemon.kill();
    daemon.wait_with_output().expect("it is ours")
}

#[track_caller]
pub fn refused(code: &str, output: &Output) {
    expect(1, output);
    assert!(stderr(output).contains(&format!("error[{code}]: ")), "{}", stderr(output));
}

#[test]
fn directory_of_a_file_is_refused_to_a_database_and_keeps_its_output() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let database = ["--database", &schema.address];
    let daemon = Daemon::start(dir.path());
    let id = talk(dir.path());
    refused("store_locked", &serve(dir.path(), &database));
    daemon.kill();
    refused("other_store", &serve(dir.path(), &database));
    let daemon = Daemon::start(dir.path());
    is_there(dir.path(), &id);
    drop(daemon);
    verify(dir.path());
}

#[test]
fn what_is_left_of_a_store_that_was_moved_has_no_more_say_in_its_directory() {
    let (dir, first, second) = (tempfile::tempdir().unwrap(), schema(), schema());
    let daemon = Daemon::start(dir.path());
    let before = talk(dir.path());
    daemon.kill();
    moved(dir.path(), &[], &first);
    let database = ["--database", &first.address];
    // Not before whoever moves it has said that the file is done with.
    let old = tempfile::tempdir().unwrap();
    refused("other_store", &serve(dir.path(), &database));
    let (file, log) = (dir.path().join("longhaul.sqlite"), dir.path().join("longhaul.sqlite-wal"));
    std::fs::rename(&file, old.path().join("longhaul.sqlite")).unwrap();
    std::fs::write(&log, "what was written last").unwrap();
    refused("other_store", &serve(dir.path(), &database));
    std::fs::remove_file(&log).unwrap();
    // By mistake, before the database has taken over: an empty file would know nothing of what is there.
    refused("other_store", &serve(dir.path(), &[]));
    let daemon = Daemon::start_with(dir.path(), &database);
    let since = talk(dir.path());
    daemon.kill();

    // By mistake: the file is back, and knows nothing of what was made since.
    std::fs::rename(old.path().join("longhaul.sqlite"), &file).unwrap();
    refused("other_store", &serve(dir.path(), &[]));
    std::fs::remove_file(&file).unwrap();
    refused("other_store", &serve(dir.path(), &[]));

    // On to another database, and by mistake back to the one before.
    moved(dir.path(), &database, &second);
    let onward = ["--database", &second.address];
    refused("other_store", &serve(dir.path(), &onward));
    std::fs::remove_file(dir.path().join("database.id")).unwrap();
    let daemon = Daemon::start_with(dir.path(), &onward);
    let last = talk(dir.path());
    daemon.kill();
    refused("other_store", &serve(dir.path(), &database));

    let _daemon = Daemon::start_with(dir.path(), &onward);
    for id in [before, since, last] {
        is_there(dir.path(), &id);
    }
}

/// A backup of the store of this directory made a database.
fn moved(dir: &Path, from: &[&str], to: &Schema) {
    let elsewhere = tempfile::tempdir().expect("there is room");
    let file = elsewhere.path().join("moved.backup");
    let file = file.to_str().expect("it is text");
    expect(0, &longhaul(dir, &[&["backup", file], from].concat()));
    expect(0, &longhaul(dir, &["restore", file, "--database", &to.address]));
}

#[test]
fn mark_that_cannot_be_read_is_taken_for_anothers_and_never_for_none() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let (mark, database) = (dir.path().join("database.id"), ["--database", &schema.address]);
    std::fs::create_dir(&mark).unwrap();
    refused("store_io", &serve(dir.path(), &[]));
    refused("store_io", &serve(dir.path(), &database));
    std::fs::remove_dir(&mark).unwrap();
    std::os::unix::fs::symlink("nowhere", &mark).unwrap();
    refused("other_store", &serve(dir.path(), &[]));
    refused("other_store", &serve(dir.path(), &database));
}

#[test]
fn output_too_large_for_a_database_is_restored_into_no_other_stores_directory() {
    let (dir, other, fresh) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (schema, another, elsewhere) = (schema(), schema(), tempfile::tempdir().unwrap());
    let file = elsewhere.path().join("of.backup");
    let file = file.to_str().unwrap();
    let daemon = Daemon::start(dir.path());
    let id = talk(dir.path());
    let attempt = std::fs::read_dir(dir.path().join("artifacts").join(&id)).unwrap().next().unwrap().unwrap();
    std::fs::write(attempt.path().join("stdout"), vec![b'x'; 17_000_000]).unwrap();
    expect(0, &longhaul(dir.path(), &["backup", file]));
    let restore = |to: &Path| longhaul(to, &["restore", file, "--database", &schema.address]);
    // The one that was backed up goes on with it.
    refused("store_locked", &restore(dir.path()));
    drop(daemon);
    drop(Daemon::start(other.path()));
    refused("other_store", &restore(other.path()));
    expect(0, &restore(fresh.path()));
    // By mistake: it knows nothing of what was put there.
    refused("other_store", &serve(fresh.path(), &["--database", &another.address]));
    let _daemon = Daemon::start_with(fresh.path(), &["--database", &schema.address]);
    assert_eq!(longhaul(fresh.path(), &["jobs", "logs", &id]).stdout.len(), 17_000_000);
}

#[test]
fn backup_without_a_key_is_restored_into_no_other_stores_directory() {
    let (dir, other, elsewhere) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop(Daemon::start(dir.path()));
    std::fs::remove_file(dir.path().join("callback.key")).unwrap();
    let file = elsewhere.path().join("of.backup");
    let file = file.to_str().unwrap();
    expect(0, &longhaul(dir.path(), &["backup", file]));
    drop(Daemon::start(other.path()));
    for name in ["longhaul.sqlite", "longhaul.sqlite-wal", "longhaul.sqlite-shm"] {
        std::fs::remove_file(other.path().join(name)).unwrap();
    }
    refused("other_store", &longhaul(other.path(), &["restore", file]));
    std::fs::remove_file(other.path().join("callback.key")).unwrap();
    expect(0, &longhaul(other.path(), &["restore", file]));
}

#[test]
fn output_that_nobody_has_marked_is_swept_by_no_empty_store() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let output = dir.path().join("artifacts/work-1/attempt-1");
    std::fs::create_dir_all(&output).unwrap();
    refused("other_store", &serve(dir.path(), &[]));
    refused("other_store", &serve(dir.path(), &["--database", &schema.address]));
    std::fs::write(dir.path().join("longhaul.sqlite"), "").unwrap();
    refused("other_store", &serve(dir.path(), &[]));
    assert!(output.exists());
}

#[test]
fn database_without_a_store_is_left_as_it_is_where_one_must_be() {
    let (dir, ours, empty) = (tempfile::tempdir().unwrap(), schema(), schema());
    drop(Daemon::start_with(dir.path(), &["--database", &ours.address]));
    refused("other_store", &serve(dir.path(), &["--database", &empty.address]));
    let verified = binary(&["verify", "--database", &empty.address]).output().unwrap();
    refused("store_missing", &verified);
    // A verb that is not told of the database says what to do.
    let verified = longhaul(dir.path(), &["verify"]);
    refused("other_store", &verified);
    assert!(stderr(&verified).contains("name its database with `--database`"), "{}", stderr(&verified));
}

#[test]
fn mark_of_an_older_longhaul_is_passed_over() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    std::fs::write(dir.path().join("store.id"), "0".repeat(64)).unwrap();
    drop(Daemon::start(dir.path()));
    drop(Daemon::start(dir.path()));
    let node = tempfile::tempdir().unwrap();
    std::fs::write(node.path().join("store.id"), "0".repeat(64)).unwrap();
    drop(Daemon::start_with(node.path(), &["--database", &schema.address]));
}

#[test]
fn store_in_a_directory_that_was_there_is_its_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let _daemon = Daemon::start(dir.path());
    for name in ["longhaul.sqlite", "longhaul.sqlite-wal", "longhaul.sqlite-shm"] {
        let mode = dir.path().join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn file_of_two_names_has_one_daemon() {
    let (dir, link) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _daemon = Daemon::start(dir.path());
    std::os::unix::fs::symlink(dir.path().join("longhaul.sqlite"), link.path().join("longhaul.sqlite"))
        .unwrap();
    refused("store_locked", &serve(link.path(), &[]));
}

#[test]
fn file_that_is_made_where_a_link_leads_has_one_daemon_and_is_its_owners_alone() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = disk.path().join("longhaul.sqlite");
    std::os::unix::fs::symlink(&target, dir.path().join("longhaul.sqlite")).unwrap();
    let _daemon = Daemon::start(dir.path());
    refused("store_locked", &serve(dir.path(), &[]));
    refused("store_locked", &serve(disk.path(), &[]));
    assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn directory_of_a_node_is_refused_to_a_file_and_to_another_database() {
    let (dir, ours, other) = (tempfile::tempdir().unwrap(), schema(), schema());
    let database = ["--database", &ours.address];
    let daemon = Daemon::start_with(dir.path(), &database);
    let id = talk(dir.path());
    refused("other_store", &serve(dir.path(), &[]));
    refused("store_locked", &serve(dir.path(), &["--database", &other.address]));
    // A backup of it may go there if its mark is gone, but not under its daemon.
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("of.backup");
    let file = file.to_str().unwrap();
    expect(0, &binary(&["backup", file, "--data-dir"]).arg(dir.path()).args(database).output().unwrap());
    refused("other_store", &longhaul(dir.path(), &["restore", file]));
    let (mark, away) = (dir.path().join("database.id"), elsewhere.path().join("database.id"));
    std::fs::rename(&mark, &away).unwrap();
    refused("store_locked", &longhaul(dir.path(), &["restore", file]));
    std::fs::rename(&away, &mark).unwrap();
    daemon.kill();
    refused("other_store", &serve(dir.path(), &[]));
    refused("other_store", &serve(dir.path(), &["--database", &other.address]));
    assert!(!dir.path().join("longhaul.sqlite").exists());
    let _daemon = Daemon::start_with(dir.path(), &database);
    is_there(dir.path(), &id);
}
