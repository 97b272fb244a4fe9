//! Lists of jobs: first the places in the list, by index and without the views, then the views of the page alone.

use std::sync::Arc;

use domain::job::JobStateName;
use domain::{JobId, Record, RecordId, Timestamp};
use rusqlite::{Connection, Row, params};
use store::limits::{MAX_EXAMINED, MAX_PAGE};
use store::{Cursor, JobFilter, JobQuery, Leading, Page, PageWalk, StoreError, decode_view};

use super::failure::read_failed;
use crate::dialect::Sql;
use crate::rows::signed;

/// One page. All of it is read at one moment: a job that changes its state in between would be listed twice, or not at all.
pub(crate) fn jobs(connection: &Connection, query: &JobQuery) -> Result<Page, StoreError> {
    let _moment = connection.unchecked_transaction().map_err(read_failed)?;
    let mut walk = PageWalk::new(query.limit);
    let leading = match query.filter.leading() {
        Leading::Session(id) => Some((&JOBS_BY_SESSION, id)),
        Leading::Owner(id) => Some((&JOBS_BY_OWNER, id)),
        Leading::Creator(id) => Some((&JOBS_BY_CREATOR, id)),
        Leading::Circle(circle) => Some((&JOBS_BY_CIRCLE, circle)),
        Leading::States => None,
    };
    match leading {
        Some((sql, value)) => look_at_led(connection, sql, value, query, &mut walk),
        None => look_at_states(connection, query, &mut walk),
    }
    .map_err(read_failed)?;
    let (found, next) = walk.finish();
    let jobs = found.into_iter().map(|cursor| view(connection, cursor.id)).collect::<Result<_, _>>()?;
    Ok(Page { jobs, next })
}

/// One text per leading column, so that each list walks an index that holds only what it looks at.
macro_rules! jobs_by {
    ($column:literal) => {
        Sql::new(concat!(
            "SELECT updated_at, id, CASE WHEN ($4 IS NULL OR state = $4) \
             AND ($5 IS NULL OR owner_peer_id = $5) AND ($6 IS NULL OR created_by_peer_id = $6) \
             AND ($7 IS NULL OR session_id = $7) AND ($8 IS NULL OR circle = $8) THEN 1 ELSE 0 END \
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

fn look_at_led(
    connection: &Connection,
    sql: &'static Sql,
    value: &str,
    query: &JobQuery,
    walk: &mut PageWalk,
) -> rusqlite::Result<()> {
    let JobFilter { state, owner_peer_id, created_by_peer_id, session_id, circle } = &query.filter;
    let (updated_at, id) = after(query);
    let mut statement = connection.prepare_cached(sql.sqlite())?;
    let mut rows = statement.query(params![
        value,
        updated_at,
        id,
        state.map(JobStateName::as_str),
        owner_peer_id,
        created_by_peer_id,
        session_id,
        circle,
        // One more, to know whether there is another page.
        signed(MAX_EXAMINED as u64 + 1),
    ])?;
    while let Some(row) = rows.next()? {
        if !walk.look_at(cursor(row)?, row.get(2)?) {
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
fn look_at_states(connection: &Connection, query: &JobQuery, walk: &mut PageWalk) -> rusqlite::Result<()> {
    let states = query.filter.state.map_or(JobStateName::ALL.to_vec(), |state| vec![state]);
    let (updated_at, id) = after(query);
    let limit = signed(query.limit.min(MAX_PAGE) as u64 + 1);
    let mut statement = connection.prepare_cached(JOBS_IN_STATE.sqlite())?;
    let mut merged: Vec<Cursor> = Vec::new();
    for state in states {
        let rows = statement.query_map(params![state.as_str(), updated_at, id, limit], cursor)?;
        for row in rows {
            merged.push(row?);
        }
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

fn cursor(row: &Row<'_>) -> rusqlite::Result<Cursor> {
    let id: String = row.get(1)?;
    Ok(Cursor { updated_at: Timestamp::from_micros(row.get(0)?), id: JobId::new(id) })
}

static VIEW: Sql = Sql::new("SELECT view FROM jobs WHERE id = $1");

fn view(connection: &Connection, id: JobId) -> Result<Arc<Record>, StoreError> {
    let view: String = connection
        .prepare_cached(VIEW.sqlite())
        .and_then(|mut statement| statement.query_row([id.as_str()], |row| row.get(0)))
        .map_err(read_failed)?;
    decode_view(&RecordId::Job(id), &view)
}
