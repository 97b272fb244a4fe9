//! A server that crashes under load, again and again: nothing acknowledged is lost, nothing is done twice.
//!
//! `LONGHAUL_RESTARTS` says how often. A run in which too few commits were in doubt proves nothing and fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use store::Store;
use test_postgres::{Cluster, Schema};

use super::database::Database;
use super::losses::until_known;
use crate::given::*;

const RESTARTS: u64 = 4;
const WRITERS: usize = 8;
/// A run of this many must have seen commits in doubt.
const TELLING: u64 = 20;

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
    let over = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU64::new(0));
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let (store, over, written) = (store.clone(), over.clone(), written.clone());
        writers.push(tokio::spawn(async move {
            let mut made = BTreeMap::new();
            while !over.load(Ordering::Relaxed) {
                let id = job(&format!("{writer}-{}", made.len()));
                let mut step = commit(vec![creation(&id, created(), at(0))], at(0));
                step.keys = vec![kept(key(id.as_str()), &id, b"created")];
                made.insert(id, until_known(&*store, step).await);
                written.fetch_add(1, Ordering::Relaxed);
            }
            made
        }));
    }
    for round in 0..restarts() {
        // Somewhere in the middle: after another number of commits each time.
        let enough = written.load(Ordering::Relaxed) + 1 + round * 37 % 101;
        while written.load(Ordering::Relaxed) < enough {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cluster.crash_and_restart();
    }
    over.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeMap::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    let mut found = BTreeMap::new();
    let mut after = 0;
    loop {
        let page = store.facts_after(after, 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.position;
        for fact in &page {
            assert_eq!(
                found.insert(fact.stream.clone(), fact.position),
                None,
                "{} was made twice",
                fact.stream
            );
        }
    }
    assert_eq!(found, acknowledged);
    assert!(database.verified().await.differences.is_empty());
    let (restarts, doubts) = (restarts(), store.figures().doubts());
    println!("{restarts} crashes, {} commits, {doubts} in doubt", acknowledged.len());
    assert!(restarts < TELLING || doubts >= restarts / 4, "only {doubts} commits were in doubt");
}
