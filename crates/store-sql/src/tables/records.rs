//! Lists of records by their summaries, newest first: each walks an index that holds only what it looks at.

use std::sync::Arc;

use domain::{Record, RecordId, RecordKind};
use store::limits::MAX_EXAMINED;
use store::{PageWalk, RecordCursor, RecordPage, RecordQuery, StoreError, decode_view};

use crate::database::{Columns, Database, Unfit, one, optional_text, text};
use crate::dialect::Sql;
use crate::rows::{signed, time};

/// Rows that are read at once: a page is mostly among the first.
const BATCH: usize = 200;

static BY_TIME: Sql = Sql::new(
    "SELECT began_at, id, status, circle, view FROM records WHERE kind = $1 AND (began_at, id) < ($2, $3) \
     ORDER BY began_at DESC, id DESC LIMIT $4",
);
static BY_NAME: Sql = Sql::new(
    "SELECT began_at, id, status, circle, view FROM records WHERE kind = $1 AND (began_at, id) < ($2, $3) \
     AND name = $5 ORDER BY began_at DESC, id DESC LIMIT $4",
);

/// One page.
pub(crate) async fn page<D: Database>(database: &D, query: &RecordQuery) -> Result<RecordPage, StoreError> {
    let mut walk = PageWalk::new(query.limit);
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
    let records = found.iter().map(|(id, view)| decode_view(&record_id(id)?, view));
    Ok(RecordPage { records: records.collect::<Result<_, StoreError>>()?, next })
}

struct Row {
    cursor: RecordCursor,
    status: String,
    circle: Option<String>,
    view: String,
}

async fn rows<D: Database>(
    database: &D,
    query: &RecordQuery,
    after: Option<&RecordCursor>,
) -> Result<Vec<Row>, D::Error> {
    let (began_at, id) = after.map_or((i64::MAX, ""), |after| (after.began_at.micros(), after.id.as_str()));
    let kind = query.kind.as_str();
    let given = [kind.into(), began_at.into(), id.into(), signed(BATCH as u64).into()];
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
        cursor: RecordCursor { began_at: time(row, 0)?, id: text(row, 1)? },
        status: text(row, 2)?,
        circle: optional_text(row, 3)?,
        view: text(row, 4)?,
    })
}

static NEWEST: Sql = Sql::new(
    "SELECT id, view FROM records WHERE kind = $1 AND name = $2 AND key = $3 AND key IS NOT NULL \
     ORDER BY began_at DESC, id DESC LIMIT 1",
);

/// The newest record of a kind with a name and a key.
pub(crate) async fn newest<D: Database>(
    database: &D,
    kind: RecordKind,
    name: &str,
    key: &str,
) -> Result<Option<Arc<Record>>, StoreError> {
    let given = [kind.as_str().into(), name.into(), key.into()];
    let found = one(database, &NEWEST, &given, |row| Ok((text(row, 0)?, text(row, 1)?))).await;
    let Some((id, view)) = found.map_err(D::read_failed)? else { return Ok(None) };
    decode_view(&record_id(&id)?, &view).map(Some)
}

fn record_id(id: &str) -> Result<RecordId, StoreError> {
    RecordId::parse(id).map_err(|refusal| StoreError::Broken(format!("{id:?}: {refusal}")))
}
