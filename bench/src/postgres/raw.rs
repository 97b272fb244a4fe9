//! Raw SQL: one connection that writes the rows of our own run in batches of our run's size, one prepared statement per table and
//! kind of write, all of a batch sent together, with the same tables, indexes and settings. It reads and locks nothing.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use store_sql::{SCHEMA_VERSION, migrate_postgres_to};
use test_postgres::Schema;
use tokio_postgres::Client;

use super::rows::{Many, Value, rows};
use super::server::{Server, address};

/// The rows that one finished job of our run left, as a pattern for all.
struct Pattern {
    facts: Vec<Vec<Value>>,
    job: Vec<Value>,
    agenda: Vec<Value>,
    bodies: Vec<Vec<Value>>,
}

/// The statements of a batch.
struct Batch {
    new_jobs: Many,
    jobs: Many,
    new_agenda: Many,
    /// Taking is a write of its own.
    taken: Many,
    agenda: Many,
    bodies: Many,
    facts: Many,
}

const JOB_CHANGES: [&str; 4] = ["id", "state", "updated_at", "view"];
const AGENDA_CHANGES: [&str; 10] = [
    "record_id",
    "version",
    "checksum",
    "owner",
    "lease_expires_at",
    "heartbeat_at",
    "held",
    "lane",
    "ready",
    "due_at",
];

/// Writes as many jobs as our run did, after the pattern that it left in its schema, which goes; jobs per second.
pub async fn run(server: &Server, ours: Schema, jobs: usize, facts_per_transaction: f64) -> Result<f64> {
    let pattern = pattern(&ours.client().await).await?;
    let schema = server.fresh().await?;
    migrate_postgres_to(&address(&schema)?, SCHEMA_VERSION).await?;
    let client = schema.client().await;
    // Statements are planned once, while the tables are empty; as our store does.
    let by_index = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";
    client.batch_execute(by_index).await?;
    let mut batch = Batch::prepare(&client).await?;
    // As in our run, a transaction holds steps of all kinds: as many groups of jobs as there are steps take turns.
    let steps = pattern.facts.len();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a batch has few thousand facts"
    )]
    let per_step = (facts_per_transaction / steps as f64).round().max(1.0) as usize;
    let groups = jobs.div_ceil(per_step);
    let begin = Instant::now();
    let mut position = 0;
    for turn in 0..groups + steps - 1 {
        for step in 0..steps {
            let Some(group) = turn.checked_sub(step).filter(|group| *group < groups) else { continue };
            for job in group * per_step..jobs.min((group + 1) * per_step) {
                position += 1;
                pattern.step(&mut batch, job, step, position)?;
            }
        }
        batch.send(&client).await?;
    }
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = jobs as f64 / begin.elapsed().as_secs_f64();
    let written: i64 = client.query_one("SELECT count(*) FROM facts", &[]).await?.get(0);
    ensure!(written == position, "{written} of {position} facts were written");
    Ok(rate)
}

async fn pattern(client: &Client) -> Result<Pattern> {
    let id: String = client
        .query_opt("SELECT id FROM jobs WHERE state = 'completed' LIMIT 1", &[])
        .await?
        .context("our run finished no job")?
        .get(0);
    let id = [Value::Text(id)];
    let one = |mut rows: Vec<Vec<Value>>| rows.pop().context("a job has a row in each table");
    let facts = rows(client, "SELECT * FROM facts WHERE stream = $1 ORDER BY version", &id).await?;
    let job = one(rows(client, "SELECT * FROM jobs WHERE id = $1", &id).await?)?;
    let agenda = one(rows(client, "SELECT * FROM agenda WHERE record_id = $1", &id).await?)?;
    let bodies = rows(client, "SELECT * FROM bodies WHERE record_id = $1 ORDER BY name", &id).await?;
    Ok(Pattern { facts, job, agenda, bodies })
}

impl Pattern {
    /// The rows of one step of one job: created; taken and dispatched; ...; ended.
    fn step(&self, batch: &mut Batch, job: usize, step: usize, position: i64) -> Result<()> {
        let id = Value::Text(format!("work-{:032x}", job + 1));
        let now = Value::Integer(1_700_000_000_000_000 + position);
        let last = self.facts.len() - 1;
        let mut fact = self.facts[step].clone();
        fact[0] = Value::Integer(position);
        fact[1] = id.clone();
        batch.facts.push(fact);
        let text = |text: &str| Value::Text(text.to_owned());
        if step == 0 {
            let mut row = self.job.clone();
            (row[0], row[1], row[2]) = (id.clone(), text("queued"), now.clone());
            batch.new_jobs.push(row);
            let mut row = self.agenda.clone();
            (row[0], row[9], row[13], row[14]) = (id.clone(), text("noop"), Value::Integer(1), Value::Null);
            batch.new_agenda.push(row);
        } else {
            let state = if step == last { "completed" } else { "running" };
            // The view after each step is not kept: the last one, the largest, stands for all.
            batch.jobs.push(vec![id.clone(), text(state), now.clone(), self.job[7].clone()]);
            let held = |version: usize, held: bool| -> Result<Vec<Value>> {
                Ok(vec![
                    id.clone(),
                    Value::Integer(i64::try_from(version)?),
                    self.agenda[3].clone(),
                    text("node-bench-boot-1"),
                    now.clone(),
                    now.clone(),
                    Value::Integer(i64::from(held)),
                    Value::Null,
                    Value::Integer(0),
                    now.clone(),
                ])
            };
            if step == 1 {
                batch.taken.push(held(step, true)?);
            }
            batch.agenda.push(held(step + 1, step != last)?);
        }
        let body = if step == 0 { self.bodies.first() } else { self.bodies.last().filter(|_| step == last) };
        if let Some(body) = body {
            let mut body = body.clone();
            body[0] = id;
            batch.bodies.push(body);
        }
        Ok(())
    }
}

impl Batch {
    async fn prepare(client: &Client) -> Result<Self> {
        Ok(Self {
            new_jobs: Many::insert(client, "jobs").await?,
            jobs: Many::update(client, "jobs", &JOB_CHANGES).await?,
            new_agenda: Many::insert(client, "agenda").await?,
            taken: Many::update(client, "agenda", &AGENDA_CHANGES).await?,
            agenda: Many::update(client, "agenda", &AGENDA_CHANGES).await?,
            bodies: Many::insert(client, "bodies").await?,
            facts: Many::insert(client, "facts").await?,
        })
    }

    /// In one transaction.
    async fn send(&mut self, client: &Client) -> Result<()> {
        let Self { new_jobs, jobs, new_agenda, taken, agenda, bodies, facts } = self;
        let writes = [&*new_jobs, new_agenda, taken, jobs, agenda, bodies, facts];
        let (begun, written, committed) = futures::join!(
            client.batch_execute("BEGIN"),
            futures::future::join_all(writes.map(|many| many.send(client))),
            client.batch_execute("COMMIT"),
        );
        begun?;
        written.into_iter().collect::<Result<Vec<u64>, _>>()?;
        committed?;
        for many in [new_jobs, jobs, new_agenda, taken, agenda, bodies, facts] {
            many.clear();
        }
        Ok(())
    }
}
