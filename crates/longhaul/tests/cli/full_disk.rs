//! A daemon that is started on a full disk serves reads, refuses writes and resumes; one whose output goes to a full disk goes on.
//!
//! The disks are real: a small one in memory, mounted for the test, and `/dev/full`.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::clock_steps::send;
use crate::disk::Disk;
use crate::full_database::fill;
use crate::given::{Daemon, binary, create, expect, json as json_of, longhaul, stderr, verify, within};
use crate::whose::schema;

const SIZE: &str = "24m";

/// Starts on a disk that was filled while the daemon was down, and looks at what it does.
fn check_start(disk: &Disk, dir: &Path, arguments: &[&str], stop: impl FnOnce(Daemon)) {
    let daemon = Daemon::start_with(dir, arguments);
    let id = create(dir, &["kept", "--input", "{\"pages\":12}"]);
    stop(daemon);
    let filler = fill(disk);
    let daemon = Daemon::start_with(dir, arguments);
    let shown = expect(0, &longhaul(dir, &["jobs", "show", &id, "--json"]));
    let (status, ready) = send(dir, &daemon, "GET", "/readyz", &Value::Null);
    assert_eq!((status, &ready["status"]), (200, &"ready".into()));
    assert!(ready["detail"].as_str().is_some_and(|detail| detail.contains("is full")), "{ready}");
    assert!(shown.contains("\"pages\":12") || shown.contains("\"pages\": 12"), "{shown}");
    if !arguments.contains(&"--database") {
        let refused = longhaul(dir, &["jobs", "create", "refused"]);
        expect(1, &refused);
        assert!(stderr(&refused).contains("full"), "{}", stderr(&refused));
    }
    std::fs::remove_file(filler).expect("it is set up");
    within("it takes work again", || {
        longhaul(dir, &["jobs", "create", "accepted"]).status.success().then_some(())
    });
    let (_, ready) = send(dir, &daemon, "GET", "/readyz", &Value::Null);
    assert_eq!(ready, json!({ "status": "ready" }));
    drop(daemon);
}

fn data_on(disk: &Disk) -> std::path::PathBuf {
    let dir = disk.path().join("data");
    std::fs::create_dir(&dir).expect("it is set up");
    dir
}

#[test]
fn start_on_a_full_disk_after_a_kill_serves_reads_and_resumes() {
    let disk = Disk::mount(SIZE);
    let dir = data_on(&disk);
    check_start(&disk, &dir, &["--no-dispatch"], Daemon::kill);
    verify(&dir);
}

#[test]
fn start_on_a_full_disk_after_a_stop_serves_reads_and_resumes() {
    let disk = Disk::mount(SIZE);
    let dir = data_on(&disk);
    check_start(&disk, &dir, &["--no-dispatch"], |daemon| {
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.wait().code(), Some(0));
    });
    verify(&dir);
}

#[test]
fn full_disk_holds_queued_work_until_there_is_room() {
    let disk = Disk::mount(SIZE);
    let dir = data_on(&disk);
    let daemon = Daemon::start_with(&dir, &["--no-dispatch"]);
    let id = create(&dir, &["queued", "--executor", "noop", "--input", "{}"]);
    daemon.kill();
    let filler = fill(&disk);
    let daemon = Daemon::start(&dir);
    let (_, ready) = send(&dir, &daemon, "GET", "/readyz", &Value::Null);
    assert!(ready["detail"].as_str().is_some_and(|detail| detail.contains("is full")), "{ready}");
    let state = || json_of(&dir, &["jobs", "show", &id])["state"].clone();
    assert_eq!(state(), "queued");
    std::fs::remove_file(filler).expect("it is set up");
    within("the job runs by itself", || (state() == "completed").then_some(()));
    drop(daemon);
    verify(&dir);
}

#[test]
fn new_store_on_a_full_disk_is_refused_with_the_reason() {
    let disk = Disk::mount("1m");
    let dir = data_on(&disk);
    let filler = fill(&disk);
    let refused = longhaul(&dir, &["serve", "--listen", "127.0.0.1:0", "--no-dispatch"]);
    expect(1, &refused);
    let told = stderr(&refused);
    assert!(told.contains("is full, and a new store needs room"), "{told}");
    std::fs::remove_file(filler).expect("it is set up");
}

/// Views of an older format cannot be read, and not be rebuilt without room: the daemon says so instead of serving nothing.
#[test]
fn old_views_on_a_full_disk_are_refused_with_the_reason() {
    let disk = Disk::mount(SIZE);
    let dir = data_on(&disk);
    let daemon = Daemon::start_with(&dir, &["--no-dispatch"]);
    let id = create(&dir, &["kept", "--input", "{\"pages\":12}"]);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    let file = dir.join("longhaul.sqlite");
    let store = rusqlite::Connection::open(&file).expect("it is a database");
    store.execute("UPDATE meta SET value = value - 1 WHERE name = 'view_format'", []).expect("it is set up");
    drop(store);
    let filler = fill(&disk);
    let refused = longhaul(&dir, &["serve", "--listen", "127.0.0.1:0", "--no-dispatch"]);
    expect(1, &refused);
    let told = stderr(&refused);
    assert!(told.contains("is full") && told.contains("make room"), "{told}");
    std::fs::remove_file(filler).expect("it is set up");
    let daemon = Daemon::start_with(&dir, &["--no-dispatch"]);
    let shown = expect(0, &longhaul(&dir, &["jobs", "show", &id, "--json"]));
    assert!(shown.contains("\"pages\""), "{shown}");
    drop(daemon);
    verify(&dir);
}

#[test]
fn node_whose_own_directory_is_full_starts_and_resumes() {
    let (disk, schema) = (Disk::mount(SIZE), schema());
    let dir = data_on(&disk);
    check_start(&disk, &dir, &["--no-dispatch", "--database", &schema.address], Daemon::kill);
}

#[test]
fn output_to_a_full_disk_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let mut daemon = binary(&["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dir.path())
        .env("LONGHAUL_LOG", "debug")
        .stdout(full())
        .stderr(full())
        .spawn()
        .unwrap();
    within("it serves", || longhaul(dir.path(), &["jobs", "list"]).status.success().then_some(()));
    create(dir.path(), &["accepted"]);
    assert_eq!(daemon.try_wait().unwrap(), None);
    let pid = rustix::process::Pid::from_raw(i32::try_from(daemon.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
}
