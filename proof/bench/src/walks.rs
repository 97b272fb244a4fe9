//! Verify and rebuild, beside raw SQLite reading the same rows.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use domain::Timestamp;
use domain::attention::Retention;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use store_sql::{open_for_reading, open_for_rebuilding, rebuild, verify};

/// Raw reading and verify take turns so often; the round with the middle ratio is shown.
const ROUNDS: usize = 5;

/// Prints the table.
pub fn print(path: &Path) -> Result<()> {
    let connection = open_for_reading(path)?;
    // Once to warm the cache for both.
    let rows = read_all(&connection)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        read_all(&connection)?;
        let raw = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let verified = verify(&connection)?;
        let ours = begin.elapsed().as_secs_f64();
        ensure!(verified.difference_count == 0, "verify found differences: {:?}", verified.differences);
        rounds.push((raw, ours, verified));
    }
    rounds.sort_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
    let (raw, ours, verified) = rounds.swap_remove(ROUNDS / 2);
    drop(connection);
    let (mut connection, _lock) = open_for_rebuilding(path)?;
    let begin = Instant::now();
    let rebuilt = rebuild(&mut connection, Retention::DEFAULT, Timestamp::from_seconds(1_700_000_000))?;
    let rebuilding = begin.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_second = |count: u64, seconds: f64| count as f64 / seconds;
    println!("| walk | facts/s | ratio |");
    println!("| --- | ---: | ---: |");
    println!("| raw SQLite reading the same {rows} rows | {:.0} | 1 |", per_second(verified.facts, raw));
    println!("| verify: read, fold, compare | {:.0} | {:.2} |", per_second(verified.facts, ours), raw / ours);
    let rate = per_second(rebuilt.facts, rebuilding);
    println!("| rebuild ({:.1} s for a million facts) | {rate:.0} | {:.2} |", 1e6 / rate, raw / rebuilding);
    Ok(())
}

/// Reads every column of every row that verify reads, in the order of the streams.
fn read_all(connection: &Connection) -> Result<u64> {
    let mut rows_read = 0;
    let mut bytes = 0;
    for sql in [
        "SELECT * FROM facts ORDER BY stream, version",
        "SELECT * FROM jobs ORDER BY id",
        "SELECT * FROM agenda ORDER BY record_id",
        "SELECT * FROM bodies ORDER BY record_id",
    ] {
        let mut statement = connection.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            rows_read += 1;
            for column in 0..columns {
                bytes += match row.get_ref(column)? {
                    ValueRef::Text(value) | ValueRef::Blob(value) => value.len(),
                    ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 8,
                };
            }
        }
    }
    ensure!(bytes > 0, "there was nothing to read");
    Ok(rows_read)
}
