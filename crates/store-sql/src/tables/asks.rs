//! Asks as rows: written with the commit that they follow from or through the writer, read beside it. No fact is ever written here.
//!
//! Those whose time is over are deleted when others are written, through an index and a bounded batch at a time.

use domain::ask::{Ask, AskChange, CloseReason, Closing, MAX_ASKS_LISTED, MAX_FORGOTTEN_ASKS, MAX_OPEN_ASKS};
use domain::{Digest, JobId, Timestamp};
use store::{AskQuery, Direction, StoreError, too_many_asks};

use crate::database::{Columns, Database, Given, Unfit, digest, one, optional_text, text, unsigned};
use crate::dialect::Sql;
use crate::peers::{circle_of, circle_text};
use crate::rows::{optional_time, signed, time};

/// The columns of an ask, in the order of `values` and `read_ask`.
macro_rules! ask_columns {
    () => {
        "id, circle, from_peer, to_peer, text, job_id, reply_to, asked_by, request_sha256, created_at, expires_at, \
         closed_at, close_reason, close_message, closed_by, forget_at"
    };
}
pub(crate) use ask_columns;

static IS_THERE: Sql = Sql::new("SELECT count(*) FROM asks WHERE id = $1");
static OPEN_COUNT: Sql = Sql::new(
    "SELECT count(*) FROM (SELECT 1 FROM asks WHERE to_peer = $1 AND circle = $2 AND closed_at IS NULL \
     AND expires_at > $3 LIMIT $4) AS counted",
);
static INSERT_ASK: Sql = Sql::new(concat!(
    "INSERT INTO asks (",
    ask_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT (id) DO NOTHING"
));
static CLOSE_ASK: Sql = Sql::new(
    "UPDATE asks SET closed_at = $2, close_reason = $3, close_message = $4, closed_by = $5, \
     forget_at = COALESCE($6, forget_at) WHERE id = $1 AND closed_at IS NULL",
);
// What another node forgets at this moment need not be waited for.
pub(crate) static FORGET_ASKS: Sql = Sql::differing(
    "DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE forget_at <= $1 ORDER BY forget_at, id LIMIT $2)",
    "DELETE FROM asks USING (SELECT id FROM asks WHERE forget_at <= $1 ORDER BY forget_at, id LIMIT $2 \
     FOR UPDATE SKIP LOCKED) AS old WHERE asks.id = old.id",
);

pub(crate) async fn keep<D: Database>(
    database: &D,
    ask: &Ask,
    replied: Option<&Closing>,
) -> Result<Result<bool, StoreError>, D::Error> {
    let there = one(database, &IS_THERE, &[ask.id.as_str().into()], |row| unsigned(row, 0)).await?;
    if there.unwrap_or_default() > 0 {
        return Ok(Ok(false));
    }
    let given = [
        ask.to_peer.as_str().into(),
        circle_text(ask.circle.as_deref()),
        ask.created_at.micros().into(),
        signed(MAX_OPEN_ASKS as u64).into(),
    ];
    let open = one(database, &OPEN_COUNT, &given, |row| unsigned(row, 0)).await?.unwrap_or_default();
    if open >= MAX_OPEN_ASKS as u64 {
        return Ok(Err(too_many_asks()));
    }
    if let (Some(replied_to), Some(closing)) = (&ask.reply_to, replied) {
        close(database, replied_to, closing).await?;
    }
    forget_some(database, ask.created_at).await?;
    Ok(Ok(database.execute(&INSERT_ASK, &values(ask)).await? > 0))
}

pub(crate) async fn close<D: Database>(database: &D, id: &str, closing: &Closing) -> Result<bool, D::Error> {
    Ok(database.execute(&CLOSE_ASK, &closing_values(id, closing)).await? > 0)
}

async fn forget_some<D: Database>(database: &D, now: Timestamp) -> Result<(), D::Error> {
    let given = [now.micros().into(), signed(MAX_FORGOTTEN_ASKS as u64).into()];
    database.execute(&FORGET_ASKS, &given).await?;
    Ok(())
}

/// Writes what a commit brings about, one row after the other.
pub(crate) async fn change<D: Database>(database: &D, changes: &[AskChange]) -> Result<(), D::Error> {
    for change in changes {
        match change {
            AskChange::Opened(ask) => {
                forget_some(database, ask.created_at).await?;
                database.execute(&INSERT_ASK, &values(ask)).await?;
            }
            AskChange::Closed { id, closing } => {
                close(database, id, closing).await?;
            }
        }
    }
    Ok(())
}

