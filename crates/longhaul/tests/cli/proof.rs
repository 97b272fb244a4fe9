//! What the tests of the drill and of the bench share.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::given::{binary, stderr, stdout};

/// A disk in memory, gone with its guard.
pub struct MemoryDisk {
    mount: TempDir,
}

impl MemoryDisk {
    pub fn mount(options: &str) -> Self {
        let disk = Self { mount: TempDir::new().expect("there is room") };
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(disk.path()).status();
        assert!(
            mounted.is_ok_and(|mounted| mounted.success()),
            "mounting a disk needs root: run this as root"
        );
        disk
    }

    pub fn path(&self) -> &Path {
        self.mount.path()
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

/// A report says when it was made, and on what.
#[track_caller]
pub fn check_conditions(report: &Value) {
    let report = &report["conditions"];
    for name in ["version", "started_at", "kernel", "database_version"] {
        assert!(report[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {report}");
    }
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    let began = report["started_at"].as_str().unwrap_or_default();
    assert!(began.len() >= 20 && began.as_bytes()[10] == b'T' && began.ends_with('Z'), "{began}");
    assert!(report["cores"].as_u64() >= Some(1), "{report}");
    assert!(
        report["database_version"].as_str().unwrap_or_default().starts_with(|c: char| c.is_ascii_digit())
    );
}

/// A verb refuses a place for its scratch or its report that is not there or cannot be written to, says so, and does nothing else.
#[track_caller]
pub fn refused_places(verb: &str, dir: &Path) {
    let read_only = MemoryDisk::mount("ro");
    let file = dir.join("file");
    std::fs::write(&file, "").expect("there is room");
    let missing = dir.join("missing");
    let scratch_in = |place: &Path| ["--dir".to_owned(), place.display().to_string()];
    let report_in = |place: &Path| ["--report".to_owned(), place.join("report").display().to_string()];
    for (arguments, what) in [
        (scratch_in(&missing), "does not exist"),
        (scratch_in(&file), "is not a directory"),
        (scratch_in(read_only.path()), "cannot be written to"),
        (report_in(&missing), "the report cannot be written"),
        (report_in(read_only.path()), "the report cannot be written"),
    ] {
        // Whatever is not named is in the directory of the test.
        let output = binary(&[verb, "--seconds", "1"])
            .args(&arguments)
            .env("TMPDIR", dir)
            .current_dir(dir)
            .output()
            .expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert!(stderr(&output).contains(what), "{arguments:?}: {}", stderr(&output));
    }
    assert!(!missing.exists());
    let names: Vec<_> =
        std::fs::read_dir(dir).expect("it is there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["file"], "nothing is left");
}
