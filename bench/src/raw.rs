//! The raw database: one connection that writes the rows of our own run, in batches of our run's size, with the same sync
//! setting and the same indexes, and reads nothing.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
pub use measure::raw::{Checkpointer, open};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

/// The rows that one finished job of our run left, as a pattern for all.
struct Pattern {
    facts: Vec<Vec<Value>>,
    job: Vec<Value>,
    /// The view after each of the three steps is not kept: the last one, the largest, stands for all.
    view: String,
    agenda: Vec<Value>,
    bodies: Vec<(String, Vec<u8>, Vec<u8>)>,
}

/// Requests that our run makes per job: create, take, dispatch, complete. A take is one row of a batch.
const COMMITS_PER_JOB: f64 = 3.0;

/// Writes as many jobs as our run did; jobs per second.
pub fn run(path: &Path, ours: &Path, jobs: usize, requests_per_batch: f64) -> Result<f64> {
    let pattern = pattern(ours)?;
    let mut connection = open(path)?;
    let checkpointer = Checkpointer::beside(&mut connection, path)?;
    // As in our run, a transaction holds commits of all three kinds: three groups of jobs take turns. A lone caller's
    // transactions hold one commit each.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a batch has few thousand requests"
    )]
    let per_step = (requests_per_batch / COMMITS_PER_JOB).ceil().max(1.0) as usize;
    let mixed = requests_per_batch >= COMMITS_PER_JOB;
    let begin = Instant::now();
    let mut position = 0_i64;
    let groups = jobs.div_ceil(per_step);
    let size = |index: usize| per_step.min(jobs - (index * per_step).min(jobs));
    for turn in 0..groups + 2 {
        if mixed {
            connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        for step in 0..3 {
            let Some(index) = turn.checked_sub(step).filter(|index| *index < groups) else { continue };
            if !mixed {
                connection.execute_batch("BEGIN IMMEDIATE")?;
            }
            for job in index * per_step..index * per_step + size(index) {
                position += 1;
                pattern.step(&connection, job, step, position)?;
            }
            if !mixed {
                connection.execute_batch("COMMIT")?;
            }
        }
        if mixed {
            connection.execute_batch("COMMIT")?;
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = jobs as f64 / begin.elapsed().as_secs_f64();
    drop(connection);
    checkpointer.join();
    Ok(rate)
}

/// Bare transactions with the rows of a new job each.
pub struct Creator {
    pattern: Pattern,
    connection: Connection,
    created: usize,
}

impl Creator {
    /// On a new file, with the rows of a finished job of our run as the pattern.
    pub fn new(path: &Path, ours: &Path) -> Result<Self> {
        Ok(Self { pattern: pattern(ours)?, connection: open(path)?, created: 0 })
    }

    /// One transaction.
    pub fn create(&mut self) -> Result<()> {
        self.created += 1;
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        self.pattern.step(&self.connection, self.created, 0, i64::try_from(self.created)?)?;
        self.connection.execute_batch("COMMIT")?;
        Ok(())
    }
}

fn pattern(ours: &Path) -> Result<Pattern> {
    let connection = Connection::open(ours)?;
    let row = |sql: &str, id: &str| -> Result<Vec<Value>> {
        let mut statement = connection.prepare(sql)?;
        let columns = statement.column_count();
        Ok(statement.query_row([id], |row| (0..columns).map(|column| row.get(column)).collect())?)
    };
    let id: String = connection
        .query_row("SELECT id FROM jobs WHERE state = 'completed' LIMIT 1", [], |row| row.get(0))
        .context("our run finished no job")?;
    let mut statement = connection.prepare("SELECT * FROM facts WHERE stream = ?1 ORDER BY version")?;
    let facts = statement
        .query_map([&id], |row| (0..11).map(|column| row.get(column)).collect())?
        .collect::<Result<_, _>>()?;
    let mut statement =
        connection.prepare("SELECT name, sha256, bytes FROM bodies WHERE record_id = ?1 ORDER BY name")?;
    let bodies = statement
        .query_map([&id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let job = row("SELECT * FROM jobs WHERE id = ?1", &id)?;
    let agenda = row("SELECT * FROM agenda WHERE record_id = ?1", &id)?;
    let view = connection.query_row("SELECT view FROM jobs WHERE id = ?1", [&id], |row| row.get(0))?;
    Ok(Pattern { facts, job, view, agenda, bodies })
}

impl Pattern {
    /// The rows of one step of one job: create, take and dispatch, complete.
    fn step(&self, connection: &Connection, job: usize, step: usize, position: i64) -> Result<()> {
        let id = format!("work-{:032x}", job + 1);
        let now = 1_700_000_000_000_000 + position;
        let mut fact = self.facts[step].clone();
        fact[0] = Value::Integer(position);
        fact[1] = Value::Text(id.clone());
        connection
            .prepare_cached("INSERT INTO facts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")?
            .execute(params_from_iter(fact))?;
        if step == 0 {
            let mut row = self.job.clone();
            row[0] = Value::Text(id.clone());
            row[1] = Value::Text("queued".to_owned());
            row[2] = Value::Integer(now);
            connection
                .prepare_cached("INSERT INTO jobs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
                .execute(params_from_iter(row))?;
            let mut row = self.agenda.clone();
            row[0] = Value::Text(id.clone());
            row[9] = Value::Text("noop".to_owned());
            row[13] = Value::Integer(1);
            row[14] = Value::Null;
            connection
                .prepare_cached(
                    "INSERT INTO agenda VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
                )?
                .execute(params_from_iter(row))?;
        } else {
            let state = if step == 1 { "dispatching" } else { "completed" };
            connection
                .prepare_cached("UPDATE jobs SET state = ?2, updated_at = ?3, view = ?4 WHERE id = ?1")?
                .execute(params![id, state, now, self.view])?;
            // Taking is a write of its own.
            for due_at in std::iter::repeat_n(now, if step == 1 { 2 } else { 1 }) {
                connection
                    .prepare_cached(
                        "UPDATE agenda SET version = ?2, checksum = ?3, owner = 'node-bench-boot-1', \
                         lease_expires_at = ?4, heartbeat_at = ?4, claim_version = 0, held = 1, lane = NULL, \
                         ready = 0, due_at = ?5 WHERE record_id = ?1",
                    )?
                    .execute(params![id, i64::try_from(step)? + 1, self.agenda[3], now, due_at])?;
            }
        }
        let body = match step {
            0 => self.bodies.first(),
            2 => self.bodies.last(),
            _ => None,
        };
        if let Some((name, sha256, bytes)) = body {
            connection
                .prepare_cached("INSERT INTO bodies VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![id, name, sha256, bytes])?;
        }
        Ok(())
    }
}
