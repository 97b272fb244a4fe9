//! Writes a commit that fits: facts, view, agenda, bodies, keys, by row statements.

use std::sync::Arc;

use domain::{Record, RecordId, Timestamp};
use rusqlite::{Connection, params};
use store::{AgendaRow, Change, Commit, Committed, JobColumns, OperationColumns, Removal};

use super::keys;
use crate::dialect::Sql;
use crate::floor::keep_time;
use crate::prepare::{ChangeText, Prepared};
use crate::rows::{AgendaValues, agenda_columns, fact_columns, signed, unsigned};

/// Writes the commit into the open transaction; the agenda rows that it leaves come back.
pub(crate) fn apply(
    connection: &Connection,
    prepared: &Prepared,
    rows: Vec<Option<AgendaRow>>,
    position: &mut u64,
) -> rusqlite::Result<(Committed, Vec<AgendaRow>)> {
    let commit = &prepared.commit;
    let mut written = Vec::with_capacity(rows.len());
    let mut wrote_facts = false;
    for ((change, text), row) in commit.changes.iter().zip(&prepared.texts).zip(rows) {
        insert_facts(connection, commit, change, text, position)?;
        wrote_facts |= !text.facts.is_empty();
        let row = match row {
            None => {
                insert_view(connection, &change.record, &change.id, &text.view)?;
                let row = AgendaRow::new(text.head, change.agenda.clone(), commit.at, commit.lease);
                insert_agenda(connection, &change.id, &row)?;
                row
            }
            Some(mut row) => {
                if !text.facts.is_empty() {
                    update_view(connection, &change.record, &change.id, &text.view)?;
                }
                row.commit(text.head, change.agenda.clone(), commit.at, commit.lease);
                update_agenda(connection, &change.id, &row)?;
                row
            }
        };
        written.push(row);
        insert_bodies(connection, change)?;
        remove(connection, change, commit.at, *position)?;
    }
    keys::insert(connection, &commit.keys, commit.at)?;
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

static INSERT_JOB: Sql = Sql::new(
    "INSERT INTO jobs (id, state, updated_at, owner_peer_id, created_by_peer_id, session_id, circle, view) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);
static INSERT_OPERATION: Sql = Sql::new(
    "INSERT INTO operations (id, job_id, status, updated_at, orphaned_at, view) VALUES ($1, $2, $3, $4, $5, $6)",
);

pub(crate) fn insert_view(
    connection: &Connection,
    record: &Record,
    id: &RecordId,
    view: &str,
) -> rusqlite::Result<()> {
    write_view(connection, record, id, view, &INSERT_JOB, &INSERT_OPERATION)
}

// What was asked for never changes, but the statement stays one: a column that may change later is written already.
static UPDATE_JOB: Sql = Sql::new(
    "UPDATE jobs SET state = $2, updated_at = $3, owner_peer_id = $4, created_by_peer_id = $5, session_id = $6, \
     circle = $7, view = $8 WHERE id = $1",
);
static UPDATE_OPERATION: Sql = Sql::new(
    "UPDATE operations SET job_id = $2, status = $3, updated_at = $4, orphaned_at = $5, view = $6 WHERE id = $1",
);

fn update_view(connection: &Connection, record: &Record, id: &RecordId, view: &str) -> rusqlite::Result<()> {
    write_view(connection, record, id, view, &UPDATE_JOB, &UPDATE_OPERATION)
}

fn write_view(
    connection: &Connection,
    record: &Record,
    id: &RecordId,
    view: &str,
    job_statement: &'static Sql,
    operation_statement: &'static Sql,
) -> rusqlite::Result<()> {
    match record {
        Record::Job(job) => {
            let columns = JobColumns::from(&**job);
            connection.prepare_cached(job_statement.sqlite())?.execute(params![
                id.as_str(),
                columns.state.as_str(),
                columns.updated_at.micros(),
                columns.owner_peer_id,
                columns.created_by_peer_id,
                columns.session_id,
                columns.circle,
                view,
            ])?;
        }
        Record::Operation(operation) => {
            let columns = OperationColumns::from(&**operation);
            connection.prepare_cached(operation_statement.sqlite())?.execute(params![
                id.as_str(),
                columns.job_id,
                columns.status.as_str(),
                columns.updated_at.micros(),
                columns.orphaned_at.map(Timestamp::micros),
                view,
            ])?;
        }
    }
    Ok(())
}

static INSERT_AGENDA: Sql = Sql::new(concat!(
    "INSERT INTO agenda (record_id, ",
    agenda_columns!(),
    ", kind) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
));

pub(crate) fn insert_agenda(connection: &Connection, id: &RecordId, row: &AgendaRow) -> rusqlite::Result<()> {
    let values = AgendaValues::of(row);
    let (id_text, kind) = (id.as_str(), id.kind().as_str());
    let [first, rest @ ..] = values.after(&id_text);
    let mut all = vec![first];
    all.extend(rest);
    all.push(&kind);
    connection.prepare_cached(INSERT_AGENDA.sqlite())?.execute(&*all)?;
    Ok(())
}

static UPDATE_AGENDA: Sql = Sql::new(
    "UPDATE agenda SET version = $2, checksum = $3, owner = $4, lease_expires_at = $5, heartbeat_at = $6, \
     claim_version = $7, held = $8, lane = $9, priority = $10, sequence = $11, ready_at = $12, ready = $13, \
     due_at = $14, limit_at = $15 WHERE record_id = $1",
);

pub(crate) fn update_agenda(connection: &Connection, id: &RecordId, row: &AgendaRow) -> rusqlite::Result<()> {
    let values = AgendaValues::of(row);
    connection.prepare_cached(UPDATE_AGENDA.sqlite())?.execute(&values.after(&id.as_str())[..])?;
    Ok(())
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
static REMOVE_JOB: Sql = Sql::new("DELETE FROM jobs WHERE id = $1");
static REMOVE_OPERATION: Sql = Sql::new("DELETE FROM operations WHERE id = $1");
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
        Removal::Record => &[&REMOVE_BODIES, &REMOVE_JOB, &REMOVE_OPERATION, &REMOVE_AGENDA, &REMOVE_FACTS],
    };
    for statement in statements {
        connection.prepare_cached(statement.sqlite())?.execute([change.id.as_str()])?;
    }
    if change.removal == Removal::Record {
        keys::record_goes(connection, &change.id, at)?;
        connection.prepare_cached(KEEP_POSITION.sqlite())?.execute([signed(position)])?;
        keep_time(connection, at)?;
    }
    Ok(())
}

static LAST_POSITION: Sql = Sql::new(
    "SELECT COALESCE(max(given.position), 0) FROM (SELECT max(position) AS position FROM facts \
     UNION ALL SELECT value FROM meta WHERE name = 'last_position') AS given",
);

/// The highest position ever given.
pub(crate) fn last_position(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row(LAST_POSITION.sqlite(), [], |row| unsigned(row, 0))
}
