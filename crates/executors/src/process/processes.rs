//! The processes of this machine, as `/proc` shows them.
//!
//! Everything here may be over by the time it is looked at; a signal goes only to the very process that was seen.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};

/// One process that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub pid: i32,
    pub parent: i32,
    pub session: i32,
    /// Ticks since boot: with the id, it names a process for good.
    started: u64,
}

impl Process {
    /// The process with this id, unless it is over.
    pub(super) fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in the middle is in brackets and may hold anything, brackets too.
    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let text = std::str::from_utf8(stat.get(after_name..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = fields.next()?;
        if matches!(state, "Z" | "X" | "x") {
            return None;
        }
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self { pid, parent, session, started })
    }

    /// What no other process ever has.
    pub(super) fn identity(&self) -> (i32, u64) {
        (self.pid, self.started)
    }

    /// Whether it runs for the same user as we do, or for one of those whom root may have run something.
    pub(super) fn is_ours(&self) -> bool {
        let user = geteuid();
        let is_of_user = |metadata: fs::Metadata| metadata.uid() == user.as_raw();
        user.is_root() || fs::metadata(format!("/proc/{}", self.pid)).is_ok_and(is_of_user)
    }

    /// Whether its environment, as it was given at its start, has all these entries.
    pub(super) fn has_entries(&self, wanted: &[Vec<u8>]) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{}/environ", self.pid)) else { return false };
        wanted.iter().all(|wanted| environment.split(|byte| *byte == 0).any(|entry| entry == wanted))
    }

    /// Whether its environment has a variable of this name.
    pub(super) fn has_variable(&self, name: &str) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{}/environ", self.pid)) else { return false };
        environment.split(|byte| *byte == 0).any(|entry| {
            entry.strip_prefix(name.as_bytes()).is_some_and(|value| value.first() == Some(&b'='))
        })
    }

    /// Signals this process and no other that has its id by now.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        let still = Self::read(self.pid).is_some_and(|now| now.started == self.started);
        if still {
            // It may just have ended: then there is nothing to do.
            let _ = pidfd_send_signal(handle, signal);
        }
    }
}

/// Every process that is not over.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Process;

    #[test]
    fn name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = b"7 (a) b (c)) S 3 7 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99 1";
        let process = Process::parse(7, stat).unwrap();
        assert_eq!((process.parent, process.session, process.started), (3, 5, 4242));
    }

    #[test]
    fn process_that_is_over_is_none() {
        let stat = b"7 (a) Z 3 7 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99 1";
        assert_eq!(Process::parse(7, stat), None);
    }

    #[test]
    fn this_process_is_found_with_its_parent() {
        let me = i32::try_from(std::process::id()).unwrap();
        let found = super::all().into_iter().find(|process| process.pid == me).unwrap();
        assert_eq!(Some(found.parent), i32::try_from(std::os::unix::process::parent_id()).ok());
        assert!(found.is_ours());
    }
}
