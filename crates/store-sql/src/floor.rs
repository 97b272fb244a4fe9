//! The floor of the clock: no time before it is ever given again, also when the newest fact has gone with its record.

use domain::Timestamp;

use crate::database::{Database, integer, one};
use crate::dialect::Sql;

static NEWEST_FACT: Sql = Sql::new("SELECT at FROM facts ORDER BY position DESC LIMIT 1");
static KEPT_TIME: Sql = Sql::new("SELECT value FROM meta WHERE name = 'last_at'");

/// The time of the newest fact that is or was there: the clock starts no earlier.
pub(crate) async fn newest_fact<D: Database>(database: &D) -> Result<Timestamp, D::Error> {
    let newest = one(database, &NEWEST_FACT, &[], |row| integer(row, 0)).await?;
    let kept = one(database, &KEPT_TIME, &[], |row| integer(row, 0)).await?;
    Ok(Timestamp::from_micros(newest.max(kept).unwrap_or_default()))
}

static KEEP_TIME: Sql = Sql::new(
    "INSERT INTO meta (name, value) VALUES ('last_at', $1) ON CONFLICT (name) DO UPDATE \
     SET value = CASE WHEN excluded.value > meta.value THEN excluded.value ELSE meta.value END",
);

/// Remembers a time whose fact goes, or is not the last of the ledger.
pub(crate) async fn keep_time<D: Database>(database: &D, at: Timestamp) -> Result<(), D::Error> {
    database.execute(&KEEP_TIME, &[at.micros().into()]).await?;
    Ok(())
}
