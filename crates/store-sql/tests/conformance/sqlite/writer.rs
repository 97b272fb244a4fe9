//! The writer: one transaction and one sync for all that waits, results before new work, reads beside it.

use crash_vfs::Disk;
use domain::{BodyName, RecordKind};
use rusqlite::{Connection, OpenFlags};
use store::{Commit, JobQuery, Store, StoreError, Urgency};
use store_sql::{SqliteOptions, SqliteStore};

use super::file::File;
use crate::given::*;

fn creating(name: &str, urgency: Urgency) -> Commit {
    Commit { urgency, ..commit(vec![creation(&job(name), created(), at(0))], at(0)) }
}

/// Keeps the store's writer waiting until it is dropped.
fn park(connection: &Connection) -> rusqlite::Transaction<'_> {
    rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate).unwrap()
}

#[tokio::test]
async fn new_work_is_refused_first_when_too_much_waits_and_results_still_pass() {
    // More than the writer takes at once and than may wait.
    const NEW_WORK: usize = 1_024 + 4_096 + 1;
    let file = File::missing();
    let store = file.open();
    write(&store, &job("old"), vec![created(), dispatched(1)], at(0)).await;
    let ending = commit(vec![next_change(&store, &job("old"), vec![completed()], at(1)).await], at(1));
    let raw = file.raw();
    let parked = park(&raw);

    let mut waiting = Vec::new();
    for number in 0..NEW_WORK {
        waiting.push(store.commit(creating(&format!("{number}"), Urgency::NewWork)));
    }
    let result = store.commit(ending);
    let old = job("old");
    let claim = store.take(&old, take("node-a", at(1), 1));
    // Reads do not wait for the writer.
    assert_eq!(store.load(&job("old")).await.unwrap().unwrap().head.version, 2);
    assert_eq!(store.jobs(JobQuery { limit: 10, ..JobQuery::default() }).await.unwrap().jobs.len(), 1);
    drop(parked);

    result.await.unwrap();
    claim.await.unwrap();
    let mut refused = 0;
    for (number, answer) in waiting.into_iter().enumerate() {
        match answer.await {
            Ok(_) => {}
            Err(StoreError::Busy) => {
                assert_eq!(store.load(&job(&format!("{number}"))).await, Ok(None));
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!((1..=1_024).contains(&refused), "{refused} of {NEW_WORK} were refused");
    store.commit(creating("after", Urgency::NewWork)).await.unwrap();
}

#[tokio::test]
async fn results_pass_also_when_the_bodies_of_new_work_fill_the_queue() {
    // Large ones until none fits, then small ones into what is left.
    const SIZES: [usize; 2] = [domain::limits::MAX_BODY_BYTES, 10_000];
    const OF_EACH_SIZE: usize = 200;
    let file = File::missing();
    let store = file.open();
    write(&store, &job("old"), vec![created(), dispatched(1)], at(0)).await;
    let result = new_body(BodyName::Result, &[b'x'; 10_000]);
    let mut ending = next_change(&store, &job("old"), vec![completed_with(result.body)], at(1)).await;
    ending.bodies = vec![result];
    let raw = file.raw();
    let parked = park(&raw);
    let mut waiting = Vec::new();
    for size in SIZES {
        let body = new_body(BodyName::Input, &vec![b'x'; size]);
        for number in 0..OF_EACH_SIZE {
            let mut step = creating(&format!("{size}-{number}"), Urgency::NewWork);
            step.changes[0].bodies = vec![body.clone()];
            waiting.push(store.commit(step));
        }
    }
    let ended = store.commit(commit(vec![ending], at(1)));
    drop(parked);
    ended.await.unwrap();
    let mut refused = 0;
    for answer in waiting {
        match answer.await {
            Ok(_) => {}
            Err(StoreError::Busy) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > OF_EACH_SIZE / 2, "only {refused} were refused");
}

#[tokio::test]
async fn commits_and_claims_that_wait_together_share_a_transaction_and_a_sync() {
    const EACH: usize = 100;
    let disk = Disk::new();
    let options =
        SqliteOptions { vfs: Some(disk.vfs_name().to_owned()), ..SqliteOptions::at("longhaul.sqlite") };
    let store = SqliteStore::open(&options).unwrap();
    create_jobs(&store, (0..EACH).map(|number| format!("old-{number}"))).await;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let raw = Connection::open_with_flags_and_vfs("longhaul.sqlite", flags, disk.vfs_name()).unwrap();
    let parked = park(&raw);
    let (batches, requests) = (store.figures().batches(), store.figures().requests());
    let syncs = disk.log().syncs();

    let old: Vec<_> = (0..EACH).map(|number| job(&format!("old-{number}"))).collect();
    let claims: Vec<_> = old.iter().map(|id| store.take(id, take("node-a", at(1), 1))).collect();
    let commits: Vec<_> =
        (0..EACH).map(|number| store.commit(creating(&format!("{number}"), Urgency::NewWork))).collect();
    drop(parked);
    for claim in claims {
        claim.await.unwrap();
    }
    for commit in commits {
        commit.await.unwrap();
    }
    assert_eq!(store.figures().requests() - requests, 2 * EACH as u64);
    // The writer may have taken the first ones alone, before the rest had come.
    let (batches, syncs) = (store.figures().batches() - batches, disk.log().syncs() - syncs);
    assert!((1..=4).contains(&batches), "{batches} batches for {} requests", 2 * EACH);
    assert!((1..=4).contains(&syncs), "{syncs} syncs for {} requests", 2 * EACH);
}

#[tokio::test]
async fn requests_that_change_nothing_cost_no_write() {
    let disk = Disk::new();
    let options =
        SqliteOptions { vfs: Some(disk.vfs_name().to_owned()), ..SqliteOptions::at("longhaul.sqlite") };
    let store = SqliteStore::open(&options).unwrap();
    create_jobs(&store, ["a".to_owned()]).await;
    taken(&store, &job("a"), "node-a", at(0)).await;
    let before = disk.operations();
    for _ in 0..3 {
        assert!(store.take_due(RecordKind::Job, take("node-b", at(1), 10)).await.unwrap().is_empty());
        assert!(store.take_ready(LANE.into(), take("node-b", at(1), 10)).await.unwrap().is_empty());
        assert_eq!(store.take(&job("a"), take("node-b", at(1), 1)).await, Err(StoreError::ClaimHeld));
        let again = store.commit(creating("a", Urgency::NewWork)).await;
        assert_eq!(again, Err(StoreError::Conflict));
    }
    assert_eq!(disk.operations(), before);
}

// conforms: R57
#[tokio::test]
async fn status_is_read_without_a_write_and_says_the_same_however_often_and_while_the_writer_waits() {
    let disk = Disk::new();
    let options =
        SqliteOptions { vfs: Some(disk.vfs_name().to_owned()), ..SqliteOptions::at("longhaul.sqlite") };
    let store = SqliteStore::open(&options).unwrap();
    create_jobs(&store, (0..50).map(|number| format!("{number}"))).await;
    let before = sight(&store).await;
    let operations = disk.operations();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let raw = Connection::open_with_flags_and_vfs("longhaul.sqlite", flags, disk.vfs_name()).unwrap();
    let parked = park(&raw);
    let waiting = store.commit(creating("new", Urgency::NewWork));
    for _ in 0..10 {
        assert_eq!(sight(&store).await, before);
    }
    assert_eq!(disk.operations(), operations);
    drop(parked);
    waiting.await.unwrap();
}

#[tokio::test]
async fn commit_whose_head_has_another_past_is_a_conflict() {
    let file = File::missing();
    let store = file.open();
    write(&store, &job("a"), vec![created()], at(0)).await;
    let mut other_past = next_change(&store, &job("a"), vec![dispatched(1)], at(1)).await;
    other_past.expected.checksum.0[0] ^= 1;
    let refused = store.commit(commit(vec![other_past], at(1))).await;
    assert_eq!(refused, Err(StoreError::Conflict));
    drop(store);
    assert_eq!(file.verified().differences, []);
}
