//! Real processes on real files: killed without warning while they work, or ended by themselves when a sync fails.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;

use crash_vfs::{Disk, Fault};
use domain::RecordId;
use store::Store;
use store_sql::{Durability, SqliteOptions, SqliteStore, open_for_reading, verify};
use tempfile::TempDir;

use crate::promises::Promise;
use crate::workshop::Workshop;
use crate::{child, on_disk};

const KILLS: usize = 500;
/// After so many a new store is begun: each kill is followed by a look at all that is there.
const KILLS_OF_A_STORE: usize = 25;
const TASKS: usize = 6;
const SIGKILL: i32 = 9;
/// What a daemon ends with when its store has stopped.
const STORE_STOPPED: i32 = 70;

fn kills_in_all() -> usize {
    match std::env::var("LONGHAUL_KILLS") {
        Ok(kills) => kills.parse().expect("LONGHAUL_KILLS is a number"),
        Err(_) => KILLS,
    }
}

/// Works in several tasks for ever, and says what it begins and what was acknowledged.
async fn work_for_ever(workshop: Workshop) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let workshop = workshop.clone();
        tasks.spawn(async move {
            loop {
                println!("begin");
                let ended = workshop.whole_job(|promises| promises.iter().for_each(print_version)).await;
                ended.unwrap();
                println!("end");
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

fn print_version(promise: &Promise) {
    if let Promise::Version(record, version) = promise {
        println!("ack {record} {version}");
    }
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // The test's harness leaves its own line open.
    println!();
    runtime.block_on(work);
}

#[test]
fn killed_process_loses_nothing_that_it_acknowledged() {
    const THIS: &str = "kills::killed_process_loses_nothing_that_it_acknowledged";
    if let Some(path) = child::told() {
        return run(async move {
            let store = Arc::new(SqliteStore::open(&SqliteOptions::at(path)).unwrap());
            work_for_ever(Workshop::on(store.clone(), store.newest_fact())).await;
        });
    }
    let (kills, mut mid_work, mut records) = (kills_in_all(), 0, 0);
    for first in (0..kills).step_by(KILLS_OF_A_STORE) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("longhaul.sqlite");
        let mut acknowledged = BTreeMap::new();
        for kill in first..kills.min(first + KILLS_OF_A_STORE) {
            // Early and late, in no order.
            let acks = 1 + kill * 37 % 61;
            mid_work += usize::from(kill_after(THIS, path.as_os_str(), acks, &mut acknowledged));
            check_all_there(&path, &acknowledged);
        }
        records += acknowledged.len();
    }
    println!("{kills} kills, {mid_work} in the middle of work, {records} records");
    assert!(mid_work * 10 >= kills * 9, "VOID: only {mid_work} of {kills} kills met a child at work");
}

/// Kills a child after so many acknowledgements; whether it was at work.
fn kill_after(test: &str, told: &OsStr, acks: usize, acknowledged: &mut BTreeMap<String, u64>) -> bool {
    let mut child = child::start(test, told);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let (mut acks_left, mut at_work) = (acks, 0_isize);
    let mut line = String::new();
    // A line that was cut by the kill has no end, and promises nothing.
    while lines.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["begin"] => at_work += 1,
            ["end"] => at_work -= 1,
            ["ack", record, version] => {
                let version: u64 = version.parse().unwrap();
                let newest = acknowledged.entry(record.to_owned()).or_default();
                *newest = version.max(*newest);
                acks_left = acks_left.saturating_sub(1);
                if acks_left == 0 {
                    child.kill().unwrap();
                }
            }
            _ => {}
        }
        line.clear();
    }
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(SIGKILL), "the child ended by itself: {status}");
    at_work > 0
}

fn check_all_there(path: &Path, acknowledged: &BTreeMap<String, u64>) {
    let store = SqliteStore::open(&SqliteOptions::at(path)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (record, version) in acknowledged {
        let id = RecordId::parse(record).unwrap();
        let there = runtime.block_on(store.load(&id)).unwrap().map(|loaded| loaded.head.version);
        assert!(there >= Some(*version), "{record} was acknowledged at {version}, and is at {there:?}");
    }
    drop(store);
    let verified = verify(&open_for_reading(path).unwrap()).unwrap();
    assert_eq!(verified.differences, []);
    assert!(verified.records >= acknowledged.len() as u64);
}

#[test]
fn process_whose_sync_failed_ends_and_acknowledges_nothing_after_it() {
    const THIS: &str = "kills::process_whose_sync_failed_ends_and_acknowledges_nothing_after_it";
    if let Some(operations) = child::told() {
        let operations = operations.to_str().unwrap().parse().unwrap();
        return run(work_until_a_sync_fails(operations));
    }
    for operations in [200, 333, 500, 1_000] {
        let mut child = child::start(THIS, operations.to_string());
        let lines: Vec<String> =
            BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap()).collect();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(STORE_STOPPED), "{status}");
        let count = |word: &str| lines.iter().filter(|line| line.starts_with(word)).count();
        assert!(count("ack") > 5, "too little was acknowledged before the failure to prove anything");
        assert_eq!(count("late"), 0, "acknowledged after the sync had failed");
        assert_eq!(count("stopped"), 1);
    }
}

/// As a daemon does: works, and ends when its store has stopped.
async fn work_until_a_sync_fails(operations: usize) {
    let disk = Disk::new();
    let store = Arc::new(on_disk::open(&disk, Durability::Full).unwrap());
    let workshop = Workshop::on(store.clone(), store.newest_fact());
    disk.fail_after(disk.operations() + operations, Fault::SyncFails);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let (workshop, disk) = (workshop.clone(), disk.clone());
        tasks.spawn(async move {
            loop {
                let failed_before = disk.faults_fired() > 0;
                if workshop.create(300).await.is_ok() {
                    println!("{}", if failed_before { "late" } else { "ack" });
                }
            }
        });
    }
    println!("stopped: {}", on_disk::stopped(&store).await);
    std::process::exit(STORE_STOPPED);
}
