//! The durable state of a service: one SQLite file with what it accepted, how each of these stands, and how it got there.
//!
//! A record is written before it is acknowledged, changes its status only by compare-and-set, and every change leaves a line
//! in the history. Knows nothing of what a record means: the owner keeps that in `body`, which no answer shows by itself.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use serde_json::Value;
use thiserror::Error;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS records (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        key TEXT UNIQUE,
        digest TEXT NOT NULL,
        status TEXT NOT NULL,
        body TEXT NOT NULL,
        accepted_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS records_by_status ON records (status, position);
    CREATE TABLE IF NOT EXISTS history (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL REFERENCES records (id),
        from_status TEXT NOT NULL,
        to_status TEXT NOT NULL,
        at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS history_by_id ON history (id, position);";

const COLUMNS: &str = "id, key, digest, status, body, accepted_at, updated_at";

/// The file, held open.
#[derive(Debug)]
pub struct State {
    connection: Mutex<Connection>,
}

/// One thing that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Ours.
    pub id: String,
    /// The caller's, if it gave one.
    pub key: Option<String>,
    /// Of the request, to tell a repetition from a conflict.
    pub digest: String,
    /// Where it is; the words are the owner's.
    pub status: String,
    /// Whatever the owner keeps with it.
    pub body: Value,
    /// Microseconds since 1970.
    pub accepted_at: i64,
    /// Microseconds since 1970.
    pub updated_at: i64,
}

/// What became of an acceptance.
#[derive(Clone, Debug, PartialEq)]
pub enum Accepted {
    /// It is written.
    New(Record),
    /// The same request with the same key was written before.
    Known(Record),
    /// The key belongs to another request.
    Conflict,
}

/// One change of status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub from: String,
    /// After.
    pub to: String,
    /// Microseconds since 1970.
    pub at: i64,
}

/// The file cannot be used.
#[derive(Debug, Error)]
pub enum StateError {
    /// `SQLite` said no.
    #[error("the state cannot be read or written: {0}")]
    Database(#[from] rusqlite::Error),
    /// A body that is no JSON: somebody else wrote it.
    #[error("the state holds a body that is not JSON: {0}")]
    Body(#[from] serde_json::Error),
}

impl State {
    /// Opens the file, or makes it; without one the state ends with the service.
    pub fn open(path: Option<&Path>) -> Result<Self, StateError> {
        let connection = match path {
            Some(path) => Connection::open(path)?,
            None => Connection::open_in_memory()?,
        };
        connection.pragma_update(None, "journal_mode", "wal")?;
        // Accepted means that it survives the machine.
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// Writes it, unless its key or its id is known already.
    pub fn accept(&self, record: Record) -> Result<Accepted, StateError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let statement = format!("SELECT {COLUMNS} FROM records WHERE id = ?1 OR key = ?2");
        let known = transaction.query_row(&statement, params![record.id, record.key], columns).optional()?;
        if let Some(known) = known {
            let known = whole(known)?;
            return Ok(if known.digest == record.digest {
                Accepted::Known(known)
            } else {
                Accepted::Conflict
            });
        }
        transaction.execute(
            "INSERT INTO records (id, key, digest, status, body, accepted_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                record.id,
                record.key,
                record.digest,
                record.status,
                record.body.to_string(),
                record.accepted_at,
                record.updated_at
            ],
        )?;
        transaction.commit()?;
        Ok(Accepted::New(record))
    }

    /// The record with that id.
    pub fn by_id(&self, id: &str) -> Result<Option<Record>, StateError> {
        let statement = format!("SELECT {COLUMNS} FROM records WHERE id = ?1");
        self.connection().query_row(&statement, [id], columns).optional()?.map(whole).transpose()
    }

    /// Those in that status, oldest first, at most `limit`.
    pub fn in_status(&self, status: &str, limit: usize) -> Result<Vec<Record>, StateError> {
        let statement = format!("SELECT {COLUMNS} FROM records WHERE status = ?1 ORDER BY position LIMIT ?2");
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let connection = self.connection();
        let mut prepared = connection.prepare(&statement)?;
        let rows = prepared.query_map(params![status, limit], columns)?;
        rows.map(|row| whole(row?)).collect()
    }

    /// All of them, oldest first.
    pub fn all(&self) -> Result<Vec<Record>, StateError> {
        let connection = self.connection();
        let mut prepared = connection.prepare(&format!("SELECT {COLUMNS} FROM records ORDER BY position"))?;
        let rows = prepared.query_map([], columns)?;
        rows.map(|row| whole(row?)).collect()
    }

    /// From one status to another, with a new body; false when it was not in `from` any more.
    pub fn change(&self, id: &str, from: &str, to: &str, body: &Value, now: i64) -> Result<bool, StateError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let changed = transaction.execute(
            "UPDATE records SET status = ?3, body = ?4, updated_at = ?5 WHERE id = ?1 AND status = ?2",
            params![id, from, to, body.to_string(), now],
        )?;
        if changed == 0 {
            return Ok(false);
        }
        transaction.execute(
            "INSERT INTO history (id, from_status, to_status, at) VALUES (?1, ?2, ?3, ?4)",
            params![id, from, to, now],
        )?;
        transaction.commit()?;
        Ok(true)
    }

