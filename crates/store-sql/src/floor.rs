//! The floor of the clock: no time before it is ever given again, also when the newest fact has gone with its record.

use domain::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use crate::dialect::Sql;

static NEWEST_FACT: Sql = Sql::new("SELECT at FROM facts ORDER BY position DESC LIMIT 1");
static KEPT_TIME: Sql = Sql::new("SELECT value FROM meta WHERE name = 'last_at'");

/// The time of the newest fact that is or was there: the clock starts no earlier.
pub(crate) fn newest_fact(connection: &Connection) -> rusqlite::Result<Timestamp> {
    let time = |sql: &'static Sql| connection.query_row(sql.sqlite(), [], |row| row.get(0)).optional();
    let (newest, kept): (Option<i64>, Option<i64>) = (time(&NEWEST_FACT)?, time(&KEPT_TIME)?);
    Ok(Timestamp::from_micros(newest.max(kept).unwrap_or_default()))
}

static KEEP_TIME: Sql = Sql::new(
    "INSERT INTO meta (name, value) VALUES ('last_at', $1) ON CONFLICT (name) DO UPDATE \
     SET value = CASE WHEN excluded.value > meta.value THEN excluded.value ELSE meta.value END",
);

/// Remembers a time whose fact goes, or is not the last of the ledger.
pub(crate) fn keep_time(connection: &Connection, at: Timestamp) -> rusqlite::Result<()> {
    connection.prepare_cached(KEEP_TIME.sqlite())?.execute([at.micros()])?;
    Ok(())
}
