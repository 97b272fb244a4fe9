//! A server that crashes under load, again and again: nothing acknowledged is lost, nothing is done twice.
//!
//! `LONGHAUL_RESTARTS` says how often. A run in which too few commits were in doubt proves nothing and fails.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{Fact, Fence, Lease, OwnerId, RecordId};
use store::{Store, StoreError, Take};
use store_sql::PostgresStore;
use test_postgres::{Cluster, Schema};

use super::database::Database;
use super::drill::{Drill, compare};
use crate::given::{at, commit, created, dispatched, job, next_change, noted, taken, write};

const RESTARTS: u64 = 4;
const WRITERS: usize = 16;
/// The most commits between two crashes.
const MOST_BETWEEN: u64 = 1_000;
/// A run of this many must have seen transactions in doubt, and commits among them that were there.
const TELLING: u64 = 20;
/// From the server's answer to its starter until work is acknowledged again.
const SERVES_AGAIN_WITHIN: Duration = Duration::from_secs(5);

fn restarts() -> u64 {
    match std::env::var("LONGHAUL_RESTARTS") {
        Ok(restarts) => restarts.parse().expect("LONGHAUL_RESTARTS is a number"),
        Err(_) => RESTARTS,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn server_that_crashes_under_load_loses_and_doubles_nothing() {
    let cluster = Cluster::start();
    let database = Database { schema: Schema::on(&cluster.address()).await };
    let store = Arc::new(database.open().await);
    let drill = Drill::start(&store, WRITERS);
    let random = RandomState::new();
    let mut longest = Duration::ZERO;
    for round in 0..restarts() {
        drill.reach(drill.written() + 1 + random.hash_one(round) % MOST_BETWEEN).await;
        // It blocks, and the callers go on meanwhile: the crash finds them in the middle.
        tokio::task::block_in_place(|| cluster.crash_and_restart());
        let back = Instant::now();
        drill.reach(drill.written() + 1).await;
        longest = longest.max(back.elapsed());
    }
    let acknowledged = drill.end().await;
    compare(&database, &*store, &acknowledged).await;
    let (restarts, doubts, repeats) = (restarts(), store.figures().doubts(), store.figures().repeats());
    let commits: usize = acknowledged.values().map(Vec::len).sum();
    println!(
        "{restarts} crashes, {commits} commits, {doubts} transactions in doubt, {repeats} commits were there, \
         served again after {longest:?} at most"
    );
    assert!(longest < SERVES_AGAIN_WITHIN, "it took {longest:?} to serve again");
    assert!(restarts < TELLING || doubts >= restarts / 2, "only {doubts} transactions were in doubt");
}

/// A take that its taker's commit follows does not wait for the disk. The server may lose it with all that came after, and then its taker is
/// refused as if it had never taken anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn take_without_a_sync_is_lost_with_the_server_or_stands_with_the_commit_after_it() {
    let cluster = Cluster::start();
    let database = Database { schema: Schema::on(&cluster.address()).await };
    let store = database.open().await;
    cluster.stop_log_writer();
    let (lost, stands) = (job("lost"), job("stands"));
    write(&store, &lost, vec![created()], at(0)).await;
    write(&store, &stands, vec![created()], at(0)).await;
    let take = |owner: &str| Take::by(OwnerId::new(owner), at(1), Lease::DEFAULT, 1).until_next_commit();

    let first = store.take(&stands, take("node-a")).await.unwrap().claim;
    under(&store, &stands, first.fence(), dispatched(1)).await.unwrap();
    let forgotten = store.take(&lost, take("node-a")).await.unwrap().claim;
    tokio::task::block_in_place(|| cluster.crash_and_restart());

    assert_eq!(under(&store, &lost, forgotten.fence(), dispatched(1)).await, Err(StoreError::Fenced));
    let successor = taken(&store, &lost, "node-b", at(1)).await.claim;
    under(&store, &lost, successor.fence(), dispatched(1)).await.unwrap();
    assert_eq!(store.take(&stands, take("node-b")).await, Err(StoreError::ClaimHeld));
    under(&store, &stands, first.fence(), noted("still here")).await.unwrap();
}

/// The setting that a server, a database or a user may have, in which the test above loses what it does not wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_is_set_not_to_wait_for_its_disk_loses_nothing_that_was_acknowledged() {
    let cluster = Cluster::start();
    let database = Database { schema: Schema::on(&cluster.address()).await };
    let raw = database.raw().await;
    raw.batch_execute("ALTER DATABASE postgres SET synchronous_commit = off").await.unwrap();
    let store = database.open().await;
    cluster.stop_log_writer();
    let kept = job("kept");
    write(&store, &kept, vec![created()], at(0)).await;
    tokio::task::block_in_place(|| cluster.crash_and_restart());
    assert!(store.load(&kept).await.unwrap().is_some());
}

async fn under(store: &PostgresStore, id: &RecordId, fence: Fence, fact: Fact) -> Result<(), StoreError> {
    let mut change = next_change(store, id, vec![fact], at(2)).await;
    change.fence = Some(fence);
    store.commit(commit(vec![change], at(2))).await.map(|_| ())
}
