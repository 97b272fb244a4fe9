//! The statements about the agenda that every database has in common, and what they are given.

use domain::job::anywhere;
use store::Take;
use store::limits::MAX_PAGE;

use crate::database::{Database, integer, one};
use crate::dialect::Sql;
use crate::rows::{agenda_columns, signed};

/// The agenda row of one record.
pub(crate) static AGENDA_ROW: Sql =
    Sql::new(concat!("SELECT ", agenda_columns!(), " FROM agenda WHERE record_id = $1"));

pub(crate) static INSERT_AGENDA: Sql = Sql::new(concat!(
    "INSERT INTO agenda (record_id, ",
    agenda_columns!(),
    ", kind) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
));

pub(crate) static UPDATE_AGENDA: Sql = Sql::new(
    "UPDATE agenda SET version = $2, checksum = $3, owner = $4, lease_expires_at = $5, heartbeat_at = $6, \
     claim_version = $7, held = $8, lane = $9, priority = $10, sequence = $11, ready_at = $12, ready = $13, \
     due_at = $14, limit_at = $15 WHERE record_id = $1",
);

/// What is due, oldest first.
macro_rules! due {
    () => {
        concat!(
            "SELECT record_id, ",
            agenda_columns!(),
            " FROM agenda WHERE kind = $1 AND due_at <= $2 ORDER BY due_at, record_id LIMIT $3"
        )
    };
}

/// What is ready in a lane, by priority and age.
macro_rules! ready {
    () => {
        concat!(
            "SELECT record_id, ",
            agenda_columns!(),
            " FROM agenda WHERE ready = 1 AND lane = $1 ORDER BY priority DESC, sequence, record_id LIMIT $2"
        )
    };
}

// Several nodes take from one PostgreSQL: each skips what another is taking at that moment. A file has one writer.
pub(crate) static DUE: Sql = Sql::differing(due!(), concat!(due!(), " FOR UPDATE SKIP LOCKED"));
pub(crate) static READY: Sql = Sql::differing(ready!(), concat!(ready!(), " FOR UPDATE SKIP LOCKED"));

/// What is held now is due before the longest lease is over.
pub(crate) static HELD: Sql = Sql::new(concat!(
    "SELECT record_id, ",
    agenda_columns!(),
    " FROM agenda WHERE kind = $1 AND due_at <= $2 AND held = 1 ORDER BY due_at"
));

/// How many are held of a lane and of those that are the same but for the node that they are pinned to: word for word what is indexed.
pub(crate) static HELD_IN_LANE: Sql = Sql::differing(
    "SELECT count(*) FROM agenda WHERE held = 1 AND lane IS NOT NULL AND CASE WHEN substr(lane, 1, 3) = 'at:' \
     THEN substr(lane, 4 + instr(substr(lane, 4), ':')) ELSE lane END = $1",
    "SELECT count(*) FROM agenda WHERE held = 1 AND lane IS NOT NULL AND CASE WHEN substr(lane, 1, 3) = 'at:' \
     THEN substr(lane, 4 + strpos(substr(lane, 4), ':')) ELSE lane END = $1",
);

/// How many are taken at most.
pub(crate) fn take_limit(take: &Take) -> i64 {
    signed(take.limit.min(MAX_PAGE) as u64)
}

/// How many the limit of a lane leaves to take. On PostgreSQL the lane is locked: nobody else takes of it meanwhile.
pub(crate) async fn left_by<D: Database>(
    database: &D,
    lane: &str,
    limit: Option<usize>,
    take: &Take,
) -> Result<i64, D::Error> {
    let Some(limit) = limit else { return Ok(take_limit(take)) };
    let held = one(database, &HELD_IN_LANE, &[anywhere(lane).into()], |row| integer(row, 0)).await?;
    Ok(take_limit(take).min(signed(limit as u64) - held.unwrap_or_default()).max(0))
}
