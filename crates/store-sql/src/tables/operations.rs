//! Lists of operations: those of one job, and those that may still run outside. Each walks an index that holds only what it looks at.

use std::sync::Arc;

use domain::{JobId, OperationId, Record, RecordId};
use store::limits::MAX_PAGE;
use store::{OrphanCursor, StoreError, decode_view};

use crate::database::{Database, Given, one, text, unsigned};
use crate::dialect::Sql;
use crate::rows::signed;

static OF_JOB: Sql =
    Sql::new("SELECT id, view FROM operations WHERE job_id = $1 ORDER BY updated_at DESC, id DESC LIMIT $2");

/// The operations of one job, newest change first.
pub(crate) async fn of_job<D: Database>(
    database: &D,
    job: &JobId,
    limit: usize,
) -> Result<Vec<Arc<Record>>, StoreError> {
    listed(database, &OF_JOB, &[job.as_str().into(), signed(limit.min(MAX_PAGE) as u64).into()]).await
}

static ORPHANS: Sql = Sql::new(
    "SELECT id, view FROM operations WHERE orphaned_at IS NOT NULL AND (orphaned_at, id) > ($1, $2) \
     ORDER BY orphaned_at, id LIMIT $3",
);

/// Those that may still run outside, oldest end first.
pub(crate) async fn orphans<D: Database>(
    database: &D,
    after: Option<&OrphanCursor>,
    limit: usize,
) -> Result<Vec<Arc<Record>>, StoreError> {
    let (orphaned_at, id) =
        after.map_or((i64::MIN, ""), |after| (after.orphaned_at.micros(), after.id.as_str()));
    let given = [orphaned_at.into(), id.into(), signed(limit.min(MAX_PAGE) as u64).into()];
    listed(database, &ORPHANS, &given).await
}

static ORPHAN_COUNT: Sql = Sql::new("SELECT count(*) FROM operations WHERE orphaned_at IS NOT NULL");

/// How many those are.
pub(crate) async fn orphan_count<D: Database>(database: &D) -> Result<u64, StoreError> {
    let count = one(database, &ORPHAN_COUNT, &[], |row| unsigned(row, 0)).await;
    count.map(Option::unwrap_or_default).map_err(D::read_failed)
}

async fn listed<D: Database>(
    database: &D,
    sql: &'static Sql,
    given: &[Given<'_>],
) -> Result<Vec<Arc<Record>>, StoreError> {
    let rows = database.query(sql, given, |row| Ok((text(row, 0)?, text(row, 1)?))).await;
    rows.map_err(D::read_failed)?
        .into_iter()
        .map(|(id, view)| decode_view(&RecordId::Operation(OperationId::new(id)), &view))
        .collect()
}
