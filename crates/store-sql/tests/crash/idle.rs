//! An idle store: every thread of it waits to be woken, with no time limit, so nothing is asked of the file.
//!
//! A process of its own, because the threads of other tests would be seen as well.

use std::fs;
use std::sync::Arc;

use store_sql::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

use crate::child;
use crate::workshop::Workshop;

/// The numbers of the system call that waits for a wake-up, where we know them.
const FUTEX: &str = if cfg!(target_arch = "x86_64") { "202" } else { "98" };
/// One writer, two readers, one checkpointer.
const THREADS: usize = 4;
/// Looks at the threads before giving up; each lets them run first.
const LOOKS: usize = 100_000;

#[test]
fn idle_store_waits_to_be_woken_and_asks_nothing() {
    const THIS: &str = "idle::idle_store_waits_to_be_woken_and_asks_nothing";
    if child::told().is_none() {
        let status = child::start(THIS, "idle").wait().unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    let folder = TempDir::new().unwrap();
    let store =
        Arc::new(SqliteStore::open(&SqliteOptions::at(folder.path().join("longhaul.sqlite"))).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let workshop = Workshop::on(store.clone(), store.newest_fact());
    runtime.block_on(workshop.whole_job(|_| {})).unwrap();

    // Right after the last answer a thread may still be on its way to its wait.
    for _ in 0..LOOKS {
        let waits = waits();
        assert_eq!(waits.len(), THREADS, "{waits:?}");
        if waits.iter().all(|wait| is_without_limit(wait)) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("a thread never came to rest: {:?}", waits());
}

/// What each thread of the store waits in: the system call and its arguments.
fn waits() -> Vec<String> {
    let threads = fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    threads
        .filter(|thread| {
            fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.starts_with("longhaul-"))
        })
        .map(|thread| fs::read_to_string(thread.join("syscall")).unwrap())
        .collect()
}

/// The fourth argument of the wait is its time limit; none is zero.
fn is_without_limit(wait: &str) -> bool {
    let words: Vec<&str> = wait.split_whitespace().collect();
    words.first() == Some(&FUTEX) && words.get(4) == Some(&"0x0")
}
