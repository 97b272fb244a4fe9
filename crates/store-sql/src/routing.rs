//! Lists of events and of runs, newest first: each walks an index that holds only what it looks at.

use std::sync::Arc;

use domain::{Record, RecordKind, RunId};
use store::limits::MAX_EXAMINED;
use store::{RoutingCursor, RoutingPage, RoutingQuery, RoutingWalk, StoreError, decode_view};

use crate::database::{Columns, Database, Unfit, one, optional_text, text};
use crate::dialect::Sql;
use crate::rows::{signed, time};

/// Rows that are read at once: a page is mostly among the first.
const BATCH: usize = 200;

static BY_TIME: Sql = Sql::new(
    "SELECT begun_at, id, status, circle, view FROM routing WHERE kind = $1 AND (begun_at, id) < ($2, $3) \
     ORDER BY begun_at DESC, id DESC LIMIT $4",
);
static BY_NAME: Sql = Sql::new(
    "SELECT begun_at, id, status, circle, view FROM routing WHERE kind = $1 AND (begun_at, id) < ($2, $3) \
     AND name = $5 ORDER BY begun_at DESC, id DESC LIMIT $4",
);

/// One page.
pub(crate) async fn page<D: Database>(database: &D, query: &RoutingQuery) -> Result<RoutingPage, StoreError> {
    let mut walk = RoutingWalk::new(query.limit);
    let mut after = query.after.clone();
    for _ in 0..=MAX_EXAMINED.div_ceil(BATCH) {
        let rows = rows(database, query, after.as_ref()).await.map_err(D::read_failed)?;
        let is_last = rows.len() < BATCH;
        after = rows.last().map(|row| row.cursor.clone()).or(after);
        let mut is_full = false;
        for row in rows {
            let fits = query.fits(&row.status, row.circle.as_deref());
            if !walk.look_at(row.cursor.clone(), fits.then_some((row.cursor.id, row.view))) {
                is_full = true;
                break;
            }
        }
        if is_last || is_full {
            break;
        }
    }
    let (found, next) = walk.finish();
    let records = found.iter().map(|(id, view)| decode_view(&query.kind.record_id(id), view));
    Ok(RoutingPage { records: records.collect::<Result<_, _>>()?, next })
}

struct Row {
    cursor: RoutingCursor,
    status: String,
    circle: Option<String>,
    view: String,
}

async fn rows<D: Database>(
    database: &D,
    query: &RoutingQuery,
    after: Option<&RoutingCursor>,
) -> Result<Vec<Row>, D::Error> {
    let (begun_at, id) = after.map_or((i64::MAX, ""), |after| (after.begun_at.micros(), after.id.as_str()));
    let kind = query.kind.record_kind().as_str();
    let given = [kind.into(), begun_at.into(), id.into(), signed(BATCH as u64).into()];
    match &query.name {
        None => database.query(&BY_TIME, &given, row).await,
        Some(name) => {
            let given = [given[0], given[1], given[2], given[3], name.as_str().into()];
            database.query(&BY_NAME, &given, row).await
        }
    }
}

fn row(row: &dyn Columns) -> Result<Row, Unfit> {
    Ok(Row {
        cursor: RoutingCursor { begun_at: time(row, 0)?, id: text(row, 1)? },
        status: text(row, 2)?,
        circle: optional_text(row, 3)?,
        view: text(row, 4)?,
    })
}

static NEWEST_RUN: Sql = Sql::new(
    "SELECT id, view FROM routing WHERE kind = $1 AND name = $2 AND dedupe_key = $3 AND dedupe_key IS NOT NULL \
     ORDER BY begun_at DESC, id DESC LIMIT 1",
);

/// The newest run of a pipeline under a key.
pub(crate) async fn newest_run<D: Database>(
    database: &D,
    pipeline: &str,
    dedupe_key: &str,
) -> Result<Option<Arc<Record>>, StoreError> {
    let given = [RecordKind::Run.as_str().into(), pipeline.into(), dedupe_key.into()];
    let found = one(database, &NEWEST_RUN, &given, |row| Ok((text(row, 0)?, text(row, 1)?))).await;
    let Some((id, view)) = found.map_err(D::read_failed)? else { return Ok(None) };
    decode_view(&RunId::new(id).into(), &view).map(Some)
}
