//! Checkpoints in a file: the database lets go what is before one and nothing else; verify and rebuild begin there.

use domain::attention::Retention;
use rusqlite::types::Value;
use store::{Removal, Store};
use store_sql::{SCHEMA_VERSION, migrate_to, open_for_rebuilding, rebuild};

use super::file::File;
use crate::given::*;
use crate::retirement::retiring;

/// A store that was used for a while, and the operation in it has a checkpoint at version 6.
async fn checkpointed() -> File {
    let file = File::lived_in().await;
    assert_eq!(checkpoint(&file.open(), &operation("press"), 3, 70).await, 6);
    file
}

fn operations(file: &File) -> Vec<Vec<Value>> {
    let raw = file.raw();
    let mut statement = raw.prepare("SELECT * FROM operations ORDER BY id").unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect()).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn verify_and_rebuild_begin_at_a_checkpoint() {
    let file = checkpointed().await;
    assert_eq!(file.verified().differences, []);
    let before = operations(&file);
    for wipe in ["DELETE FROM operations", "UPDATE operations SET view = '{}', status = 'x', updated_at = 0"]
    {
        file.raw().execute_batch(wipe).unwrap();
        let path = file.path();
        let (mut connection, _lock) = open_for_rebuilding(&path).unwrap();
        let done = rebuild(&mut connection, Retention::DEFAULT, at(100)).unwrap();
        assert_eq!((done.records, done.facts), (7, 19));
        drop(connection);
        assert_eq!(operations(&file), before, "{wipe}");
        assert_eq!(file.verified().differences, []);
    }
}

#[tokio::test]
async fn damage_at_a_checkpoint_is_found_and_named() {
    let checkpoint = "kind = 'operation.checkpointed/1'";
    for (statement, what) in [
        ("UPDATE facts SET payload = replace(payload, '\"polls\":4', '\"polls\":5') WHERE", "checksum"),
        (
            "UPDATE facts SET payload = json_set(payload, '$.checkpointed.previous', printf('%032x', 1)) WHERE",
            "checksum",
        ),
        ("UPDATE facts SET payload = '{}' WHERE", "fact 1 is missing"),
        ("UPDATE facts SET kind = 'external_production_polled/1' WHERE", "fact 1 is missing"),
        ("UPDATE facts SET checksum = zeroblob(16) WHERE", "checksum"),
        ("UPDATE facts SET version = 5 WHERE", "checksum"),
        ("DELETE FROM facts WHERE", "fact 1 is missing"),
    ] {
        let file = checkpointed().await;
        file.tamper(&format!("{statement} {checkpoint}"), 1);
        let found: Vec<String> = file.verified().differences.iter().map(ToString::to_string).collect();
        assert!(found[0].starts_with("op-press") && found[0].contains(what), "{statement}: {found:?}");
        assert!(found.iter().all(|told| told.starts_with("op-press")), "{statement}: {found:?}");
    }
}

#[tokio::test]
async fn stream_that_is_cut_without_a_checkpoint_is_found() {
    for (cut, rows) in [("version = 1", 1), ("version < 3", 2)] {
        let file = File::lived_in().await;
        file.tamper(&format!("DELETE FROM facts WHERE stream = 'work-done' AND {cut}"), rows);
        let verified = file.verified();
        let told = verified.differences[0].to_string();
        assert!(told.starts_with("work-done: fact 1 is missing"), "{told}");
        assert!(file.open().facts_of(&job("done"), 0, 10).await.is_err());
    }
}

#[tokio::test]
async fn facts_before_a_checkpoint_may_be_there_and_go_later() {
    let file = File::lived_in().await;
    let (store, id) = (file.open(), operation("press"));
    let mut change = checkpointed_change(&store, &id, vec![polled(at(100))], at(70)).await;
    change.removal = Removal::Nothing;
    store.commit(commit(vec![change], at(70))).await.unwrap();
    drop(store);
    assert_eq!(file.verified().differences, []);
    // As whoever walks sees it when they go behind the walk.
    file.raw().execute("DELETE FROM facts WHERE stream = 'op-press' AND version = 2", []).unwrap();
    assert_eq!(file.verified().differences, []);
    file.raw().execute("DELETE FROM facts WHERE stream = 'op-press' AND version = 1", []).unwrap();
    assert_eq!(file.verified().differences, []);
}

#[tokio::test]
async fn database_lets_go_only_what_is_before_a_checkpoint() {
    let file = checkpointed().await;
    let raw = file.raw();
    for (number, (kind, goes)) in [
        ("toy.checkpointed/1", true),
        ("toy.checkpointed/2", false),
        ("toy.checkpointed/10", false),
        ("toy.uncheckpointed/1", false),
        ("toy.checkpointed", false),
        ("checkpointed/1", false),
        ("TOY.CHECKPOINTED/1", false),
        ("toy.made/1", false),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = format!("toy-{number}");
        for (version, kind) in [(1, "toy.made/1"), (2, "toy.polled/1"), (3, kind), (4, "toy.polled/1")] {
            raw.execute(
                "INSERT INTO facts (position, stream, version, fact_id, kind, at, actor, payload, checksum) \
                 SELECT max(position) + 1, ?1, ?2, x'00', ?3, 0, 'tester', '{}', x'00' FROM facts",
                (stream.as_str(), version, kind),
            )
            .unwrap();
        }
        let delete = |which: &str| {
            raw.execute(&format!("DELETE FROM facts WHERE stream = ?1 AND version {which}"), [&stream])
        };
        for kept in ["= 3", "= 4", "> 0", "<= 3"] {
            assert!(delete(kept).is_err(), "{kind} {kept}");
        }
        assert_eq!(delete("< 3").ok(), goes.then_some(2), "{kind}");
    }
}

#[tokio::test]
async fn ledger_with_checkpoints_goes_to_no_older_schema() {
    const BEFORE: i64 = 15;
    let file = checkpointed().await;
    assert!(migrate_to(&mut file.raw(), BEFORE).is_err());
    let store = file.open();
    write(&store, &operation("press"), vec![resolved()], at(80)).await;
    store.commit(retiring(&store, &operation("press"), 81).await).await.unwrap();
    drop(store);
    migrate_to(&mut file.raw(), BEFORE).unwrap();
    migrate_to(&mut file.raw(), SCHEMA_VERSION).unwrap();
    assert_eq!(file.verified().differences, []);
}
