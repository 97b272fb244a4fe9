//! How many jobs are in each state, and how many of each executor are not over, counted in the file: once, see `sqlite/counts.rs`.
//! On a server they are kept instead: see `postgres/tally.rs`.

use domain::job::JobStateName;
use store::StoreError;

use crate::database::{Database, optional_text, text, unsigned};
use crate::dialect::{Sql, open};

static JOB_COUNTS: Sql = Sql::new("SELECT state, count(*) FROM jobs GROUP BY state");

/// States that have jobs, in the order of the states.
pub(crate) async fn job_counts<D: Database>(database: &D) -> Result<Vec<(JobStateName, u64)>, StoreError> {
    let rows = database.query(&JOB_COUNTS, &[], |row| Ok((text(row, 0)?, unsigned(row, 1)?))).await;
    let mut counts = Vec::new();
    for (state, count) in rows.map_err(D::read_failed)? {
        let Some(state) = JobStateName::parse(&state) else {
            return Err(StoreError::Broken(format!("jobs are in an unknown state {state:?}")));
        };
        counts.push((state, count));
    }
    counts.sort_unstable();
    Ok(counts)
}

// Only jobs that are not over are looked at, and their executor never changes.
static OPEN_JOBS: Sql = Sql::new(concat!(
    "SELECT view -> 'spec' ->> 'executor', count(*) FROM jobs WHERE ",
    open!(),
    " GROUP BY 1"
));

/// Jobs that are not over, of each executor that has some.
pub(crate) async fn open_by_executor<D: Database>(database: &D) -> Result<Vec<(String, u64)>, StoreError> {
    let rows = database.query(&OPEN_JOBS, &[], |row| Ok((optional_text(row, 0)?, unsigned(row, 1)?))).await;
    let rows = rows.map_err(D::read_failed)?;
    Ok(rows.into_iter().filter_map(|(executor, count)| Some((executor?, count))).collect())
}
