//! Whether a commit fits what is there: versions, fences, plugin states and keys, read before anything is written.

use domain::RecordId;
use rusqlite::Connection;
use store::{AgendaRow, Change, Committed, StoreError};

use crate::agenda::AGENDA_ROW;
use crate::checks::{Doubt, fits, is_repeated};
use crate::database::{at_once, digest, one, unsigned};
use crate::dialect::Sql;
use crate::keys;
use crate::plugin_state;
use crate::prepare::Prepared;
use crate::rows::{read_agenda, signed};

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
        rows.push(agenda_row(connection, &change.id)?);
    }
    match fits(&prepared.commit.changes, &rows) {
        Ok(()) => {}
        Err(Doubt::OtherHead) => {
            let repeated = repeated(connection, &prepared.commit.changes)?;
            return Ok(repeated.map(Checked::Repeated).ok_or(StoreError::Conflict));
        }
        Err(Doubt::Fenced) => return Ok(Err(StoreError::Fenced)),
    }
    let states = &prepared.commit.plugin_states;
    if !plugin_state::fit(states, &at_once(plugin_state::versions(connection, states))?) {
        return Ok(Err(StoreError::Conflict));
    }
    for key in &prepared.commit.keys {
        if let Some(kept) = at_once(keys::kept_key(connection, &key.key))? {
            return Ok(Err(StoreError::KeyTaken(Box::new(kept))));
        }
    }
    Ok(Ok(Checked::Fits(rows)))
}

pub(crate) fn agenda_row(connection: &Connection, id: &RecordId) -> rusqlite::Result<Option<AgendaRow>> {
    at_once(one(connection, &AGENDA_ROW, &[id.as_str().into()], |row| read_agenda(row, 0)))
}

static FACT_ID: Sql = Sql::new("SELECT fact_id, position FROM facts WHERE stream = $1 AND version = $2");

fn repeated(connection: &Connection, changes: &[Change]) -> rusqlite::Result<Option<Committed>> {
    is_repeated(changes, |stream, version| {
        let place = [stream.as_str().into(), signed(version).into()];
        at_once(one(connection, &FACT_ID, &place, |row| Ok((digest(row, 0)?, unsigned(row, 1)?))))
    })
}
