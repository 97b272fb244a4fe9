//! The ledger on the server: the database itself refuses to change it.

use domain::Fact;
use domain::job::{JobFact, JobStateName};
use domain::operation::OperationStatus;
use store::{Removal, Store};

use super::database::Database;
use crate::given::*;

// conforms: O105
#[tokio::test]
async fn fact_can_be_neither_changed_nor_deleted() {
    let database = Database::lived_in().await;
    let raw = database.raw().await;
    let before = database.rows("facts").await;
    let columns = [
        "position = position + 1000",
        "stream = 'work-other'",
        "version = version + 1000",
        "at = 0",
        "payload = '{}'",
    ];
    let updates = columns.map(|column| format!("UPDATE facts SET {column}"));
    let others = [
        "DELETE FROM facts".to_owned(),
        "DELETE FROM facts WHERE stream = 'work-done'".to_owned(),
        "DELETE FROM facts WHERE position = (SELECT max(position) FROM facts)".to_owned(),
        "TRUNCATE facts".to_owned(),
    ];
    for statement in updates.iter().chain(&others) {
        let refused = raw.batch_execute(statement).await.unwrap_err();
        assert_eq!(refused.as_db_error().unwrap().message(), "facts are append-only", "{statement}");
    }
    assert_eq!(database.rows("facts").await, before);
}

#[tokio::test]
async fn facts_go_with_their_retirement_and_their_positions_are_not_given_again() {
    let database = Database::lived_in().await;
    let before = database.rows("facts").await;
    let mut last = 0;
    for round in 0..3 {
        let store = database.open().await;
        let made =
            write(&store, &job("short"), vec![created(), dispatched(1), completed()], at(70 + round)).await;
        assert!(made.position > last, "{} after {last}", made.position);
        let mut retiring =
            next_change(&store, &job("short"), vec![Fact::Job(JobFact::Retired)], at(71 + round)).await;
        retiring.removal = Removal::Record;
        last = store.commit(commit(vec![retiring], at(71 + round))).await.unwrap().position;
        store.close().await;
        assert_eq!(database.rows("facts").await, before);
    }
    for (table, column) in [("jobs", "id"), ("agenda", "record_id"), ("bodies", "record_id")] {
        let count = format!("SELECT count(*) FROM {table} WHERE {column} = 'work-short'");
        let count: i64 = database.raw().await.query_one(&count, &[]).await.unwrap().get(0);
        assert_eq!(count, 0, "{table}");
    }
}

#[tokio::test]
async fn stream_of_any_kind_goes_after_a_fact_called_retired_and_no_other() {
    let database = Database::lived_in().await;
    let raw = database.raw().await;
    for (number, (kind, goes)) in [
        ("toy.retired/1", true),
        ("toy.retired/12", true),
        ("toy.made/1", false),
        ("toy.unretired/1", false),
        ("toy.retired", false),
        ("toy.retired/", false),
        ("retired/1", false),
        ("TOY.RETIRED/1", false),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = format!("toy-{number}");
        let insert = "INSERT INTO facts (position, stream, version, fact_id, kind, at, actor, payload, checksum) \
                      VALUES (nextval('fact_positions'), $1, 1, '\\x00', $2, 0, 'tester', '{}', '\\x00')";
        raw.execute(insert, &[&stream, &kind]).await.unwrap();
        let gone = raw.execute("DELETE FROM facts WHERE stream = $1", &[&stream]).await;
        assert_eq!(gone.is_ok(), goes, "{kind}");
    }
}

// conforms: L46 L73
#[tokio::test]
async fn state_of_a_job_and_status_of_an_operation_are_held_by_the_database() {
    let database = Database::lived_in().await;
    let raw = database.raw().await;
    for state in JobStateName::ALL {
        raw.execute("UPDATE jobs SET state = $1", &[&state.as_str()]).await.unwrap();
    }
    for status in OperationStatus::ALL {
        raw.execute("UPDATE operations SET status = $1", &[&status.as_str()]).await.unwrap();
    }
    for unheard_of in ["", "asleep", "Queued", "done"] {
        for (table, column) in [("jobs", "state"), ("operations", "status")] {
            let refused = raw.execute(&format!("UPDATE {table} SET {column} = $1"), &[&unheard_of]).await;
            let code = refused.unwrap_err().code().cloned();
            assert_eq!(
                code,
                Some(tokio_postgres::error::SqlState::CHECK_VIOLATION),
                "{table} {unheard_of:?}"
            );
        }
    }
    // The kind of a fact is held by nothing but the code that reads it.
    let unheard_of = "INSERT INTO facts (position, stream, version, fact_id, kind, at, actor, payload, checksum) \
                      SELECT position + 1000, 'work-x', 1, '\\x00'::bytea, 'unheard.of/9', at, actor, payload, checksum \
                      FROM facts ORDER BY position DESC LIMIT 1";
    assert_eq!(raw.execute(unheard_of, &[]).await.unwrap(), 1);
}
