//! The floor of the clock: no time before it is ever given again, also when the newest fact has gone with its record.

use domain::Timestamp;
use domain::timeline::FOLLOWED_MICROS;

use crate::clock;
use crate::database::{Database, integer, one};
use crate::dialect::Sql;

static NEWEST_FACT: Sql = Sql::new("SELECT at FROM facts ORDER BY position DESC LIMIT 1");
static KEPT_TIME: Sql = Sql::new("SELECT value FROM meta WHERE name = 'last_at'");

/// The time of the newest fact that is or was there: the clock starts no earlier.
pub(crate) async fn newest_fact<D: Database>(database: &D) -> Result<Timestamp, D::Error> {
    let newest = one(database, &NEWEST_FACT, &[], |row| integer(row, 0)).await?;
    let kept = one(database, &KEPT_TIME, &[], |row| integer(row, 0)).await?;
    let newest = Timestamp::from_micros(newest.max(kept).unwrap_or_default());
    // Facts from before the clock was set back are no floor: time is about to come to theirs once more.
    let steps = clock::clock(database).await?.steps;
    Ok(match steps.as_slice().last() {
        Some(step) if step.by_micros() < 0 && newest <= step.from.plus_micros(FOLLOWED_MICROS) => {
            newest.min(step.to)
        }
        Some(_) | None => newest,
    })
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

static SET_BACK: Sql =
    Sql::new("UPDATE meta SET value = CASE WHEN value > $1 THEN $1 ELSE value END WHERE name = 'last_at'");

/// The clock was set back to this time: what lies after it is no floor any more.
pub(crate) async fn set_back<D: Database>(database: &D, to: Timestamp) -> Result<(), D::Error> {
    database.execute(&SET_BACK, &[to.micros().into()]).await?;
    Ok(())
}