    /// How it came to where it is.
    pub fn history(&self, id: &str) -> Result<Vec<Change>, StateError> {
        let connection = self.connection();
        let mut prepared = connection
            .prepare("SELECT from_status, to_status, at FROM history WHERE id = ?1 ORDER BY position")?;
        let rows = prepared
            .query_map([id], |row| Ok(Change { from: row.get(0)?, to: row.get(1)?, at: row.get(2)? }))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A transaction that was dropped half done is rolled back: nothing is broken by a panic elsewhere.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn columns(row: &Row<'_>) -> rusqlite::Result<(Record, String)> {
    let record = Record {
        id: row.get(0)?,
        key: row.get(1)?,
        digest: row.get(2)?,
        status: row.get(3)?,
        body: Value::Null,
        accepted_at: row.get(5)?,
        updated_at: row.get(6)?,
    };
    Ok((record, row.get(4)?))
}

fn whole((record, body): (Record, String)) -> Result<Record, StateError> {
    Ok(Record { body: serde_json::from_str(&body)?, ..record })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(id: &str, key: Option<&str>, digest: &str) -> Record {
        Record {
            id: id.to_owned(),
            key: key.map(str::to_owned),
            digest: digest.to_owned(),
            status: "accepted".to_owned(),
            body: json!({"n": 1}),
            accepted_at: 10,
            updated_at: 10,
        }
    }

    #[test]
    fn a_key_is_accepted_once_and_another_request_under_it_is_a_conflict() {
        let state = State::open(None).unwrap();
        assert!(matches!(state.accept(record("a", Some("k"), "d")).unwrap(), Accepted::New(_)));
        let Accepted::Known(known) = state.accept(record("b", Some("k"), "d")).unwrap() else {
            panic!("the key is known")
        };
        assert_eq!(known.id, "a");
        assert_eq!(state.accept(record("c", Some("k"), "e")).unwrap(), Accepted::Conflict);
        assert_eq!(state.all().unwrap().len(), 1);
    }

    #[test]
    fn a_change_from_a_status_that_is_over_changes_nothing_and_leaves_no_history() {
        let state = State::open(None).unwrap();
        state.accept(record("a", None, "d")).unwrap();
        assert!(state.change("a", "accepted", "running", &json!({}), 11).unwrap());
        assert!(!state.change("a", "accepted", "failed", &json!({}), 12).unwrap());
        assert_eq!(state.by_id("a").unwrap().unwrap().status, "running");
        let change = Change { from: "accepted".to_owned(), to: "running".to_owned(), at: 11 };
        assert_eq!(state.history("a").unwrap(), [change]);
    }

    #[test]
    fn what_was_accepted_is_there_when_the_file_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.sqlite");
        State::open(Some(&path)).unwrap().accept(record("a", Some("k"), "d")).unwrap();
        assert_eq!(State::open(Some(&path)).unwrap().by_id("a").unwrap(), Some(record("a", Some("k"), "d")));
    }
}
