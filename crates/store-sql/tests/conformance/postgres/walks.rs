//! Verify, rebuild and export on the server: the same code as on a file, on a session.

use domain::BodyName;
use domain::attention::Retention;
use store::{Store, StoreError, body_ref};

use super::database::Database;
use crate::given::*;

#[tokio::test]
async fn store_that_was_only_used_is_clean() {
    let verified = Database::lived_in().await.verified().await;
    assert_eq!(verified.differences, []);
    assert_eq!((verified.records, verified.facts), (7, 19));
}

#[tokio::test]
async fn every_kind_of_tampering_is_found_and_named() {
    for (statement, record, what) in [
        (
            "UPDATE facts SET payload = '{}' WHERE stream = 'work-lost' AND version = 3",
            "work-lost",
            "checksum",
        ),
        ("DELETE FROM facts WHERE stream = 'work-lost' AND version = 2", "work-lost", "missing"),
        (
            "UPDATE facts SET checksum = 'x' WHERE stream = 'work-done' AND version = 1",
            "work-done",
            "cannot be read",
        ),
        ("UPDATE jobs SET state = 'failed' WHERE id = 'work-done'", "work-done", "columns"),
        ("UPDATE jobs SET circle = NULL WHERE id = 'work-done'", "work-done", "columns"),
        ("UPDATE operations SET orphaned_at = 1", "op-press", "columns"),
        ("UPDATE jobs SET view = view || ' ' WHERE id = 'work-done'", "work-done", "view"),
        ("DELETE FROM jobs WHERE id = 'work-done'", "work-done", "no view"),
        ("DELETE FROM agenda WHERE record_id = 'work-later'", "work-later", "no agenda row"),
        ("UPDATE agenda SET due_at = due_at + 1 WHERE record_id = 'work-later'", "work-later", "due"),
        ("UPDATE bodies SET bytes = 'x' WHERE record_id = 'work-queued'", "work-queued", "digest"),
        ("DELETE FROM bodies WHERE record_id = 'work-queued'", "work-queued", "missing"),
    ] {
        let database = Database::lived_in().await;
        database.tamper(statement, 1).await;
        let verified = database.verified().await;
        let found: Vec<String> = verified.differences.iter().map(ToString::to_string).collect();
        let named = |told: &String| told.starts_with(record) && told.contains(what);
        assert!(found.iter().any(named), "{statement}: {found:?}");
        assert!(found.iter().all(|told| told.starts_with(record)), "{statement}: {found:?}");
    }
}

async fn rebuilt(database: &Database) -> Result<store_sql::Rebuilt, StoreError> {
    database.ledger().await.rebuild(Retention::DEFAULT, at(100)).await
}

#[tokio::test]
async fn views_that_were_wiped_come_back_from_the_facts_byte_for_byte() {
    let database = Database::lived_in().await;
    let before = (database.rows("jobs").await, database.rows("operations").await);
    for wipe in [
        "DELETE FROM jobs; DELETE FROM operations",
        "UPDATE jobs SET view = '{}', state = 'failed', circle = NULL, updated_at = 0; UPDATE operations SET view = ''",
        "INSERT INTO jobs (id, state, updated_at, view) VALUES ('work-stray', 'queued', 0, '{}')",
    ] {
        database.raw().await.batch_execute(wipe).await.unwrap();
        let done = rebuilt(&database).await.unwrap();
        assert_eq!((done.records, done.facts), (7, 19));
        assert_eq!((database.rows("jobs").await, database.rows("operations").await), before, "{wipe}");
        assert_eq!(database.verified().await.differences, []);
    }
}

#[tokio::test]
async fn damaged_stream_is_named_and_nothing_is_changed() {
    let database = Database::lived_in().await;
    database.tamper("UPDATE facts SET payload = '{}' WHERE stream = 'work-lost' AND version = 3", 1).await;
    database.raw().await.batch_execute("UPDATE jobs SET state = 'failed'").await.unwrap();
    let before = (database.rows("jobs").await, database.rows("agenda").await);
    let refused = rebuilt(&database).await.unwrap_err();
    assert_eq!(refused.code(), "store_broken");
    assert!(refused.to_string().contains("work-lost"), "{refused}");
    assert_eq!((database.rows("jobs").await, database.rows("agenda").await), before);
}

#[tokio::test]
async fn agenda_that_was_wiped_comes_back_and_lets_no_old_owner_in() {
    let database = Database::lived_in().await;
    let store = database.open().await;
    let old = taken(&store, &job("queued"), "node-a", at(64)).await.claim;
    database.raw().await.batch_execute("DELETE FROM agenda").await.unwrap();
    // Beside the store that is open: it is another node's to be rebuilt too.
    rebuilt(&database).await.unwrap();
    assert_eq!(database.verified().await.differences, []);
    let mut change = next_change(&store, &job("queued"), vec![dispatched(1)], at(101)).await;
    change.fence = Some(old.fence());
    assert_eq!(store.commit(commit(vec![change], at(101))).await, Err(StoreError::Fenced));
    let ready = store.take_ready(LANE.into(), take("node-b", at(101), 10)).await.unwrap();
    assert_eq!(ids(&ready), ["work-queued"]);
    assert!(ready[0].claim.claim_version > old.claim_version);
}

#[tokio::test]
async fn export_gives_every_fact_and_every_claim_in_order() {
    let database = Database::lived_in().await;
    let (store, ledger) = (database.open().await, database.ledger().await);
    let facts = ledger.facts_after(0).await.unwrap();
    let stored = store.facts_after(0, 1_000).await.unwrap();
    assert_eq!(facts.len(), 19);
    for (line, fact) in facts.iter().zip(&stored) {
        assert_eq!(
            (line.position, &*line.stream, line.version),
            (fact.position, fact.stream.as_str(), fact.version)
        );
        assert_eq!(line.checksum, fact.checksum);
    }
    assert_eq!(ledger.facts_after(facts[17].position).await.unwrap().len(), 1);
    let claims = ledger.claims_after("").await.unwrap();
    let named: Vec<&str> = claims.iter().map(|line| line.id.as_str()).collect();
    assert_eq!(named, ["op-press", "work-done", "work-lost", "work-outside", "work-running"]);
}

#[tokio::test]
async fn damaged_or_missing_body_of_a_database_is_told() {
    let input = body_ref(BodyName::Input, b"queued");
    let place = "WHERE record_id = 'work-queued'";
    for statement in [
        format!("UPDATE bodies SET bytes = 'queuee' {place}"),
        format!("UPDATE bodies SET sha256 = set_byte(sha256, 0, (get_byte(sha256, 0) + 1) % 256) {place}"),
        format!("UPDATE bodies SET record_id = 'work-queuee' {place}"),
        format!("DELETE FROM bodies {place}"),
    ] {
        let database = Database::lived_in().await;
        database.tamper(&statement, 1).await;
        let store = database.open().await;
        let told = store.body(&job("queued"), input).await.unwrap_err();
        assert_eq!(told.code(), "body_damaged", "{statement}: {told}");
        // Nor does a worker get it with the job that it takes.
        let ready = store.take_ready(LANE.into(), take("node-b", at(101), 10)).await.unwrap();
        assert_eq!(ids(&ready), ["work-queued"]);
        let at_hand = store.remembered(&job("queued")).map(|remembered| remembered.bodies);
        assert!(at_hand.unwrap_or_default().is_empty(), "{statement}");
    }
}
