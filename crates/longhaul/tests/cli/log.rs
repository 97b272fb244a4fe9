//! `LONGHAUL_LOG` of a daemon: how much it writes to standard error, and what stays at every level.

use std::path::{Path, PathBuf};

use crate::given::{Daemon, ended, expect, longhaul};

/// What a daemon logs under this setting while a job fails and a token is made.
fn logged(dir: &Path, setting: Option<&str>) -> String {
    let set = setting.map(|setting| ("LONGHAUL_LOG", PathBuf::from(setting)));
    let daemon = Daemon::start_under(dir, set.as_slice());
    let command = ["run", "--detach", "--", "sh", "-c", "exit 3"];
    let id = expect(0, &longhaul(dir, &command)).trim().to_owned();
    ended(dir, &id, "failed");
    expect(0, &longhaul(dir, &["token", "create", "--role", "viewer"]));
    daemon.log()
}

#[test]
fn log_level_leaves_audit_lines_at_every_level() {
    for (setting, failure, commits) in [
        (None, true, false),
        (Some("warn"), false, false),
        (Some("off"), false, false),
        (Some("debug"), true, true),
        (Some("warn,engine=debug"), true, true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let log = logged(dir.path(), setting);
        let has = |told: &[&str]| log.lines().any(|line| told.iter().all(|told| line.contains(told)));
        assert!(has(&[" INFO audit: ", "token made"]), "{setting:?}: {log}");
        assert_eq!(has(&[" INFO ", "job failed", "exit_nonzero"]), failure, "{setting:?}: {log}");
        assert_eq!(has(&["DEBUG ", "committed"]), commits, "{setting:?}: {log}");
    }
}

#[test]
fn audit_lines_are_dropped_where_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let log = logged(dir.path(), Some("info,audit=off"));
    assert!(!log.contains(" audit: ") && log.contains("job failed"), "{log}");
}

#[test]
fn misspelt_log_level_is_ignored_with_a_message() {
    for (setting, mistake) in [
        ("inof", "\"inof\" is not a level: use off, error, warn, info, debug, trace"),
        ("json", "\"json\" is not a level: use off, error, warn, info, debug, trace"),
        ("warn,sever=debug", "nothing is logged by \"sever\": use audit, domain, engine, "),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let log = logged(dir.path(), Some(setting));
        let told = format!("longhaul: LONGHAUL_LOG={setting:?} is ignored: {mistake}");
        assert!(log.starts_with(&told), "{log}");
        assert!(log.contains("job failed") && log.contains("token made"), "as without a setting: {log}");
    }
}
