//! Rows that nobody can have written: the store says that it is broken, and goes on with the rest.

use domain::{BodyName, RecordKind};
use store::{JobFilter, JobQuery, Store, StoreError, body_ref};

use super::file::File;
use crate::given::*;

fn broken<T: std::fmt::Debug>(answer: Result<T, StoreError>, what: &str) {
    let code = answer.as_ref().map_err(StoreError::code).err();
    assert_eq!(code, Some("store_broken"), "{what}: {answer:?}");
}

fn all() -> JobQuery {
    JobQuery { limit: 100, ..JobQuery::default() }
}

fn in_press() -> JobQuery {
    let filter = JobFilter { circle: Some("press".to_owned()), ..JobFilter::default() };
    JobQuery { filter, ..all() }
}

/// The store after a row was changed behind its back.
async fn store_after(tampering: &str) -> (File, store_sql::SqliteStore) {
    let file = File::lived_in().await;
    file.tamper(tampering, 1);
    let store = file.open();
    (file, store)
}

#[tokio::test]
async fn view_that_cannot_be_read_is_told_by_load_and_list() {
    for view in ["''", "'{}'", "'not json'", "'[1,2]'", "substr(view, 1, 40)", "CAST(x'ff00fe' AS TEXT)"] {
        let (_file, store) =
            store_after(&format!("UPDATE jobs SET view = {view} WHERE id = 'work-done'")).await;
        broken(store.load(&job("done")).await, view);
        broken(store.jobs(all()).await, view);
        broken(store.jobs(in_press()).await, view);
        // The others are as they were.
        assert!(store.load(&job("lost")).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn state_that_nobody_knows_is_told_by_the_counts() {
    let (_file, store) = store_after("UPDATE jobs SET state = 'asleep' WHERE id = 'work-done'").await;
    broken(store.job_counts().await, "state");
}

#[tokio::test]
async fn fact_that_cannot_be_read_is_told_by_both_ways_through_the_ledger() {
    for change in [
        "payload = '{}'",
        "payload = ''",
        "payload = CAST(x'ff' AS TEXT)",
        "kind = 'job.unheard_of/1'",
        "kind = 'job.delivered/1'",
        "fact_id = x'00'",
        "checksum = x'0011'",
    ] {
        let statement = format!("UPDATE facts SET {change} WHERE stream = 'work-done' AND version = 2");
        let (_file, store) = store_after(&statement).await;
        broken(store.facts_of(&job("done"), 0, 10).await, change);
        broken(store.facts_after(0, 100).await, change);
        assert_eq!(store.facts_of(&job("lost"), 0, 10).await.unwrap().len(), 4);
    }
}

#[tokio::test]
async fn stream_that_names_no_record_is_told() {
    let (_file, store) = store_after("UPDATE facts SET stream = 'x' WHERE stream = 'work-later'").await;
    broken(store.facts_after(0, 100).await, "stream");
}

#[tokio::test]
async fn agenda_row_that_cannot_be_read_is_told_and_blocks_only_its_own_record() {
    for change in ["checksum = x'00'", "version = -1", "claim_version = -1", "lease_expires_at = NULL"] {
        let statement = format!("UPDATE agenda SET {change} WHERE record_id = 'work-running'");
        let (_file, store) = store_after(&statement).await;
        broken(store.load(&job("running")).await, change);
        let creating = store.commit(commit(vec![creation(&job("running"), created(), at(99))], at(99)));
        let id = job("running");
        let taking = store.take(&id, take("node-b", at(99), 1));
        let beside = store.commit(commit(vec![creation(&job("new"), created(), at(99))], at(99)));
        broken(creating.await, change);
        broken(taking.await, change);
        beside.await.unwrap();
    }
}

#[tokio::test]
async fn agenda_row_that_names_no_record_is_told_by_the_takes() {
    let rename = "UPDATE agenda SET record_id = 'x' WHERE record_id =";
    let (_file, store) = store_after(&format!("{rename} 'work-queued'")).await;
    broken(store.take_ready(LANE.into(), take("node-b", at(99), 10)).await, "ready");
    let (_file, store) = store_after(&format!("{rename} 'work-running'")).await;
    broken(store.take_due(RecordKind::Job, take("node-b", at(99), 10)).await, "due");
}

#[tokio::test]
async fn key_that_cannot_be_read_is_told_and_not_given_again() {
    for change in ["record_id = 'x'", "request_sha256 = x'00'"] {
        let statement = format!("UPDATE idempotency_keys SET {change} WHERE key = 'done'");
        let (_file, store) = store_after(&statement).await;
        broken(store.key(&key("done")).await, change);
        let mut again = commit(vec![creation(&job("again"), created(), at(99))], at(99));
        again.keys = vec![kept(key("done"), &job("again"), b"created")];
        broken(store.commit(again).await, change);
        assert_eq!(store.load(&job("again")).await, Ok(None));
    }
}

#[tokio::test]
async fn damaged_or_missing_body_is_told_and_none_of_it_given() {
    let input = body_ref(BodyName::Input, b"done");
    let place = "WHERE record_id = 'work-done' AND name = 'input'";
    for statement in [
        format!("UPDATE bodies SET bytes = CAST('dons' AS BLOB) {place}"),
        format!("UPDATE bodies SET bytes = CAST('don' AS BLOB) {place}"),
        format!("UPDATE bodies SET sha256 = CAST(x'00' || substr(sha256, 2) AS BLOB) {place}"),
        format!("UPDATE bodies SET name = 'inpuu' {place}"),
        format!("UPDATE bodies SET record_id = 'work-dond' {place}"),
        format!("DELETE FROM bodies {place}"),
    ] {
        let before = store::damaged_body_reads();
        let (_file, store) = store_after(&statement).await;
        let told = store.body(&job("done"), input).await.unwrap_err();
        assert_eq!(told.code(), "body_damaged", "{statement}: {told}");
        assert!(told.to_string().contains("the input of work-done"), "{told}");
        assert!(told.to_string().contains(&input.sha256.to_string()), "{told}");
        assert!(store::damaged_body_reads() > before);
        // The others are as they were.
        let result = body_ref(BodyName::Result, b"{\"pages\":12}");
        assert!(store.body(&job("done"), result).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn record_whose_view_is_lost_or_old_is_not_taken_for_missing() {
    let (_file, store) = store_after("DELETE FROM jobs WHERE id = 'work-done'").await;
    broken(store.load(&job("done")).await, "view");
    let (_file, store) = store_after("DELETE FROM agenda WHERE record_id = 'work-done'").await;
    broken(store.load(&job("done")).await, "agenda");
    let older = "UPDATE agenda SET version = version - 1 WHERE record_id = 'work-done'";
    let (_file, store) = store_after(older).await;
    broken(store.load(&job("done")).await, "head");
}
