//! The tree under a supervisor: everything that the command started, and that those started.
//!
//! Whoever loses its parent becomes the supervisor's own child, so "no child left" is the kernel's word that no descendant is left.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use super::super::processes::{self, Process};
use super::super::report::Exit;

/// Processes signalled in one walk; what is beyond them is found by the next.
const MAX_WALK: u64 = 65_536;

/// Whether any descendant is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Some,
}

pub(super) struct Tree {
    root: i32,
    main: Pid,
    exit: Option<Exit>,
    listing: Listing,
}

/// How the children of a process are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    /// The kernel lists them per thread: quick.
    PerThread,
    /// It does not: everything is looked through.
    Everything,
}

impl Tree {
    /// The tree of this process, in which this child is the command.
    pub(super) fn new(main: Pid) -> Self {
        let listed = Path::new("/proc/thread-self/children").exists();
        let listing = if listed { Listing::PerThread } else { Listing::Everything };
        Self { root: getpid().as_raw_nonzero().get(), main, exit: None, listing }
    }

    /// How the command ended, if it has.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Buries the dead.
    pub(super) fn reap(&mut self) -> Left {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.exit = Some(status.into()),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Left::Some,
                Err(_) => return Left::Nothing,
            }
        }
    }

    /// Signals all that can be found, and says how many that were. Each one's children are listed before it is signalled; what it still
    /// starts in between is found by the next walk.
    pub(super) fn signal(&self, signal: Signal) -> u64 {
        let mut found: VecDeque<(i32, i32)> = self.children_of(self.root).collect();
        let mut signalled = 0;
        while let Some((pid, parent)) = found.pop_front() {
            if parent == self.root {
                found.extend(self.children_of(pid));
                // Nobody else can have the id of an own child before it is waited for.
                let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
            } else {
                let Some(process) = Process::read(pid) else { continue };
                // Another process may have the id by now; one whose parent died is our child, and is.
                if process.parent != parent && process.parent != self.root {
                    continue;
                }
                found.extend(self.children_of(pid));
                process.signal(signal);
            }
            signalled += 1;
            if signalled == MAX_WALK {
                break;
            }
        }
        signalled
    }

    /// The children of a process, each with this parent.
    fn children_of(&self, parent: i32) -> impl Iterator<Item = (i32, i32)> + use<> {
        let children: Vec<i32> = match self.listing {
            Listing::Everything => {
                let all = processes::all().into_iter();
                all.filter(|process| process.parent == parent).map(|process| process.pid).collect()
            }
            Listing::PerThread => listed_per_thread(parent),
        };
        children.into_iter().map(move |pid| (pid, parent))
    }
}

fn listed_per_thread(parent: i32) -> Vec<i32> {
    let mut children = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return children };
    for thread in threads.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    children
}
