//! What a finished job takes on disk, table by table and index by index.

use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;

/// Prints the table.
pub fn print(path: &Path, jobs: usize) -> Result<()> {
    let connection = Connection::open(path)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_job = |bytes: i64| bytes as f64 / jobs as f64;
    println!("| table or index | bytes per finished job |");
    println!("| --- | ---: |");
    let mut statement =
        connection.prepare("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    let mut total = 0;
    for row in rows {
        let (name, bytes) = row?;
        total += bytes;
        if per_job(bytes) >= 1.0 {
            println!("| {name} | {:.0} |", per_job(bytes));
        }
    }
    println!("| all | {:.0} |", per_job(total));
    Ok(())
}
