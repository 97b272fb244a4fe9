//! Lists of operations: those of one job, and those that may still run outside. Each walks an index that holds only what it looks at.

use std::sync::Arc;

use domain::{JobId, OperationId, Record, RecordId};
use rusqlite::{Connection, Row, ToSql, params};
use store::limits::MAX_PAGE;
use store::{OrphanCursor, StoreError, decode_view};

use super::failure::read_failed;
use crate::dialect::Sql;
use crate::rows::{signed, unsigned};

static OF_JOB: Sql =
    Sql::new("SELECT id, view FROM operations WHERE job_id = $1 ORDER BY updated_at DESC, id DESC LIMIT $2");

/// The operations of one job, newest change first.
pub(crate) fn of_job(
    connection: &Connection,
    job: &JobId,
    limit: usize,
) -> Result<Vec<Arc<Record>>, StoreError> {
    listed(connection, &OF_JOB, params![job.as_str(), signed(limit.min(MAX_PAGE) as u64)])
}

static ORPHANS: Sql = Sql::new(
    "SELECT id, view FROM operations WHERE orphaned_at IS NOT NULL AND (orphaned_at, id) > ($1, $2) \
     ORDER BY orphaned_at, id LIMIT $3",
);

/// Those that may still run outside, oldest end first.
pub(crate) fn orphans(
    connection: &Connection,
    after: Option<&OrphanCursor>,
    limit: usize,
) -> Result<Vec<Arc<Record>>, StoreError> {
    let (orphaned_at, id) =
        after.map_or((i64::MIN, ""), |after| (after.orphaned_at.micros(), after.id.as_str()));
    listed(connection, &ORPHANS, params![orphaned_at, id, signed(limit.min(MAX_PAGE) as u64)])
}

static ORPHAN_COUNT: Sql = Sql::new("SELECT count(*) FROM operations WHERE orphaned_at IS NOT NULL");

/// How many those are.
pub(crate) fn orphan_count(connection: &Connection) -> Result<u64, StoreError> {
    connection
        .prepare_cached(ORPHAN_COUNT.sqlite())
        .and_then(|mut statement| statement.query_row([], |row| unsigned(row, 0)))
        .map_err(read_failed)
}

fn listed(
    connection: &Connection,
    sql: &'static Sql,
    parameters: &[&dyn ToSql],
) -> Result<Vec<Arc<Record>>, StoreError> {
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    let rows: Vec<(String, String)> = connection
        .prepare_cached(sql.sqlite())
        .and_then(|mut statement| statement.query_map(parameters, read)?.collect())
        .map_err(read_failed)?;
    rows.into_iter()
        .map(|(id, view)| decode_view(&RecordId::Operation(OperationId::new(id)), &view))
        .collect()
}
