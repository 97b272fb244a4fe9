//! The ledger on the file: the database itself refuses to change it.

use domain::Fact;
use domain::job::{JobFact, JobStateName};
use domain::operation::OperationStatus;
use rusqlite::{Connection, ErrorCode};
use store::{Removal, Store};

use super::file::File;
use crate::given::*;

fn facts(raw: &Connection) -> Vec<(i64, String, String)> {
    raw.prepare("SELECT position, kind, hex(checksum) FROM facts ORDER BY position")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

// conforms: O105
#[tokio::test]
async fn fact_can_be_neither_changed_nor_deleted() {
    let file = File::lived_in().await;
    let raw = file.raw();
    let before = facts(&raw);
    let columns = [
        "position = position + 1000",
        "stream = 'work-other'",
        "version = version + 1000",
        "fact_id = x'00'",
        "kind = 'job.delivered/1'",
        "at = 0",
        "actor = 'nobody'",
        "causation_id = 'x'",
        "correlation_id = 'x'",
        "payload = '{}'",
        "checksum = x'00'",
    ];
    let updates = columns.map(|column| format!("UPDATE facts SET {column}"));
    let deletes = [
        "DELETE FROM facts".to_owned(),
        "DELETE FROM facts WHERE stream = 'work-done'".to_owned(),
        "DELETE FROM facts WHERE position = (SELECT max(position) FROM facts)".to_owned(),
    ];
    for statement in updates.iter().chain(&deletes) {
        let refused = raw.execute(statement, []).unwrap_err().to_string();
        assert_eq!(refused, "facts are append-only", "{statement}");
    }
    assert_eq!(facts(&raw), before);
}

#[tokio::test]
async fn facts_go_with_their_retirement_and_only_those_of_their_stream() {
    let file = File::lived_in().await;
    let store = file.open();
    let before = facts(&file.raw());
    write(&store, &job("short"), vec![created(), dispatched(1), completed()], at(70)).await;
    let mut retiring = next_change(&store, &job("short"), vec![Fact::Job(JobFact::Retired)], at(71)).await;
    retiring.removal = Removal::Record;
    store.commit(commit(vec![retiring], at(71))).await.unwrap();
    assert_eq!(facts(&file.raw()), before);
    let rows = |table: &str, column: &str| {
        let count = format!("SELECT count(*) FROM {table} WHERE {column} = 'work-short'");
        file.raw().query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    for (table, column) in [("jobs", "id"), ("agenda", "record_id"), ("bodies", "record_id")] {
        assert_eq!(rows(table, column), 0, "{table}");
    }
}

#[tokio::test]
async fn stream_of_any_kind_goes_after_a_fact_called_retired_and_no_other() {
    let file = File::lived_in().await;
    let raw = file.raw();
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
        raw.execute(
            "INSERT INTO facts (position, stream, version, fact_id, kind, at, actor, payload, checksum) \
             SELECT max(position) + 1, ?1, 1, x'00', ?2, 0, 'tester', '{}', x'00' FROM facts",
            [stream.as_str(), kind],
        )
        .unwrap();
        let gone = raw.execute("DELETE FROM facts WHERE stream = ?1", [&stream]);
        assert_eq!(gone.is_ok(), goes, "{kind}");
    }
}

#[tokio::test]
async fn position_of_a_retired_fact_is_not_given_again_after_reopening() {
    let file = File::missing();
    let mut last = 0;
    for round in 0..3 {
        let store = file.open();
        let made = write(&store, &job("a"), vec![created(), dispatched(1), completed()], at(round)).await;
        assert_eq!(made.position, last + 3, "after {last}");
        let mut retiring = next_change(&store, &job("a"), vec![Fact::Job(JobFact::Retired)], at(round)).await;
        retiring.removal = Removal::Record;
        last = store.commit(commit(vec![retiring], at(round))).await.unwrap().position;
        assert!(facts(&file.raw()).is_empty());
    }
}

// conforms: L46
#[tokio::test]
async fn state_of_a_job_and_status_of_an_operation_are_held_by_the_database() {
    let file = File::lived_in().await;
    let plain = Connection::open(file.path()).unwrap();
    for state in JobStateName::ALL {
        plain.execute("UPDATE jobs SET state = ?1", [state.as_str()]).unwrap();
    }
    for status in OperationStatus::ALL {
        plain.execute("UPDATE operations SET status = ?1", [status.as_str()]).unwrap();
    }
    for unheard_of in ["", "asleep", "Queued", "done"] {
        for (table, column) in [("jobs", "state"), ("operations", "status")] {
            let refused = plain.execute(&format!("UPDATE {table} SET {column} = ?1"), [unheard_of]);
            let code = refused.unwrap_err().sqlite_error_code();
            assert_eq!(code, Some(ErrorCode::ConstraintViolation), "{table} {unheard_of:?}");
        }
    }
}

// conforms: L73
#[tokio::test]
async fn kind_of_a_fact_is_held_by_no_constraint_but_by_the_code_that_reads_it() {
    let file = File::lived_in().await;
    let plain = Connection::open(file.path()).unwrap();
    let unheard_of = "INSERT INTO facts SELECT max(position) + 1, 'work-x', 1, x'00', 'unheard.of/9', at, actor, causation_id, \
                      correlation_id, payload, checksum FROM facts";
    assert_eq!(plain.execute(unheard_of, []), Ok(1));
    assert!(store::decode_fact("unheard.of/9", "{}").is_err());
}
