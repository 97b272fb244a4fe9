//! A disk that no longer keeps its word: the daemon ends, and says why.
//!
//! The binary is the real one. A small library in front of the system's makes `fsync` fail once a file is there, as a dying disk does.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::given::{Daemon, create, expect, longhaul, show, verify};

/// Fails every sync with EIO while the file exists that `FAILING_SYNC` names.
const LIBRARY: &str = r#"
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int failing(void) {
    const char *file = getenv("FAILING_SYNC");
    if (!file || access(file, F_OK)) return 0;
    errno = EIO;
    return 1;
}
int fsync(int fd) { return failing() ? -1 : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return failing() ? -1 : (int)syscall(SYS_fdatasync, fd); }
"#;

/// Built by the compiler that the database is built by.
fn library(dir: &Path) -> PathBuf {
    let (source, library) = (dir.join("failing.c"), dir.join("failing.so"));
    std::fs::write(&source, LIBRARY).expect("there is room");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.expect("there is a C compiler").success());
    library
}

#[test]
fn daemon_whose_disk_fails_ends_with_the_reason_and_what_it_had_accepted_is_there_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let fails = elsewhere.path().join("fails");
    let environment = [("LD_PRELOAD", library(elsewhere.path())), ("FAILING_SYNC", fails.clone())];
    let daemon = Daemon::start_under(dir.path(), &environment);
    let accepted = create(dir.path(), &["accepted"]);
    std::fs::write(&fails, "").unwrap();
    let refused = longhaul(dir.path(), &["jobs", "create", "refused"]);
    assert_ne!(refused.status.code(), Some(0), "it was accepted without a sync");
    let log = daemon.log_path();
    assert_eq!(daemon.wait().code(), Some(1));
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("the store has stopped, and nothing can be written down any more: "), "{log}");
    // Whoever asks now is told that there is no daemon.
    expect(3, &longhaul(dir.path(), &["jobs", "list"]));
    std::fs::remove_file(&fails).unwrap();
    let _daemon = Daemon::start(dir.path());
    assert_eq!(show(dir.path(), &accepted)["state"], "queued");
    verify(dir.path());
}
