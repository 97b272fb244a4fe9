//! A daemon that is started on a full disk serves reads, refuses writes and resumes; one whose output goes to a full disk goes on.
//!
//! The disks are real: a small one in memory, mounted for the test, and `/dev/full`.

use std::fs::File;
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::Signal;

use crate::disk::Disk;
use crate::full_database::fill;
use crate::given::{Daemon, binary, create, expect, longhaul, stderr, verify, within};
use crate::whose::schema;

const SIZE: &str = "24m";

/// One command to this daemon, whether or not it could say where it is.
fn ask(dir: &Path, daemon: &Daemon, arguments: &[&str]) -> Output {
    let token = std::fs::read_to_string(dir.join("admin.token")).expect("it was made at the first start");
    let mut command = binary(arguments);
    command.env("LONGHAUL_URL", &daemon.url).env("LONGHAUL_TOKEN", token.trim());
    command.output().expect("the binary runs")
}

/// Starts on a disk that was filled while the daemon was down, and looks at what it does.
fn check_start(disk: &Disk, dir: &Path, arguments: &[&str], stop: impl FnOnce(Daemon)) {
    let daemon = Daemon::start_with(dir, arguments);
    let id = create(dir, &["kept", "--input", "{\"pages\":12}"]);
    stop(daemon);
    let filler = fill(disk);
    let daemon = Daemon::start_with(dir, arguments);
    let shown = expect(0, &ask(dir, &daemon, &["jobs", "show", &id, "--json"]));
    assert!(shown.contains("\"pages\":12") || shown.contains("\"pages\": 12"), "{shown}");
    if !arguments.contains(&"--database") {
        let refused = ask(dir, &daemon, &["jobs", "create", "refused"]);
        expect(1, &refused);
        assert!(stderr(&refused).contains("full"), "{}", stderr(&refused));
    }
    std::fs::remove_file(filler).expect("it is set up");
    within("it takes work again, and says where it is", || {
        longhaul(dir, &["jobs", "create", "accepted"]).status.success().then_some(())
    });
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
