//! Checkpoints on the server: the database lets go what is before one and nothing else; verify, rebuild, export, backup and restore begin there.

use std::path::Path;
use std::sync::Arc;

use domain::Record;
use domain::attention::Retention;
use store::{Store, StoredFact};
use store_sql::{
    Contents, Draft, Existing, SealedBackup, SqliteOptions, SqliteStore, Stage, migrate_postgres_to,
    open_for_reading, verify,
};
use tempfile::TempDir;

use super::database::Database;
use crate::given::*;

/// A store that was used for a while, and the operation in it has a checkpoint at version 6.
async fn checkpointed() -> Database {
    let database = Database::lived_in().await;
    let store = database.open().await;
    assert_eq!(checkpoint(&store, &operation("press"), 3, 70).await, 6);
    store.close().await;
    database
}

#[tokio::test]
async fn verify_rebuild_and_export_begin_at_a_checkpoint() {
    let database = checkpointed().await;
    assert_eq!(database.verified().await.differences, []);
    let before = database.rows("operations").await;
    for wipe in ["DELETE FROM operations", "UPDATE operations SET view = '', updated_at = 0"] {
        database.raw().await.batch_execute(wipe).await.unwrap();
        let done = database.ledger().await.rebuild(Retention::DEFAULT, at(100)).await.unwrap();
        assert_eq!((done.records, done.facts), (7, 19));
        assert_eq!(database.rows("operations").await, before, "{wipe}");
        assert_eq!(database.verified().await.differences, []);
    }
    let lines = database.ledger().await.facts_after(0).await.unwrap();
    let versions: Vec<u64> =
        lines.iter().filter(|line| line.stream == "op-press").map(|line| line.version).collect();
    assert_eq!(versions, [6, 7]);
}

#[tokio::test]
async fn damage_at_a_checkpoint_is_found_and_named() {
    let checkpoint = "kind = 'operation.checkpointed/1'";
    for (statement, what) in [
        ("UPDATE facts SET payload = replace(payload, '\"polls\":4', '\"polls\":5') WHERE", "checksum"),
        (
            "UPDATE facts SET payload = regexp_replace(payload, '\"previous\":\"........', '\"previous\":\"00000000') WHERE",
            "checksum",
        ),
        ("UPDATE facts SET payload = '{}' WHERE", "fact 1 is missing"),
        ("DELETE FROM facts WHERE", "fact 1 is missing"),
    ] {
        let database = checkpointed().await;
        database.tamper(&format!("{statement} {checkpoint}"), 1).await;
        let verified = database.verified().await;
        let found: Vec<String> = verified.differences.iter().map(ToString::to_string).collect();
        assert!(found[0].starts_with("op-press") && found[0].contains(what), "{statement}: {found:?}");
        assert!(found.iter().all(|told| told.starts_with("op-press")), "{statement}: {found:?}");
    }
}

#[tokio::test]
async fn database_lets_go_only_what_is_before_a_checkpoint() {
    let database = checkpointed().await;
    let raw = database.raw().await;
    for (number, (kind, goes)) in [
        ("toy.checkpointed/1", true),
        ("toy.checkpointed/2", false),
        ("toy.checkpointed/10", false),
        ("toy.checkpointed", false),
        ("checkpointed/1", false),
        ("TOY.CHECKPOINTED/1", false),
        ("toy.made/1", false),
    ]
    .into_iter()
    .enumerate()
    {
        for (version, kind) in [(1, "toy.made/1"), (2, "toy.polled/1"), (3, kind), (4, "toy.polled/1")] {
            let insert = format!(
                "INSERT INTO facts (position, stream, version, fact_id, kind, at, actor, payload, checksum) \
                 SELECT max(position) + 1, 'toy-{number}', {version}, '', '{kind}', 0, 'tester', '{{}}', '' FROM facts"
            );
            raw.batch_execute(&insert).await.unwrap();
        }
        let delete = |which| format!("DELETE FROM facts WHERE stream = 'toy-{number}' AND version {which}");
        for kept in ["= 3", "= 4", "> 0", "<= 3"] {
            let refused = raw.execute(&delete(kept), &[]).await.unwrap_err();
            assert_eq!(refused.as_db_error().unwrap().message(), "facts are append-only", "{kind} {kept}");
        }
        assert_eq!(raw.execute(&delete("< 3"), &[]).await.ok(), goes.then_some(2), "{kind}");
    }
}

#[tokio::test]
async fn ledger_with_checkpoints_goes_to_no_older_schema() {
    const BEFORE: i64 = 15;
    let database = checkpointed().await;
    let facts = database.rows("facts").await;
    let refused = migrate_postgres_to(&database.address(), BEFORE).await.unwrap_err().to_string();
    assert!(refused.contains("the ledger has checkpoints"), "{refused}");
    assert_eq!(database.rows("facts").await, facts);
    database.open().await.close().await;
}

/// Whoever watches learns nothing here.
fn unseen(_: Stage, _: u64, _: Option<u64>) {}

/// The ledger, and the operation in it. A restore ends the claims of nodes.
async fn told(store: &dyn Store) -> (Vec<StoredFact>, Arc<Record>) {
    let facts = store.facts_after(0, 1_000).await.unwrap();
    (facts, store.load(&operation("press")).await.unwrap().unwrap().record)
}

/// Restores a backup as a file.
fn restored(backup: &Path, store: &Path) {
    let sealed = SealedBackup::open(backup, &mut unseen).unwrap();
    sealed.restore_to_file(store, &mut unseen).unwrap().finish().unwrap();
    assert_eq!(verify(&open_for_reading(store).unwrap()).unwrap().differences, []);
}

#[tokio::test]
async fn checkpointed_store_is_restored_across_databases() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let first = SqliteStore::open(&SqliteOptions::at(path("first.sqlite"))).unwrap();
    live_in(&first).await;
    checkpoint(&first, &operation("press"), 3, 70).await;
    let before = told(&first).await;
    drop(first);

    let mut draft = Draft::begin(&path("file.backup"), Existing::Kept).unwrap();
    draft.copy_file(&path("first.sqlite"), 0, &mut unseen).unwrap();
    draft.finish(&mut unseen).unwrap();
    let database = Database::missing().await;
    let sealed = SealedBackup::open(&path("file.backup"), &mut unseen).unwrap();
    sealed.restore_to_server(&database.address(), folder.path(), &mut |_| Ok(()), &mut unseen).await.unwrap();
    assert_eq!(database.verified().await.differences, []);
    let store = database.open().await;
    assert_eq!(told(&store).await, before);
    checkpoint(&store, &operation("press"), 2, 80).await;
    let later = told(&store).await;
    store.close().await;

    let mut draft = Draft::begin(&path("server.backup"), Existing::Kept).unwrap();
    draft.copy_server(&database.address(), Contents::Everything, &mut unseen).await.unwrap();
    draft.finish(&mut unseen).unwrap();
    restored(&path("server.backup"), &path("second.sqlite"));
    let second = SqliteStore::open(&SqliteOptions::at(path("second.sqlite"))).unwrap();
    assert_eq!(told(&second).await, later);
    checkpoint(&second, &operation("press"), 2, 90).await;
}
