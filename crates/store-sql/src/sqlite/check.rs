//! Whether a commit fits what is there: versions, fences and keys, read before anything is written.

use domain::RecordId;
use rusqlite::{Connection, OptionalExtension};
use store::{AgendaRow, Change, Committed, Head, StoreError};

use super::keys;
use crate::dialect::Sql;
use crate::prepare::Prepared;
use crate::rows::{agenda_columns, read_agenda, signed, unsigned};

/// A commit that may be answered with success.
pub(crate) enum Checked {
    /// It fits: the agenda rows as they are, one per change, none for new records.
    Fits(Vec<Option<AgendaRow>>),
    /// It is there already.
    Repeated(Committed),
}

/// Reads what the commit stands on. The outer error is the database's, the inner one the answer.
pub(crate) fn check(
    connection: &Connection,
    prepared: &Prepared,
) -> rusqlite::Result<Result<Checked, StoreError>> {
    let mut rows = Vec::with_capacity(prepared.commit.changes.len());
    for change in &prepared.commit.changes {
        let row = agenda_row(connection, &change.id)?;
        // The checksum too: a record that was retired and made anew may stand at the same version.
        if row.as_ref().map_or(Head::default(), |row| row.head) != change.expected {
            let repeated = repeated(connection, &prepared.commit.changes)?;
            return Ok(repeated.map(Checked::Repeated).ok_or(StoreError::Conflict));
        }
        rows.push(row);
    }
    for (change, row) in prepared.commit.changes.iter().zip(&rows) {
        if let Some(fence) = &change.fence {
            let admitted = row.as_ref().is_some_and(|row| row.admit(fence).is_ok());
            if !admitted {
                return Ok(Err(StoreError::Fenced));
            }
        }
    }
    for key in &prepared.commit.keys {
        if let Some(kept) = keys::kept_key(connection, &key.key)? {
            return Ok(Err(StoreError::KeyTaken(Box::new(kept))));
        }
    }
    Ok(Ok(Checked::Fits(rows)))
}

static AGENDA_ROW: Sql = Sql::new(concat!("SELECT ", agenda_columns!(), " FROM agenda WHERE record_id = $1"));

pub(crate) fn agenda_row(connection: &Connection, id: &RecordId) -> rusqlite::Result<Option<AgendaRow>> {
    connection
        .prepare_cached(AGENDA_ROW.sqlite())?
        .query_row([id.as_str()], |row| read_agenda(row, 0))
        .optional()
}

static FACT_ID: Sql = Sql::new("SELECT fact_id, position FROM facts WHERE stream = $1 AND version = $2");

/// A commit whose facts are there already, under its own ids, is done.
fn repeated(connection: &Connection, changes: &[Change]) -> rusqlite::Result<Option<Committed>> {
    let mut position = 0;
    let mut statement = connection.prepare_cached(FACT_ID.sqlite())?;
    for change in changes {
        for (version, fact) in (change.expected.version + 1..).zip(&change.facts) {
            let found = statement
                .query_row((change.id.as_str(), signed(version)), |row| {
                    Ok((row.get::<_, [u8; 16]>(0)?, unsigned(row, 1)?))
                })
                .optional()?;
            match found {
                Some((id, found_at)) if id == fact.id.0 => position = found_at,
                Some(_) | None => return Ok(None),
            }
        }
    }
    Ok((position > 0).then_some(Committed { position }))
}
