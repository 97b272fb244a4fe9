//! Ends what is left of attempts that nobody supervises any more, found by the marks in their environment.
//!
//! Two cases: a supervisor was killed, and the daemon before this one was. Only processes of our own user (of any, if we are root) that name our
//! daemon are touched, with what descends from them. A process that took the marks from its own environment and left its session is not found.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use domain::AttemptId;
use rustix::process::Signal;

use super::processes::{self, Process};

/// Which attempt a process belongs to.
pub(super) const ATTEMPT_ID: &str = "LONGHAUL_ATTEMPT_ID";
/// Whose attempt it is: says nothing of where the data is.
pub(super) const DAEMON_ID: &str = "LONGHAUL_DAEMON_ID";
const DAEMON_ID_DIGITS: usize = 32;
/// That it is a supervisor, which has the commands of many attempts one after the other.
pub(super) const SUPERVISOR: &str = "LONGHAUL_SUPERVISOR";
/// Looks before giving up on processes that do not end.
const MAX_ROUNDS: usize = 1_000;
/// What was killed needs a moment to be gone.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(5);

/// Ends all processes of earlier daemons on this data directory, and says how many there were. To be called at the start, before any attempt.
pub fn sweep_leftovers(data_dir: &Path) -> usize {
    let Ok(data_dir) = data_dir.canonicalize() else { return 0 };
    let ours = [entry(DAEMON_ID, daemon_id(&data_dir).as_bytes())];
    end_all(|process| {
        let at_work = || process.has_variable(ATTEMPT_ID) || process.has_variable(SUPERVISOR);
        process.is_ours() && process.has_entries(&ours) && at_work()
    })
}

/// Ends what is left of one attempt whose supervisor is gone; `session` is the supervisor's, as long as it has not been waited for.
pub(super) fn sweep_attempt(data_dir: &Path, attempt_id: &AttemptId, session: Option<i32>) -> usize {
    let ours =
        [entry(DAEMON_ID, daemon_id(data_dir).as_bytes()), entry(ATTEMPT_ID, attempt_id.as_str().as_bytes())];
    end_all(|process| process.is_ours() && (session == Some(process.session) || process.has_entries(&ours)))
}

/// What stands for a data directory, given its full path, in the environment of what runs for its daemon.
pub(super) fn daemon_id(data_dir: &Path) -> String {
    let mut digits = store::sha256(data_dir.as_os_str().as_bytes()).to_string();
    digits.truncate(DAEMON_ID_DIGITS);
    digits
}

fn entry(name: &str, value: &[u8]) -> Vec<u8> {
    [name.as_bytes(), b"=", value].concat()
}

/// Kills what is wanted and what descends from it, until a look finds none.
fn end_all(wanted: impl Fn(&Process) -> bool) -> usize {
    let mut killed = HashSet::new();
    for _ in 0..MAX_ROUNDS {
        let found = with_descendants(&processes::all(), &wanted);
        if found.is_empty() {
            break;
        }
        for process in found {
            process.signal(Signal::KILL);
            killed.insert(process.identity());
        }
        std::thread::sleep(BETWEEN_ROUNDS);
    }
    killed.len()
}

/// Neither this process nor what it runs under is ever among them.
fn with_descendants(all: &[Process], wanted: impl Fn(&Process) -> bool) -> Vec<Process> {
    let spared = ancestors_of_this(all);
    let mut found: Vec<Process> =
        all.iter().filter(|process| !spared.contains(&process.pid) && wanted(process)).copied().collect();
    let mut ids: HashSet<i32> = found.iter().map(|process| process.pid).collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.pid) {
        next += 1;
        for process in all {
            if process.parent == parent && !spared.contains(&process.pid) && ids.insert(process.pid) {
                found.push(*process);
            }
        }
    }
    found
}

fn ancestors_of_this(all: &[Process]) -> HashSet<i32> {
    let mut spared = HashSet::new();
    let mut pid = i32::try_from(std::process::id()).ok();
    while let Some(one) = pid
        && spared.insert(one)
    {
        pid = all.iter().find(|process| process.pid == one).map(|process| process.parent);
    }
    spared
}
