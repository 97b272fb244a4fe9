//! The reads: each one statement, or one page of at most 1,000 rows.

use std::sync::Arc;

use domain::{BodyRef, RecordId, RecordKind, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use store::limits::MAX_PAGE;
use store::{AgendaRow, Loaded, StoreError, StoredFact, decode_view};

use super::failure::read_failed;
use crate::dialect::Sql;
use crate::export::fact_lines;
use crate::rows::{FactLine, agenda_columns, fact_columns, read_agenda, read_fact, signed};

static LOAD_JOB: Sql = Sql::new(concat!(
    "SELECT view, ",
    agenda_columns!(),
    " FROM jobs JOIN agenda ON record_id = id WHERE id = $1"
));
static LOAD_OPERATION: Sql = Sql::new(concat!(
    "SELECT view, ",
    agenda_columns!(),
    " FROM operations JOIN agenda ON record_id = id WHERE id = $1"
));

pub(crate) fn load(connection: &Connection, id: &RecordId) -> Result<Option<Loaded>, StoreError> {
    let statement = match id.kind() {
        RecordKind::Job => &LOAD_JOB,
        RecordKind::Operation => &LOAD_OPERATION,
    };
    let found: Option<(String, AgendaRow)> = connection
        .prepare_cached(statement.sqlite())
        .and_then(|mut statement| {
            statement.query_row([id.as_str()], |row| Ok((row.get(0)?, read_agenda(row, 1)?))).optional()
        })
        .map_err(read_failed)?;
    found
        .map(|(view, row)| Ok(Loaded { record: decode_view(id, &view)?, head: row.head, claim: row.claim }))
        .transpose()
}

static BODY: Sql = Sql::new("SELECT bytes FROM bodies WHERE record_id = $1 AND name = $2 AND sha256 = $3");

pub(crate) fn body(
    connection: &Connection,
    id: &RecordId,
    body: BodyRef,
) -> Result<Option<Vec<u8>>, StoreError> {
    connection
        .prepare_cached(BODY.sqlite())
        .and_then(|mut statement| {
            let place = params![id.as_str(), body.name.as_str(), body.sha256.0];
            statement.query_row(place, |row| row.get(0)).optional()
        })
        .map_err(read_failed)
}

static FACTS_OF: Sql = Sql::new(concat!(
    "SELECT ",
    fact_columns!(),
    " FROM facts WHERE stream = $1 AND version > $2 ORDER BY version LIMIT $3"
));

pub(crate) fn facts_of(
    connection: &Connection,
    id: &RecordId,
    after_version: u64,
    limit: usize,
) -> Result<Vec<StoredFact>, StoreError> {
    let lines: Vec<FactLine> = connection
        .prepare_cached(FACTS_OF.sqlite())
        .and_then(|mut statement| {
            let limit = signed(limit.min(MAX_PAGE) as u64);
            statement.query_map(params![id.as_str(), signed(after_version), limit], read_fact)?.collect()
        })
        .map_err(read_failed)?;
    lines.into_iter().map(FactLine::decode).collect()
}

pub(crate) fn facts_after(
    connection: &Connection,
    position: u64,
    limit: usize,
) -> Result<Vec<StoredFact>, StoreError> {
    let lines = fact_lines(connection, position, limit.min(MAX_PAGE)).map_err(read_failed)?;
    lines.into_iter().map(FactLine::decode).collect()
}

static EARLIEST_DUE: Sql = Sql::new("SELECT min(due_at) FROM agenda WHERE kind = $1 AND due_at IS NOT NULL");

pub(crate) fn earliest_due(
    connection: &Connection,
    kind: RecordKind,
) -> Result<Option<Timestamp>, StoreError> {
    connection
        .prepare_cached(EARLIEST_DUE.sqlite())
        .and_then(|mut statement| statement.query_row([kind.as_str()], |row| row.get::<_, Option<i64>>(0)))
        .map(|micros| micros.map(Timestamp::from_micros))
        .map_err(read_failed)
}

// Leaps from lane to lane in the index: the cost is that of the lanes, not of the jobs in them.
static READY_LANES: Sql = Sql::new(
    "WITH RECURSIVE lanes (lane) AS ( \
         SELECT min(lane) FROM agenda WHERE ready = 1 \
         UNION ALL \
         SELECT (SELECT min(lane) FROM agenda WHERE ready = 1 AND lane > lanes.lane) FROM lanes \
          WHERE lanes.lane IS NOT NULL \
     ) SELECT lane FROM lanes WHERE lane IS NOT NULL",
);

pub(crate) fn ready_lanes(connection: &Connection) -> Result<Vec<Arc<str>>, StoreError> {
    connection
        .prepare_cached(READY_LANES.sqlite())
        .and_then(|mut statement| statement.query_map([], |row| row.get::<_, Arc<str>>(0))?.collect())
        .map_err(read_failed)
}
