//! Rebuild: views and agenda from the facts alone, whole or not at all.

use domain::attention::Retention;
use rusqlite::types::Value;
use rusqlite::{Connection, Row};
use store::{Store, StoreError};
use store_sql::{open_for_rebuilding, rebuild};

use super::file::File;
use crate::given::*;
use crate::retirement::retiring;

/// Every row of a table, every column of it.
fn rows(connection: &Connection, table: &str) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1")).unwrap();
    let columns = statement.column_count();
    let row = |row: &Row<'_>| (0..columns).map(|column| row.get(column)).collect();
    statement.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

fn views(file: &File) -> [Vec<Vec<Value>>; 2] {
    let raw = file.raw();
    [rows(&raw, "jobs"), rows(&raw, "operations")]
}

fn rebuilt(file: &File) -> Result<store_sql::Rebuilt, StoreError> {
    let path = file.path();
    let (mut connection, _lock) = open_for_rebuilding(&path).unwrap();
    rebuild(&mut connection, Retention::DEFAULT, at(100))
}

// conforms: L31
#[tokio::test]
async fn views_that_were_wiped_come_back_from_the_facts_byte_for_byte() {
    let file = File::lived_in().await;
    let productions = || rows(&file.raw(), "external_production_records_view");
    let (before, shown) = (views(&file), productions());
    assert_eq!((before.each_ref().map(Vec::len), shown.len()), ([6, 1], 1));
    for wipe in [
        "DELETE FROM jobs; DELETE FROM operations",
        "UPDATE jobs SET view = '{}', state = 'x', circle = NULL, updated_at = 0; UPDATE operations SET view = ''",
        "INSERT INTO jobs (id, state, updated_at, view) VALUES ('work-stray', 'queued', 0, '{}')",
    ] {
        file.raw().execute_batch(wipe).unwrap();
        assert_ne!(views(&file), before, "{wipe}");
        let done = rebuilt(&file).unwrap();
        assert_eq!((done.records, done.facts), (7, 19));
        assert_eq!((views(&file), productions()), (before.clone(), shown.clone()), "{wipe}");
        assert_eq!(file.verified().differences, []);
    }
}

#[tokio::test]
async fn rebuilding_what_is_whole_changes_neither_views_nor_claims() {
    let file = File::lived_in().await;
    let (before, claims) = (views(&file), rows(&file.raw(), "agenda"));
    let claim_of = |row: &Vec<Value>| (row[0].clone(), row[4].clone(), row[7].clone());
    rebuilt(&file).unwrap();
    assert_eq!(views(&file), before);
    let after = rows(&file.raw(), "agenda");
    assert_eq!(
        after.iter().map(claim_of).collect::<Vec<_>>(),
        claims.iter().map(claim_of).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn agenda_that_was_wiped_comes_back_and_lets_no_old_owner_in() {
    let file = File::lived_in().await;
    let old = {
        let store = file.open();
        taken(&store, &job("queued"), "node-a", at(64)).await.claim
    };
    file.raw().execute_batch("DELETE FROM agenda").unwrap();
    rebuilt(&file).unwrap();
    assert_eq!(file.verified().differences, []);

    let store = file.open();
    let mut change = next_change(&store, &job("queued"), vec![dispatched(1)], at(101)).await;
    change.fence = Some(old.fence());
    assert_eq!(store.commit(commit(vec![change], at(101))).await, Err(StoreError::Fenced));
    let ready = store.take_ready(LANE.into(), take("node-b", at(101), 10)).await.unwrap();
    assert_eq!(ids(&ready), ["work-queued"]);
    assert!(ready[0].claim.claim_version > old.claim_version);
}

#[tokio::test]
async fn damaged_stream_is_named_and_nothing_is_changed() {
    for (damage, what) in [
        ("UPDATE facts SET payload = '{}' WHERE stream = 'work-lost' AND version = 3", "checksum"),
        ("DELETE FROM facts WHERE stream = 'work-lost' AND version = 1", "fact 1 is missing"),
        ("UPDATE facts SET kind = 'job.unheard_of/1' WHERE stream = 'work-lost' AND version = 2", "checksum"),
    ] {
        let file = File::lived_in().await;
        file.tamper(damage, 1);
        file.raw().execute_batch("UPDATE jobs SET state = 'kept as it is'").unwrap();
        let (before, agenda) = (views(&file), rows(&file.raw(), "agenda"));
        let refused = rebuilt(&file).unwrap_err();
        assert_eq!(refused.code(), "store_broken");
        let told = refused.to_string();
        assert!(told.contains("work-lost") && told.contains(what), "{told}");
        assert_eq!((views(&file), rows(&file.raw(), "agenda")), (before, agenda));
    }
}

#[tokio::test]
async fn clock_starts_no_earlier_than_the_newest_fact_also_when_it_was_retired_and_after_a_rebuild() {
    let file = File::lived_in().await;
    let store = file.open();
    assert_eq!(store.newest_fact(), at(63));
    write(&store, &job("gone"), vec![created(), dispatched(1), completed()], at(80)).await;
    store.commit(retiring(&store, &job("gone"), 90).await).await.unwrap();
    drop(store);
    assert_eq!(file.open().newest_fact(), at(90));
    // The last of the ledger is not the newest.
    let store = file.open();
    write(&store, &job("early"), vec![created()], at(300)).await;
    write(&store, &job("late"), vec![created()], at(200)).await;
    drop(store);
    rebuilt(&file).unwrap();
    assert_eq!(file.open().newest_fact(), at(300));
}

#[tokio::test]
async fn agenda_is_written_at_no_earlier_time_than_the_facts() {
    let file = File::lived_in().await;
    file.raw().execute_batch("DELETE FROM agenda").unwrap();
    let path = file.path();
    let (mut connection, lock) = open_for_rebuilding(&path).unwrap();
    rebuild(&mut connection, Retention::DEFAULT, START).unwrap();
    drop((connection, lock));
    let store = file.open();
    let claim = store.load(&job("running")).await.unwrap().unwrap().claim.unwrap();
    assert_eq!(claim.heartbeat_at, at(63));
    assert_eq!(file.verified().differences, []);
}
