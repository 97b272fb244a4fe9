//! How many jobs are in each state, and how many of each executor are not over: kept by every commit that moves a job, read without
//! a look at the jobs.
//!
//! Any node may have written, so nothing is remembered here. The rows are changed after the ledger is locked: nobody waits for them.

use std::collections::{BTreeMap, HashMap};

use domain::Record;
use domain::job::{Job, JobStateName};
use store::{OpenJobs, Removal, StoreError};

use super::columnar::Columnar;
use super::failure::PostgresError;
use super::session::Session;
use crate::database::{Database, Given, one, text, unsigned};
use crate::dialect::{Sql, open};
use crate::prepare::Prepared;

/// By how much each state of each executor has more jobs than before.
#[derive(Default)]
pub(super) struct Moved<'a> {
    by: BTreeMap<(JobStateName, &'a str), i64>,
}

/// In which state each job was, by its id.
pub(super) type Before = HashMap<String, JobStateName>;

impl<'a> Moved<'a> {
    /// What these commits move.
    pub(super) fn by(fitting: &[(usize, &'a Prepared)], before: &Before) -> Self {
        let mut moved = Self::default();
        for change in fitting.iter().flat_map(|(_, prepared)| &prepared.commit.changes) {
            let Record::Job(job) = &*change.record else { continue };
            if change.facts.is_empty() {
                continue;
            }
            if let Some(state) = before.get(change.id.as_str()) {
                moved.shift(*state, job, -1);
            }
            match change.removal {
                Removal::Nothing | Removal::Bodies | Removal::Errors | Removal::OlderFacts => {
                    moved.shift(job.state.name(), job, 1);
                }
                Removal::Record => {}
            }
        }
        moved.by.retain(|_, by| *by != 0);
        moved
    }

    fn shift(&mut self, state: JobStateName, job: &'a Job, by: i64) {
        let executor = job.spec.executor.as_deref().unwrap_or_default();
        *self.by.entry((state, executor)).or_default() += by;
    }

    /// One row for each.
    pub(super) fn rows(&self) -> Columnar<'_, 3> {
        let mut rows = Columnar::new();
        for ((state, executor), by) in &self.by {
            rows.push([Given::from(state.as_str()), Given::from(*executor), Given::from(*by)]);
        }
        rows
    }
}

static JOB_COUNTS: Sql =
    Sql::new("SELECT state, sum(jobs)::bigint FROM job_tallies GROUP BY state HAVING sum(jobs) <> 0");

/// States that have jobs, in the order of the states.
pub(super) async fn job_counts(session: &Session) -> Result<Vec<(JobStateName, u64)>, StoreError> {
    let rows = session.query(&JOB_COUNTS, &[], |row| Ok((text(row, 0)?, unsigned(row, 1)?))).await;
    let mut counts = Vec::new();
    for (state, count) in rows.map_err(Session::read_failed)? {
        let Some(state) = JobStateName::parse(&state) else {
            return Err(StoreError::Broken(format!("jobs are counted in an unknown state {state:?}")));
        };
        counts.push((state, count));
    }
    counts.sort_unstable();
    Ok(counts)
}

static OPEN_JOBS: Sql = Sql::new(concat!(
    "SELECT coalesce(sum(jobs) FILTER (WHERE executor = $1), 0)::bigint, coalesce(sum(jobs), 0)::bigint \
     FROM job_tallies WHERE executor <> '' AND ",
    open!()
));

/// How many jobs are not over, of those that name an executor: of this one, and in all.
pub(super) async fn open_jobs(session: &Session, executor: &str) -> Result<OpenJobs, StoreError> {
    let read = |row: &dyn crate::database::Columns| {
        Ok(OpenJobs { of_executor: unsigned(row, 0)?, total: unsigned(row, 1)? })
    };
    let found = one(session, &OPEN_JOBS, &[executor.into()], read).await;
    Ok(found.map_err(Session::read_failed)?.unwrap_or_default())
}

static FORGET: Sql = Sql::new("DELETE FROM job_tallies");
// PostgreSQL reads no JSON in which U+0000 is written anywhere; views of earlier versions may hold it.
static COUNT: Sql = Sql::new(
    "INSERT INTO job_tallies (state, executor, jobs) \
     SELECT state, coalesce(replace(view, '\\u0000', '\\ufffd')::json -> 'spec' ->> 'executor', ''), count(*) FROM jobs GROUP BY 1, 2",
);

/// Counts all jobs anew, in a transaction that keeps everybody else from writing them.
pub(super) async fn count_anew(session: &Session) -> Result<(), PostgresError> {
    Database::execute(session, &FORGET, &[]).await?;
    Database::execute(session, &COUNT, &[]).await?;
    Ok(())
}

// One statement, and so one moment, also beside nodes that write.
static MISCOUNTS: Sql = Sql::new(
    "SELECT state || ' of ' || executor || ': ' || coalesce(kept.jobs, 0) || ' are kept, there are ' || coalesce(found.jobs, 0) \
     FROM (SELECT state, coalesce(replace(view, '\\u0000', '\\ufffd')::json -> 'spec' ->> 'executor', '') AS executor, count(*) AS jobs \
           FROM jobs GROUP BY 1, 2) AS found \
     FULL JOIN job_tallies AS kept USING (state, executor) \
     WHERE coalesce(kept.jobs, 0) <> coalesce(found.jobs, 0) ORDER BY state, executor",
);

/// What is not counted as it is.
pub(super) async fn miscounts(session: &Session) -> Result<Vec<String>, PostgresError> {
    session.query(&MISCOUNTS, &[], |row| text(row, 0)).await
}
