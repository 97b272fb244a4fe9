//! Connections that go in the middle of work: nothing acknowledged is lost, nothing is done twice.
//!
//! `LONGHAUL_LOSSES` says how many connections are killed.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use store::{Store, StoreError};
use store_sql::{PostgresAddress, PostgresOptions, PostgresStore};

use super::database::{Database, soon};
use super::drill::{Drill, compare};
use super::proxy::Proxy;
use crate::given::*;
use crate::tokens::token;

const LOSSES: u64 = 40;
const WRITERS: usize = 16;
/// The most commits between two of them.
const MOST_BETWEEN: u64 = 60;

fn losses() -> u64 {
    match std::env::var("LONGHAUL_LOSSES") {
        Ok(losses) => losses.parse().expect("LONGHAUL_LOSSES is a number"),
        Err(_) => LOSSES,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn killed_connections_lose_and_double_nothing() {
    let database = Database::missing().await;
    let store = Arc::new(database.open().await);
    let drill = Drill::start(&store, WRITERS);
    let raw = database.raw().await;
    // One that is in the middle of something, after another number of commits each time.
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity \
                WHERE pid <> pg_backend_pid() AND application_name = $1 AND state <> 'idle' ORDER BY random() LIMIT 1) AS one";
    let random = RandomState::new();
    let mut killed = 0;
    while killed < losses() {
        drill.reach(drill.written() + random.hash_one(killed) % MOST_BETWEEN).await;
        let count: i64 = raw.query_one(kill, &[&database.schema.name()]).await.unwrap().get(0);
        killed += u64::try_from(count).unwrap();
    }
    let acknowledged = drill.end().await;
    compare(&database, &*store, &acknowledged).await;
    let figures = store.figures();
    assert!(figures.connections() > 1, "no connection was opened again");
    let (doubts, repeats) = (figures.doubts(), figures.repeats());
    let commits: usize = acknowledged.values().map(Vec::len).sum();
    println!(
        "{killed} connections killed, {commits} commits, {doubts} transactions in doubt, {repeats} commits were there"
    );
    // One in four is, and a run without any says nothing about them.
    assert!(losses() < LOSSES || doubts > 0, "no transaction was in doubt");
}

/// The connection dies after the server has committed and before it says so: what a restart at the wrong moment does.
#[tokio::test]
async fn commit_whose_answer_is_lost_is_repeated_and_not_doubled() {
    const TIMES: u64 = 20;
    let database = Database::lived_in().await;
    let proxy = Proxy::before(&database.schema.address).await;
    let address = PostgresAddress::parse(&proxy.address).unwrap();
    let store =
        PostgresStore::open(&PostgresOptions { writers: 1, ..PostgresOptions::at(address) }).await.unwrap();
    let mut last = 0;
    for number in 0..TIMES {
        let id = job(&format!("new-{number}"));
        let mut step = commit(vec![creation(&id, created(), at(100))], at(100));
        step.keys = vec![kept(key(id.as_str()), &id, b"created")];
        proxy.lose_the_next_commit();
        let written = soon(store.commit(step)).await.unwrap();
        assert!(written.position > last);
        last = written.position;
        assert_eq!(store.facts_of(&id, 0, 10).await.unwrap().len(), 1);

        // A claim too is given once, and what comes back is what was given.
        proxy.lose_the_next_commit();
        let first = soon(store.take(&id, take("node-a", at(101), 1))).await.unwrap();
        assert_eq!(first.claim.claim_version, 0);
        proxy.lose_the_next_commit();
        let renewed =
            soon(store.renew(&id, first.claim.fence(), at(102), domain::Lease::DEFAULT)).await.unwrap();
        assert_eq!(renewed.claim.claim_version, 1);
        assert_eq!(store.load(&id).await.unwrap().unwrap().claim, Some(renewed.claim));
    }
    assert_eq!(store.figures().doubts(), 3 * TIMES);
    assert_eq!(store.figures().repeats(), TIMES);
    assert!(database.verified().await.differences.is_empty());
}

#[tokio::test]
async fn token_whose_keeping_was_not_answered_is_kept_once() {
    let database = Database::lived_in().await;
    let proxy = Proxy::before(&database.schema.address).await;
    let address = PostgresAddress::parse(&proxy.address).unwrap();
    let store = PostgresStore::open(&PostgresOptions::at(address)).await.unwrap();
    let token = token("a", 1);
    proxy.lose_the_next_commit();
    assert_eq!(soon(store.keep_token(token.clone())).await, Ok(()));
    assert_eq!(store.figures().doubts(), 1);
    assert_eq!(store.tokens().await, Ok(vec![token.clone()]));
    // Whoever asks for the same anew is told so.
    assert_eq!(store.keep_token(token).await, Err(StoreError::Conflict));
}

#[tokio::test]
async fn read_whose_connection_was_killed_is_asked_again() {
    let database = Database::lived_in().await;
    let store = database.open().await;
    let before = sight(&store).await;
    let raw = database.raw().await;
    for _ in 0..3 {
        let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                    WHERE pid <> pg_backend_pid() AND application_name = $1";
        let killed: i64 = raw.query_one(kill, &[&database.schema.name()]).await.unwrap().get(0);
        assert!(killed > 0);
        assert_eq!(sight(&store).await, before);
    }
}
