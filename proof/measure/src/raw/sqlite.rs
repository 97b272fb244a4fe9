//! Raw SQLite: one connection, one prepared statement per table and kind of write; the log is moved beside it, as in our store.

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, params_from_iter};
use store_sql::{SCHEMA_VERSION, migrate_to};

use super::pattern::{AGENDA_CHANGES, Sink, VIEWS, state_column};
use crate::books::Row;

/// Rows that are written one by one.
pub struct Rows<'a> {
    connection: &'a Connection,
    inserts: Vec<(&'static str, String)>,
    views: Vec<(&'static str, String)>,
    agenda: String,
}

impl<'a> Rows<'a> {
    pub fn new(connection: &'a Connection) -> Result<Self> {
        let mut inserts = Vec::new();
        for table in VIEWS.into_iter().chain(["agenda", "bodies", "facts"]) {
            let columns = connection.prepare(&format!("SELECT * FROM {table}"))?.column_count();
            let places: Vec<String> = (1..=columns).map(|place| format!("?{place}")).collect();
            inserts.push((table, format!("INSERT INTO {table} VALUES ({})", places.join(", "))));
        }
        let views = VIEWS.map(|table| {
            let state = state_column(table);
            (table, format!("UPDATE {table} SET {state} = ?2, updated_at = ?3, view = ?4 WHERE id = ?1"))
        });
        let set: Vec<String> = AGENDA_CHANGES[1..]
            .iter()
            .zip(2..)
            .map(|(column, place)| format!("{column} = ?{place}"))
            .collect();
        let agenda = format!("UPDATE agenda SET {} WHERE record_id = ?1", set.join(", "));
        connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(Self { connection, inserts, views: views.into(), agenda })
    }

    fn run(&self, statement: &str, row: Row) -> Result<()> {
        self.connection.prepare_cached(statement)?.execute(params_from_iter(row))?;
        Ok(())
    }
}

fn of<'a>(statements: &'a [(&str, String)], table: &str) -> Result<&'a str> {
    let found = statements.iter().find(|(name, _)| *name == table);
    Ok(&found.with_context(|| format!("there is no table {table}"))?.1)
}

impl Sink for Rows<'_> {
    fn insert(&mut self, table: &'static str, row: Row) -> Result<()> {
        self.run(of(&self.inserts, table)?, row)
    }

    fn view(&mut self, table: &'static str, row: Row) -> Result<()> {
        self.run(of(&self.views, table)?, row)
    }

    fn agenda(&mut self, row: Row) -> Result<()> {
        self.run(&self.agenda, row)
    }

    fn claim(&mut self, row: Row) -> Result<()> {
        self.run(&self.agenda, row)
    }

    fn commit(&mut self) -> Result<()> {
        self.connection.execute_batch("COMMIT")?;
        Ok(self.connection.execute_batch("BEGIN IMMEDIATE")?)
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // Nothing is in it: the last step was committed.
        let _ = self.connection.execute_batch("ROLLBACK");
    }
}

/// As in our store, the log is moved by another connection, at the same length.
pub struct Checkpointer(std::thread::JoinHandle<()>);

impl Checkpointer {
    const PAGES: i32 = 2_048;

    /// Beside a connection to this file; it ends with that connection.
    pub fn beside(connection: &mut Connection, path: &Path) -> Result<Self> {
        let (grown, told) = std::sync::mpsc::sync_channel(1);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            if pages >= Self::PAGES {
                let _ = grown.try_send(());
            }
            Ok(())
        }))?;
        let other = Connection::open(path)?;
        Ok(Self(std::thread::spawn(move || {
            while told.recv().is_ok() {
                let pass = "SELECT count(*) FROM meta; PRAGMA wal_checkpoint(PASSIVE)";
                let _ = other.execute_batch(pass);
            }
        })))
    }

    /// Waits for its end, once the connection is gone, and takes the log away. Two connections that close at the same time may both
    /// leave it to the other; our store refuses a file with a log that it has not written.
    pub fn join(self, path: &Path) -> Result<()> {
        let _ = self.0.join();
        let last = Connection::open(path)?;
        last.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(last.close().map_err(|(_, error)| error)?)
    }
}

/// A connection to a file, with the settings and the tables of our store.
pub fn open(path: &Path) -> Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    migrate_to(&mut connection, SCHEMA_VERSION)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