/// The values of a new row.
pub(crate) fn values(ask: &Ask) -> [Given<'_>; 16] {
    let closed = ask.closed.as_ref();
    let forget_at = closed.and_then(Closing::forget_at).unwrap_or_else(|| ask.forget_at());
    [
        ask.id.as_str().into(),
        circle_text(ask.circle.as_deref()),
        ask.from_peer.as_deref().into(),
        ask.to_peer.as_str().into(),
        ask.text.as_str().into(),
        ask.job_id.as_ref().map(JobId::as_str).into(),
        ask.reply_to.as_deref().into(),
        ask.asked_by.as_str().into(),
        ask.request_sha256.0[..].into(),
        ask.created_at.micros().into(),
        ask.expires_at.micros().into(),
        closed.map(|closing| closing.at.micros()).into(),
        closed.map(|closing| closing.reason.as_str()).into(),
        closed.and_then(|closing| closing.message.as_deref()).into(),
        closed.and_then(|closing| closing.by.as_deref()).into(),
        forget_at.micros().into(),
    ]
}

/// The values of a closing, and whose it is.
pub(crate) fn closing_values<'a>(id: &'a str, closing: &'a Closing) -> [Given<'a>; 6] {
    [
        id.into(),
        closing.at.micros().into(),
        closing.reason.as_str().into(),
        closing.message.as_deref().into(),
        closing.by.as_deref().into(),
        closing.forget_at().map(Timestamp::micros).into(),
    ]
}

static ASK: Sql = Sql::new(concat!("SELECT ", ask_columns!(), " FROM asks WHERE id = $1"));

pub(crate) async fn ask<D: Database>(database: &D, id: &str) -> Result<Option<Ask>, StoreError> {
    one(database, &ASK, &[id.into()], read_ask).await.map_err(D::read_failed)
}

static INBOUND: Sql = Sql::new(concat!(
    "SELECT ",
    ask_columns!(),
    " FROM asks WHERE to_peer = $1 AND circle = $2 AND closed_at IS NULL AND expires_at > $3 \
     ORDER BY created_at DESC, id DESC LIMIT $4"
));
static OUTBOUND: Sql = Sql::new(concat!(
    "SELECT ",
    ask_columns!(),
    " FROM asks WHERE from_peer = $1 AND circle = $2 AND closed_at IS NULL AND expires_at > $3 \
     ORDER BY created_at DESC, id DESC LIMIT $4"
));
static OF_JOB: Sql = Sql::new(concat!(
    "SELECT ",
    ask_columns!(),
    " FROM asks WHERE job_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2"
));

pub(crate) async fn asks<D: Database>(database: &D, query: &AskQuery) -> Result<Vec<Ask>, StoreError> {
    let limit = signed(query.limit().min(MAX_ASKS_LISTED) as u64);
    let found = match query {
        AskQuery::Open { peer, circle, direction, now, .. } => {
            let statement = match direction {
                Direction::Inbound => &INBOUND,
                Direction::Outbound => &OUTBOUND,
            };
            let circle = circle_text(circle.as_deref());
            let given = [peer.as_str().into(), circle, now.micros().into(), limit.into()];
            database.query(statement, &given, read_ask).await
        }
        AskQuery::OfJob { job_id, .. } => {
            database.query(&OF_JOB, &[job_id.as_str().into(), limit.into()], read_ask).await
        }
    };
    found.map_err(D::read_failed)
}

fn read_ask(row: &dyn Columns) -> Result<Ask, Unfit> {
    let closed = match optional_time(row, 11)? {
        None => None,
        Some(at) => {
            let word = text(row, 12)?;
            let reason = CloseReason::parse(&word)
                .ok_or_else(|| Unfit::new(12, format_args!("{word:?} closes no ask")))?;
            Some(Closing { at, reason, message: optional_text(row, 13)?, by: optional_text(row, 14)? })
        }
    };
    Ok(Ask {
        id: text(row, 0)?,
        circle: circle_of(row, 1)?,
        from_peer: optional_text(row, 2)?,
        to_peer: text(row, 3)?,
        text: text(row, 4)?,
        job_id: optional_text(row, 5)?.map(JobId::new),
        reply_to: optional_text(row, 6)?,
        asked_by: text(row, 7)?,
        request_sha256: Digest(digest(row, 8)?),
        created_at: time(row, 9)?,
        expires_at: time(row, 10)?,
        closed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::query_plan;

    #[test]
    fn asks_are_found_and_forgotten_through_an_index_and_never_by_a_scan() {
        for statement in [&INBOUND, &OUTBOUND, &OF_JOB, &FORGET_ASKS, &CLOSE_ASK, &ASK] {
            let plan = query_plan(statement);
            let is_fine = |step: &String| step.starts_with("SEARCH") || step.starts_with("LIST SUBQUERY");
            assert!(plan.iter().all(is_fine), "{}: {plan:?}", statement.sqlite());
        }
    }
}
