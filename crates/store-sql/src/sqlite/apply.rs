//! Writes a commit that fits: facts, view, agenda, bodies, keys, asks, plugin states, by row statements.

use std::sync::Arc;

use domain::{Record, RecordId, Timestamp};
use rusqlite::{Connection, params};
use store::{AgendaRow, Change, Commit, Committed, Removal};

use super::jumps::Jumps;
use crate::agenda::{INSERT_AGENDA, UPDATE_AGENDA};
use crate::asks;
use crate::database::{Database, Given, at_once, one, unsigned};
use crate::dialect::Sql;
use crate::floor::keep_time;
use crate::keys;
use crate::plugin_state;
use crate::prepare::{ChangeText, Prepared};
use crate::rows::{ViewValues, agenda_values, fact_columns, named_bodies, new_agenda_values, signed};
use crate::views::{
    INSERT_JOB, INSERT_OPERATION, INSERT_RECORD, UPDATE_JOB, UPDATE_OPERATION, UPDATE_RECORD, ViewTable,
};

/// Writes the commit into the open transaction; the agenda rows that it leaves come back.
pub(crate) fn apply(
    connection: &Connection,
    prepared: &Prepared,
    rows: Vec<Option<AgendaRow>>,
    position: &mut u64,
    jumps: &Jumps,
) -> rusqlite::Result<(Committed, Vec<AgendaRow>)> {
    let commit = &prepared.commit;
    let now = jumps.carried(commit.at);
    let mut written = Vec::with_capacity(rows.len());
    let mut wrote_facts = false;
    for ((change, text), row) in commit.changes.iter().zip(&prepared.texts).zip(rows) {
        insert_facts(connection, commit, change, text, position)?;
        wrote_facts |= !text.facts.is_empty();
        let row = match row {
            None => {
                insert_view(connection, &change.record, &change.id, &text.view)?;
                let row = AgendaRow::new(text.head, change.agenda.clone(), now, commit.lease);
                insert_agenda(connection, &change.id, &row)?;
                row
            }
            Some(mut row) => {
                if !text.facts.is_empty() {
                    update_view(connection, &change.record, &change.id, &text.view)?;
                }
                row.commit(text.head, change.agenda.clone(), now, commit.lease);
                update_agenda(connection, &change.id, &row)?;
                row
            }
        };
        written.push(row);
        insert_bodies(connection, change)?;
        remove(connection, change, commit.at, *position)?;
    }
    at_once(keys::insert(connection, &commit.keys, commit.at))?;
    at_once(asks::change(connection, &commit.asks))?;
    at_once(plugin_state::change(connection, &commit.plugin_states))?;
    Ok((Committed { position: if wrote_facts { *position } else { 0 } }, written))
}

static INSERT_FACT: Sql = Sql::new(concat!(
    "INSERT INTO facts (",
    fact_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
));

fn insert_facts(
    connection: &Connection,
    commit: &Commit,
    change: &Change,
    text: &ChangeText,
    position: &mut u64,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(INSERT_FACT.sqlite())?;
    let versions = change.expected.version + 1..;
    for ((new, encoded), version) in change.facts.iter().zip(&text.facts).zip(versions) {
        *position += 1;
        statement.execute(params![
            signed(*position),
            change.id.as_str(),
            signed(version),
            new.id.0,
            encoded.kind,
            commit.at.micros(),
            commit.actor,
            commit.causation_id.as_ref().map(Arc::as_ref),
            commit.correlation_id.as_ref().map(Arc::as_ref),
            encoded.payload,
            encoded.checksum.0,
        ])?;
    }
    Ok(())
}

fn insert_view(connection: &Connection, record: &Record, id: &RecordId, view: &str) -> rusqlite::Result<()> {
    match ViewValues::of(id, record, view) {
        ViewValues::Job(values) => execute(connection, &INSERT_JOB, &values),
        ViewValues::Operation(values) => execute(connection, &INSERT_OPERATION, &values),
        ViewValues::Record(values) => execute(connection, &INSERT_RECORD, &values),
    }
}

fn update_view(connection: &Connection, record: &Record, id: &RecordId, view: &str) -> rusqlite::Result<()> {
    match ViewValues::of(id, record, view) {
        ViewValues::Job(values) => execute(connection, &UPDATE_JOB, &values),
        ViewValues::Operation(values) => execute(connection, &UPDATE_OPERATION, &values),
        ViewValues::Record(values) => execute(connection, &UPDATE_RECORD, &values),
    }
}

fn insert_agenda(connection: &Connection, id: &RecordId, row: &AgendaRow) -> rusqlite::Result<()> {
    execute(connection, &INSERT_AGENDA, &new_agenda_values(id, row))
}

pub(crate) fn update_agenda(connection: &Connection, id: &RecordId, row: &AgendaRow) -> rusqlite::Result<()> {
    execute(connection, &UPDATE_AGENDA, &agenda_values(id, row))
}

