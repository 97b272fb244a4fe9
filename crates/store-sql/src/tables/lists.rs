//! Lists of jobs: first the places in the list, by index and without the views, then the views of the page alone.

use std::sync::Arc;

use domain::job::JobStateName;
use domain::{JobId, Record, RecordId};
use store::limits::{MAX_EXAMINED, MAX_PAGE};
use store::{Cursor, JobFilter, JobQuery, Leading, Page, PageWalk, StoreError, decode_view};

use crate::database::{Columns, Database, Ending, Purpose, Unfit, integer, one, optional_text, text};
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
        None if query.filter.tag.is_some() => look_for_tag(database, query, &mut walk).await,
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
             AND (CAST($7 AS TEXT) IS NULL OR session_id = $7) AND (CAST($8 AS TEXT) IS NULL OR circle = $8) THEN 1 ELSE 0 END, \
             CASE WHEN view LIKE $10 ESCAPE '!' THEN view END \
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

type JobWalk = PageWalk<Cursor, Cursor>;

async fn look_at_led<D: Database>(
    database: &D,
    sql: &'static Sql,
    value: &str,
    query: &JobQuery,
    walk: &mut JobWalk,
) -> Result<(), D::Error> {
    let JobFilter { state, owner_peer_id, created_by_peer_id, session_id, circle, tag } = &query.filter;
    let like = tag.as_deref().map(like_tag);
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
        like.as_deref().into(),
    ];
    let read = |row: &dyn Columns| Ok((cursor(row)?, integer(row, 2)? != 0, optional_text(row, 3)?));
    for (cursor, fits, view) in database.query(sql, &given, read).await? {
        let fits = fits && tag.as_ref().is_none_or(|tag| has_tag(&cursor, view.as_deref(), tag));
        if !walk.look_at(cursor.clone(), fits.then_some(cursor)) {
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
    walk: &mut JobWalk,
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
        if !walk.look_at(cursor.clone(), Some(cursor)) {
            break;
        }
    }
    Ok(())
}

static TAGGED_IN_STATE: Sql = Sql::new(
    "SELECT updated_at, id, CASE WHEN view LIKE $5 ESCAPE '!' THEN view END FROM jobs WHERE state = $1 \
     AND (updated_at, id) < ($2, $3) ORDER BY updated_at DESC, id DESC LIMIT $4",
);

/// No index leads to a tag: the newest of every state are looked at, no more than one page looks at.
async fn look_for_tag<D: Database>(
    database: &D,
    query: &JobQuery,
    walk: &mut JobWalk,
) -> Result<(), D::Error> {
    let tag = query.filter.tag.as_deref().unwrap_or_default();
    let like = like_tag(tag);
    let states = query.filter.state.map_or(JobStateName::ALL.to_vec(), |state| vec![state]);
    let (updated_at, id) = after(query);
    let limit = signed(MAX_EXAMINED as u64 + 1);
    let like = like.as_str();
    let asked = states.into_iter().map(async |state| {
        let given = [state.as_str().into(), updated_at.into(), id.into(), limit.into(), like.into()];
        database
            .query(&TAGGED_IN_STATE, &given, |row| {
                let (cursor, view) = (cursor(row)?, optional_text(row, 2)?);
                let fits = has_tag(&cursor, view.as_deref(), tag);
                Ok((cursor, fits))
            })
            .await
    });
    let mut merged: Vec<(Cursor, bool)> = Vec::new();
    for some in futures::future::join_all(asked).await {
        merged.extend(some?);
    }
    merged.sort_by(|(a, _), (b, _)| b.cmp(a));
    for (cursor, fits) in merged {
        if !walk.look_at(cursor.clone(), fits.then_some(cursor)) {
            break;
        }
    }
    Ok(())
}

/// Through the view, whose expressions both databases have an index on. The circle is part of the question: what others have under the
/// same id takes no place on the page.
static KNOWN_AS: Sql = Sql::new(
    "SELECT id, view FROM jobs WHERE id IN (SELECT render_job_id FROM external_production_records_view WHERE external_job_id = $1) \
     AND (CAST($2 AS TEXT) IS NULL OR circle = $2) AND (updated_at, id) < ($3, $4) ORDER BY updated_at DESC, id DESC LIMIT $5",
);

/// One page of the jobs whose work a service knows by this id.
pub(crate) async fn known_as<D: Database>(
    database: &D,
    external_job_id: &str,
    query: &JobQuery,
) -> Result<Page, StoreError> {
    let (updated_at, id) = after(query);
    let given = [
        external_job_id.into(),
        query.filter.circle.as_deref().into(),
        updated_at.into(),
        id.into(),
        // One more, to know whether there is another page.
        signed(query.limit.min(MAX_PAGE) as u64 + 1).into(),
    ];
    let rows = database.query(&KNOWN_AS, &given, |row| Ok((text(row, 0)?, text(row, 1)?))).await;
    let found = rows
        .map_err(D::read_failed)?
        .into_iter()
        .map(|(id, view)| decode_view(&RecordId::Job(JobId::new(id)), &view))
        .collect::<Result<Vec<_>, StoreError>>()?;
    Ok(Page::of_sorted(found, query))
}

/// What the view of a job with this tag looks like; others may look so too.
fn like_tag(tag: &str) -> String {
    let mut like = String::from("%\"");
    for character in tag.chars() {
        match character {
            '%' | '_' | '!' => like.extend(['!', character]),
            // As JSON writes them, which is not one character.
            '"' | '\\' => like.push('%'),
            other if other.is_control() => like.push('%'),
            other => like.push(other),
        }
    }
    like.push_str("\"%");
    like
}

/// Whether the job behind a view has a tag.
fn has_tag(cursor: &Cursor, view: Option<&str>, tag: &str) -> bool {
    let record = view.and_then(|view| decode_view(&RecordId::Job(cursor.id.clone()), view).ok());
    matches!(record.as_deref(), Some(Record::Job(job)) if job.spec.tags.iter().any(|one| one == tag))
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
