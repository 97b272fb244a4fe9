//! The wall clock of the machine jumps by hours and days, forth and back, under the real binary: no job ends twice, no fact is older than
//! the one before it, and what is due comes in time by the clock that does not jump.
//!
//! A small library in front of the system's adds to the wall clock what a file says; the boot-time clock runs on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::given::{Daemon, create, ended, expect, longhaul, show, until, verify};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// How far the clock is off, one after the other.
const OFF_BY: [i64; 10] = [HOUR, -HOUR, 3 * DAY, -3 * DAY, 0, 4, -4, 30 * DAY, HOUR, 31 * DAY];
/// Among those, how often it has stepped: it is off by more than what is followed, and by something else than before.
const STEPS: usize = 8;
/// When what waits for its time is due.
const DUE_IN: Duration = Duration::from_secs(2);
/// How late it may be: the test's own commands take some of it. What goes by the wall clock alone is late by the jump back, which is ten
/// seconds at least.
const LATE: Duration = Duration::from_secs(6);

/// Reads the seconds anew each time; the file is replaced as a whole.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, id, now);
    const char *file = id == CLOCK_REALTIME && !result ? getenv("CLOCK_IS_OFF_BY") : 0;
    int fd = file ? (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return result;
    char text[32] = {0};
    if (syscall(SYS_read, fd, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
    syscall(SYS_close, fd);
    return result;
}
"#;

/// The wall clock that a daemon sees.
pub struct Wall {
    dir: tempfile::TempDir,
}

impl Wall {
    pub fn new() -> Self {
        Self::with("")
    }

    /// With more in the configuration.
    pub fn with(config: &str) -> Self {
        let wall = Self { dir: tempfile::tempdir().expect("there is room") };
        wall.set(0);
        let source = wall.file("wall.c");
        std::fs::write(&source, LIBRARY).expect("there is room");
        let library = wall.file("wall.so");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        assert!(built.expect("there is a C compiler").success());
        // However far it jumps, nothing has been kept for long enough.
        let keeps = "retention: { completed_seconds: 315360000, other_seconds: 315360000 }\n";
        std::fs::write(wall.file("longhaul.yaml"), format!("{keeps}{config}")).expect("there is room");
        wall
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn set(&self, seconds: i64) {
        std::fs::write(self.file("next"), seconds.to_string()).expect("there is room");
        std::fs::rename(self.file("next"), self.file("off_by")).expect("it is there");
    }

    pub fn daemon(&self, dir: &Path) -> Daemon {
        let environment = [
            ("LD_PRELOAD", self.file("wall.so")),
            ("CLOCK_IS_OFF_BY", self.file("off_by")),
            ("LONGHAUL_CONFIG", self.file("longhaul.yaml")),
        ];
        Daemon::start_under(dir, &environment)
    }

    /// The same, with a service behind this connector.
    pub fn daemon_with(&self, dir: &Path, connector: &str) -> Daemon {
        let config = self.file("longhaul.yaml");
        let text = std::fs::read_to_string(&config).expect("it is there");
        std::fs::write(&config, format!("{text}connectors: [{connector}]\n")).expect("there is room");
        self.daemon(dir)
    }
}

fn time(value: &Value) -> jiff::Timestamp {
    value.as_str().and_then(|text| text.parse().ok()).expect("it is a time")
}

/// A job that is due later by the daemon's own clock, whatever that shows.
fn due_later(dir: &Path) -> String {
    let now = time(&show(dir, &create(dir, &["what time is it"]))["created_at"]);
    create(dir, &["later", "--executor", "noop", "--due-at", &(now + DUE_IN).to_string()])
}

fn facts(dir: &Path) -> Vec<Value> {
    let facts = expect(0, &longhaul(dir, &["export", "facts"]));
    facts.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

#[test]
fn clock_that_jumps_by_hours_and_days_ends_nothing_twice_and_delays_nothing() {
    let (dir, wall) = (tempfile::tempdir().unwrap(), Wall::new());
    let daemon = wall.daemon(dir.path());
    let (mut running, mut lateness) = (Vec::new(), Vec::new());
    for off_by in OFF_BY {
        // In the middle of an attempt, whose lease is over after a jump ahead.
        let across = create(dir.path(), &["across", "--executor", "slow", "--input", r#"{"seconds":3}"#]);
        until(dir.path(), &across, "running");
        let began = Instant::now();
        let later = due_later(dir.path());
        wall.set(off_by);
        ended(dir.path(), &later, "completed");
        let late = began.elapsed().saturating_sub(DUE_IN);
        assert!(late <= LATE, "at {off_by} s what was due came {late:?} late");
        lateness.push(late);
        running.push(across);
    }
    for id in &running {
        ended(dir.path(), id, "completed");
    }
    let told = daemon.log().matches("the wall clock was set").count();
    assert_eq!(told, STEPS, "{}", daemon.log());
    daemon.kill();
    // Started again while the wall clock is far behind what it has written down.
    wall.set(-DAY);
    let daemon = wall.daemon(dir.path());
    let after = create(dir.path(), &["after", "--executor", "noop"]);
    ended(dir.path(), &after, "completed");
    let facts = facts(dir.path());
    let times: Vec<jiff::Timestamp> = facts.iter().map(|fact| time(&fact["at"])).collect();
    assert!(times.is_sorted(), "a fact is older than the one before it");
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for fact in facts.iter().filter(|fact| fact["kind"] == "job.completed/1") {
        *ends.entry(fact["stream"].as_str().unwrap()).or_default() += 1;
    }
    assert_eq!(ends.len(), 2 * OFF_BY.len() + 1, "some have not ended");
    assert!(ends.values().all(|ends| *ends == 1), "{ends:?}");
    let again = facts.iter().filter(|fact| fact["kind"] == "job.requeued/1").count();
    assert_eq!(again, 0, "an attempt that lived was taken back");
    println!(
        "{} jumps, {} facts, at most {:.2?} late, {again} attempts taken back",
        OFF_BY.len(),
        facts.len(),
        lateness.iter().max().unwrap()
    );
    drop(daemon);
    verify(dir.path());
}
