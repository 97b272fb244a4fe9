//! Lists of jobs: first the places in the list, by index and without the views, then the views of the page alone.

use std::sync::Arc;

use domain::job::JobStateName;
use domain::{JobId, Record, RecordId};
use store::limits::{MAX_EXAMINED, MAX_PAGE};
use store::{Cursor, JobFilter, JobQuery, Leading, Page, PageWalk, StoreError, decode_view};

use crate::database::{Columns, Database, Ending, Purpose, Unfit, integer, one, text};
use crate::dialect::Sql;
use crate::rows::{signed, time};

/// Questions that are asked together: a server answers them on one way there and back.
const TOGETHER: usize = 24;

/// One page. All of it is read at one moment: a job that changes its state in between would be listed twice, or not at all.
pub(crate) async fn jobs<D: Database>(database: &D, query: &JobQuery) -> Result<Page, StoreError> {
    database.begin(Purpose::Read).await.map_err(D::read_failed)?;
    let page = page(database, query).await;
    database.end(Ending::RollBack).await.map_err(D::read_failed)?;
    page
}

async fn page<D: Database>(database: &D, query: &JobQuery) -> Result<Page, StoreError> {
    let mut walk = PageWalk::new(query.limit);
    let leading = match query.filter.leading() {
        Leading::Session(id) => Some((&JOBS_BY_SESSION, id)),
        Leading::Owner(id) => Some((&JOBS_BY_OWNER, id)),
        Leading::Creator(id) => Some((&JOBS_BY_CREATOR, id)),
        Leading::Circle(circle) => Some((&JOBS_BY_CIRCLE, circle)),
        Leading::States => None,
    };
    match leading {
        Some((sql, value)) => look_at_led(database, sql, value, query, &mut walk).await,
        None => look_at_states(database, query, &mut walk).await,
    }
    .map_err(D::read_failed)?;
    let (found, next) = walk.finish();
    let mut jobs = Vec::with_capacity(found.len());
    for some in found.chunks(TOGETHER) {
        let asked = some.iter().map(|cursor| view(database, cursor.id.clone()));
        for view in futures::future::join_all(asked).await {
            jobs.push(view?);
        }
    }
    Ok(Page { jobs, next })
}

/// One text per leading column, so that each list walks an index that holds only what it looks at.
macro_rules! jobs_by {
    ($column:literal) => {
        Sql::new(concat!(
            "SELECT updated_at, id, CASE WHEN (CAST($4 AS TEXT) IS NULL OR state = $4) \
             AND (CAST($5 AS TEXT) IS NULL OR owner_peer_id = $5) AND (CAST($6 AS TEXT) IS NULL OR created_by_peer_id = $6) \
             AND (CAST($7 AS TEXT) IS NULL OR session_id = $7) AND (CAST($8 AS TEXT) IS NULL OR circle = $8) THEN 1 ELSE 0 END \
             FROM jobs WHERE ",
            $column,
            " = $1 AND (updated_at, id) < ($2, $3) ORDER BY updated_at DESC, id DESC LIMIT $9"
        ))
    };
}
static JOBS_BY_OWNER: Sql = jobs_by!("owner_peer_id");
static JOBS_BY_CREATOR: Sql = jobs_by!("created_by_peer_id");
static JOBS_BY_SESSION: Sql = jobs_by!("session_id");
static JOBS_BY_CIRCLE: Sql = jobs_by!("circle");

async fn look_at_led<D: Database>(
    database: &D,
    sql: &'static Sql,
    value: &str,
    query: &JobQuery,
    walk: &mut PageWalk,
) -> Result<(), D::Error> {
    let JobFilter { state, owner_peer_id, created_by_peer_id, session_id, circle } = &query.filter;
    let (updated_at, id) = after(query);
    let given = [
        value.into(),
        updated_at.into(),
        id.into(),
        state.map(JobStateName::as_str).into(),
        owner_peer_id.as_deref().into(),
        created_by_peer_id.as_deref().into(),
        session_id.as_deref().into(),
        circle.as_deref().into(),
        // One more, to know whether there is another page.
        signed(MAX_EXAMINED as u64 + 1).into(),
    ];
    let looked_at = database.query(sql, &given, |row| Ok((cursor(row)?, integer(row, 2)? != 0))).await?;
    for (cursor, fits) in looked_at {
        if !walk.look_at(cursor, fits) {
            break;
        }
    }
    Ok(())
}

static JOBS_IN_STATE: Sql = Sql::new(
    "SELECT updated_at, id FROM jobs WHERE state = $1 AND (updated_at, id) < ($2, $3) \
     ORDER BY updated_at DESC, id DESC LIMIT $4",
);

/// Every state has its own run in the index; the newest of each are merged.
async fn look_at_states<D: Database>(
    database: &D,
    query: &JobQuery,
    walk: &mut PageWalk,
) -> Result<(), D::Error> {
    let states = query.filter.state.map_or(JobStateName::ALL.to_vec(), |state| vec![state]);
    let (updated_at, id) = after(query);
    let limit = signed(query.limit.min(MAX_PAGE) as u64 + 1);
    let asked = states.into_iter().map(async |state| {
        let given = [state.as_str().into(), updated_at.into(), id.into(), limit.into()];
        database.query(&JOBS_IN_STATE, &given, cursor).await
    });
    let mut merged: Vec<Cursor> = Vec::new();
    for some in futures::future::join_all(asked).await {
        merged.extend(some?);
    }
    merged.sort_by(|a, b| b.cmp(a));
    for cursor in merged {
        if !walk.look_at(cursor, true) {
            break;
        }
    }
    Ok(())
}

/// The place before the page, for the comparison in SQL.
fn after(query: &JobQuery) -> (i64, &str) {
    match &query.after {
        Some(cursor) => (cursor.updated_at.micros(), cursor.id.as_str()),
        None => (i64::MAX, ""),
    }
}

fn cursor(row: &dyn Columns) -> Result<Cursor, Unfit> {
    Ok(Cursor { updated_at: time(row, 0)?, id: JobId::new(text(row, 1)?) })
}

static VIEW: Sql = Sql::new("SELECT view FROM jobs WHERE id = $1");

async fn view<D: Database>(database: &D, id: JobId) -> Result<Arc<Record>, StoreError> {
    let view =
        one(database, &VIEW, &[id.as_str().into()], |row| text(row, 0)).await.map_err(D::read_failed)?;
    let view =
        view.ok_or_else(|| StoreError::Broken(format!("{} is in a list and has no view", id.as_str())))?;
    decode_view(&RecordId::Job(id), &view)
}