fn execute(connection: &Connection, sql: &'static Sql, values: &[Given<'_>]) -> rusqlite::Result<()> {
    at_once(Database::execute(connection, sql, values)).map(|_| ())
}

static INSERT_BODY: Sql = Sql::new(
    "INSERT INTO bodies (record_id, name, sha256, bytes) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
);

fn insert_bodies(connection: &Connection, change: &Change) -> rusqlite::Result<()> {
    if change.bodies.is_empty() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(INSERT_BODY.sqlite())?;
    for new in &change.bodies {
        statement.execute(params![
            change.id.as_str(),
            new.body.name.as_str(),
            new.body.sha256.0,
            &new.bytes[..]
        ])?;
    }
    Ok(())
}

static REMOVE_BODIES: Sql = Sql::new("DELETE FROM bodies WHERE record_id = $1");
static REMOVE_ERRORS: Sql = Sql::new("DELETE FROM bodies WHERE record_id = $1 AND name = 'error'");
static REMOVE_JOB: Sql = Sql::new("DELETE FROM jobs WHERE id = $1");
static REMOVE_OPERATION: Sql = Sql::new("DELETE FROM operations WHERE id = $1");
static REMOVE_RECORD: Sql = Sql::new("DELETE FROM records WHERE id = $1");
static REMOVE_AGENDA: Sql = Sql::new("DELETE FROM agenda WHERE record_id = $1");
static REMOVE_FACTS: Sql = Sql::new("DELETE FROM facts WHERE stream = $1");
static KEEP_POSITION: Sql = Sql::new(
    "INSERT INTO meta (name, value) VALUES ('last_position', $1) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
);

/// Takes away what the change takes away. A position is never given twice, and time does not go back, also when the fact
/// has gone.
fn remove(connection: &Connection, change: &Change, at: Timestamp, position: u64) -> rusqlite::Result<()> {
    let statements: &[&Sql] = match change.removal {
        Removal::Nothing => return Ok(()),
        Removal::Bodies => &[&REMOVE_BODIES],
        Removal::Errors => &[&REMOVE_ERRORS],
        Removal::OlderFacts => return remove_older_facts(connection, change),
        Removal::Record => {
            let view = match ViewTable::of(change.id.kind()) {
                ViewTable::Jobs => &REMOVE_JOB,
                ViewTable::Operations => &REMOVE_OPERATION,
                ViewTable::Records => &REMOVE_RECORD,
            };
            &[&REMOVE_BODIES, view, &REMOVE_AGENDA, &REMOVE_FACTS]
        }
    };
    // What somebody wants deleted is overwritten in the file, and not only left out of it.
    let overwrites = matches!(change.removal, Removal::Bodies | Removal::Errors);
    if overwrites {
        connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
    }
    for statement in statements {
        connection.prepare_cached(statement.sqlite())?.execute([change.id.as_str()])?;
    }
    if overwrites {
        connection.query_row("PRAGMA secure_delete = OFF", [], |_| Ok(()))?;
    }
    if change.removal == Removal::Record {
        at_once(keys::record_goes(connection, &change.id, at))?;
        connection.prepare_cached(KEEP_POSITION.sqlite())?.execute([signed(position)])?;
        at_once(keep_time(connection, at))?;
    }
    Ok(())
}

static REMOVE_OLDER_FACTS: Sql = Sql::new("DELETE FROM facts WHERE stream = $1 AND version < $2");
static REMOVE_OTHER_BODIES: Sql = Sql::new(
    "DELETE FROM bodies WHERE record_id = $1 \
     AND instr($2, name || ' ' || lower(hex(sha256)) || ';') = 0",
);

/// What is before a checkpoint goes, with the bodies that only those facts named.
fn remove_older_facts(connection: &Connection, change: &Change) -> rusqlite::Result<()> {
    let (id, version) = (change.id.as_str(), change.checkpoint_version().unwrap_or_default());
    connection.prepare_cached(REMOVE_OLDER_FACTS.sqlite())?.execute(params![id, signed(version)])?;
    connection
        .prepare_cached(REMOVE_OTHER_BODIES.sqlite())?
        .execute(params![id, named_bodies(&change.record)])?;
    Ok(())
}

static LAST_POSITION: Sql = Sql::new(
    "SELECT COALESCE(max(given.position), 0) FROM (SELECT max(position) AS position FROM facts \
     UNION ALL SELECT value FROM meta WHERE name = 'last_position') AS given",
);

/// The highest position ever given.
pub(crate) fn last_position(connection: &Connection) -> rusqlite::Result<u64> {
    let given = at_once(one(connection, &LAST_POSITION, &[], |row| unsigned(row, 0)))?;
    Ok(given.unwrap_or_default())
}
