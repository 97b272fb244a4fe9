//! How late jobs began, by the ledger: from the time in a job's title to the time at which its result was decided on, which is a
//! little after its start.

use anyhow::{Context, Result};
use rusqlite::{Connection, OpenFlags};

use super::Settings;
use super::enqueue::TITLE;
use crate::daemon::load;

const ENDS: &str = "SELECT jobs.view, facts.at FROM facts JOIN jobs ON facts.stream = jobs.id \
                    WHERE facts.kind LIKE 'job.completed/%'";

/// In milliseconds, of every completed job.
pub fn read(settings: &Settings) -> Result<Vec<f64>> {
    let ends: Vec<(String, i64)> = match &settings.database {
        Some(database) => load::runtime()?.block_on(async {
            let client = test_postgres::client(database).await;
            let rows = client.query(ENDS, &[]).await?;
            anyhow::Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
        })?,
        None => {
            let path = settings.directory.join("longhaul-data/longhaul.sqlite");
            let store = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let mut statement = store.prepare(ENDS)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<_>>()?
        }
    };
    ends.iter().map(|(view, at)| late(view, *at)).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn late(view: &str, at: i64) -> Result<f64> {
    let begin = view.find(TITLE).context("a job has its title")? + TITLE.len();
    let digits = view[begin..].split('"').next().context("a title ends")?;
    Ok((at - digits.parse::<i64>()?) as f64 / 1_000.0)
}
