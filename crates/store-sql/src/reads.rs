//! The reads: each one statement, or one page of at most 1,000 rows.

use std::sync::Arc;

use domain::{BodyRef, RecordId, RecordKind, Timestamp};
use store::limits::MAX_PAGE;
use store::{Loaded, StoreError, StoredFact, decode_view};

use crate::database::{Database, bytes, one, text};
use crate::dialect::Sql;
use crate::export::fact_lines;
use crate::rows::{FactLine, agenda_columns, fact_columns, optional_time, read_agenda, read_fact, signed};

static LOAD_JOB: Sql = Sql::new(concat!(
    "SELECT view, ",
    agenda_columns!(),
    " FROM jobs JOIN agenda ON record_id = id WHERE id = $1"
));
pub(crate) static LOAD_OPERATION: Sql = Sql::new(concat!(
    "SELECT view, ",
    agenda_columns!(),
    " FROM operations JOIN agenda ON record_id = id WHERE id = $1"
));

static LOAD_ROUTING: Sql = Sql::new(concat!(
    "SELECT view, ",
    agenda_columns!(),
    " FROM routing JOIN agenda ON record_id = id WHERE id = $1"
));

pub(crate) async fn load<D: Database>(database: &D, id: &RecordId) -> Result<Option<Loaded>, StoreError> {
    let statement = match id.kind() {
        RecordKind::Job => &LOAD_JOB,
        RecordKind::Operation => &LOAD_OPERATION,
        RecordKind::Event | RecordKind::Run => &LOAD_ROUTING,
    };
    let found =
        one(database, statement, &[id.as_str().into()], |row| Ok((text(row, 0)?, read_agenda(row, 1)?)))
            .await
            .map_err(D::read_failed)?;
    found
        .map(|(view, row)| Ok(Loaded { record: decode_view(id, &view)?, head: row.head, claim: row.claim }))
        .transpose()
}

static BODY: Sql = Sql::new("SELECT bytes FROM bodies WHERE record_id = $1 AND name = $2 AND sha256 = $3");

pub(crate) async fn body<D: Database>(
    database: &D,
    id: &RecordId,
    body: BodyRef,
) -> Result<Option<Vec<u8>>, StoreError> {
    let place = [id.as_str().into(), body.name.as_str().into(), body.sha256.0[..].into()];
    one(database, &BODY, &place, |row| bytes(row, 0).map(<[u8]>::to_vec)).await.map_err(D::read_failed)
}

pub(crate) static FACTS_OF: Sql = Sql::new(concat!(
    "SELECT ",
    fact_columns!(),
    " FROM facts WHERE stream = $1 AND version > $2 ORDER BY version LIMIT $3"
));

pub(crate) async fn facts_of<D: Database>(
    database: &D,
    id: &RecordId,
    after_version: u64,
    limit: usize,
) -> Result<Vec<StoredFact>, StoreError> {
    let limit = signed(limit.min(MAX_PAGE) as u64);
    let given = [id.as_str().into(), signed(after_version).into(), limit.into()];
    let lines = database.query(&FACTS_OF, &given, read_fact).await.map_err(D::read_failed)?;
    lines.into_iter().map(FactLine::decode).collect()
}

pub(crate) async fn facts_after<D: Database>(
    database: &D,
    position: u64,
    limit: usize,
) -> Result<Vec<StoredFact>, StoreError> {
    let lines = fact_lines(database, position, limit.min(MAX_PAGE)).await?;
    lines.into_iter().map(FactLine::decode).collect()
}

static EARLIEST_DUE: Sql = Sql::new("SELECT min(due_at) FROM agenda WHERE kind = $1 AND due_at IS NOT NULL");

pub(crate) async fn earliest_due<D: Database>(
    database: &D,
    kind: RecordKind,
) -> Result<Option<Timestamp>, StoreError> {
    let found = one(database, &EARLIEST_DUE, &[kind.as_str().into()], |row| optional_time(row, 0)).await;
    found.map(Option::flatten).map_err(D::read_failed)
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

pub(crate) async fn ready_lanes<D: Database>(database: &D) -> Result<Vec<Arc<str>>, StoreError> {
    database.query(&READY_LANES, &[], |row| text(row, 0).map(Arc::from)).await.map_err(D::read_failed)
}
