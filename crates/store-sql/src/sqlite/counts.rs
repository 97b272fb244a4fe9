//! How many jobs are in each state, and how many of each executor are not over, known without a scan: read from the file once, when
//! first asked for, and kept by the writer.
//!
//! The writer holds the tally while it commits, and whoever counts the file opens its snapshot while it holds the tally: so each
//! commit is either in the snapshot or among the changes after it, never in both.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use domain::Record;
use domain::job::JobStateName;
use rusqlite::{Connection, OptionalExtension, Transaction};
use store::{AgendaRow, Change, OpenJobs, Removal, StoreError};

use super::failure::read_failed;
use crate::database::at_once;
use crate::dialect::Sql;
use crate::recent::Recent;
use crate::rows::signed;
use crate::tallies::{job_counts, open_by_executor};

const STATES: usize = JobStateName::ALL.len();

#[derive(Default)]
pub(crate) struct Counts {
    tally: Mutex<Tally>,
}

/// What the writer holds while it commits.
#[derive(Default)]
pub(crate) struct Tally {
    /// How many jobs there were in each state when the store was opened, if that is known.
    at_first: Option<[i64; STATES]>,
    /// How many jobs of each executor were not over then, if that is known.
    open_at_first: Option<Open>,
    /// What was committed since.
    moved: Moved,
    /// How often a commit was in doubt: what was counted before counts no more.
    doubts: u64,
}

/// By how much each state, and each executor, has more jobs than before.
#[derive(Clone, Default)]
pub(crate) struct Moved {
    states: [i64; STATES],
    open: Open,
}

/// Jobs that are not over, by executor; those whose count is 0 are left out.
type Open = BTreeMap<String, i64>;

impl Counts {
    /// For a commit: nobody opens a snapshot meanwhile.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().expect("no holder of the lock panics")
    }

    /// The counts, if they are known.
    pub(crate) fn known(&self) -> Option<Vec<(JobStateName, u64)>> {
        self.lock().known()
    }

    /// Counts the file; what is committed meanwhile is added.
    pub(crate) fn count(&self, connection: &Connection) -> Result<Vec<(JobStateName, u64)>, StoreError> {
        let (snapshot, moved, doubts) = {
            let tally = self.lock();
            (snapshot(connection).map_err(read_failed)?, tally.moved.states, tally.doubts)
        };
        let counted = scan(&snapshot)?;
        drop(snapshot);
        let mut tally = self.lock();
        if tally.doubts == doubts {
            let mut at_first = counted;
            for (count, moved) in at_first.iter_mut().zip(moved) {
                *count -= moved;
            }
            tally.at_first = Some(at_first);
        }
        Ok(tally.known().unwrap_or_else(|| listed(counted)))
    }

    /// The jobs that are not over, if that is known.
    pub(crate) fn known_open(&self, executor: &str) -> Option<OpenJobs> {
        self.lock().known_open(executor)
    }

    /// Counts in the file those that are not over; what is committed meanwhile is added.
    pub(crate) fn count_open(&self, connection: &Connection, executor: &str) -> Result<OpenJobs, StoreError> {
        let (snapshot, moved, doubts) = {
            let tally = self.lock();
            (snapshot(connection).map_err(read_failed)?, tally.moved.open.clone(), tally.doubts)
        };
        let counted = scan_open(&snapshot)?;
        drop(snapshot);
        let mut tally = self.lock();
        if tally.doubts == doubts {
            let mut at_first = counted.clone();
            for (executor, moved) in moved {
                shift(&mut at_first, &executor, -moved);
            }
            tally.open_at_first = Some(at_first);
        }
        Ok(tally.known_open(executor).unwrap_or_else(|| open_jobs(&counted, &Open::new(), executor)))
    }
}

impl Tally {
    /// This was committed.
    pub(crate) fn add(&mut self, moved: &Moved) {
        for (count, moved) in self.moved.states.iter_mut().zip(moved.states) {
            *count += moved;
        }
        for (executor, by) in &moved.open {
            shift(&mut self.moved.open, executor, *by);
        }
    }

    /// This may have been committed: the file is counted again when someone asks.
    pub(crate) fn doubt(&mut self) {
        self.at_first = None;
        self.open_at_first = None;
        self.doubts += 1;
    }

    fn known(&self) -> Option<Vec<(JobStateName, u64)>> {
        let mut counts = self.at_first?;
        for (count, moved) in counts.iter_mut().zip(self.moved.states) {
            *count += moved;
        }
        Some(listed(counts))
    }

    fn known_open(&self, executor: &str) -> Option<OpenJobs> {
        Some(open_jobs(self.open_at_first.as_ref()?, &self.moved.open, executor))
    }
}

static STATE: Sql = Sql::new("SELECT state FROM jobs WHERE id = $1");

impl Moved {
    /// Notes what a change is about to do to a job; a new one has no row yet.
    pub(crate) fn note(
        &mut self,
        connection: &Connection,
        recent: &Recent,
        change: &Change,
        row: Option<&AgendaRow>,
    ) -> rusqlite::Result<()> {
        let Record::Job(job) = &*change.record else { return Ok(()) };
        let before = match row {
            Some(_) => state_before(connection, recent, change)?,
            None => None,
        };
        let after = match change.removal {
            Removal::Nothing | Removal::Bodies | Removal::Errors | Removal::OlderFacts => {
                Some(job.state.name())
            }
            Removal::Record => None,
        };
        if let Some(before) = before {
            self.states[place(before)] -= 1;
        }
        if let Some(after) = after {
            self.states[place(after)] += 1;
        }
        if let Some(executor) = &job.spec.executor {
            let open =
                |state: Option<JobStateName>| i64::from(state.is_some_and(|state| !state.is_terminal()));
            shift(&mut self.open, executor, open(after) - open(before));
        }
        Ok(())
    }
}

fn state_before(
    connection: &Connection,
    recent: &Recent,
    change: &Change,
) -> rusqlite::Result<Option<JobStateName>> {
    if let Some(loaded) = recent.get(&change.id)
        && let Record::Job(job) = &*loaded.record
    {
        return Ok(Some(job.state.name()));
    }
    let mut statement = connection.prepare_cached(STATE.sqlite())?;
    let state: Option<String> = statement.query_row([change.id.as_str()], |row| row.get(0)).optional()?;
    Ok(state.as_deref().and_then(JobStateName::parse))
}

/// Begins to read, and reads: only then does the snapshot stand.
fn snapshot(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    let snapshot = connection.unchecked_transaction()?;
    snapshot.query_row("SELECT 1 FROM jobs LIMIT 1", [], |_| Ok(())).optional()?;
    Ok(snapshot)
}

fn scan(connection: &Connection) -> Result<[i64; STATES], StoreError> {
    let mut counts = [0; STATES];
    for (state, count) in at_once(job_counts(connection))? {
        counts[place(state)] = signed(count);
    }
    Ok(counts)
}

fn scan_open(connection: &Connection) -> Result<Open, StoreError> {
    let named = at_once(open_by_executor(connection))?;
    Ok(named.into_iter().map(|(executor, count)| (executor, signed(count))).collect())
}

fn open_jobs(at_first: &Open, moved: &Open, executor: &str) -> OpenJobs {
    let whole = |count: i64| u64::try_from(count).unwrap_or_default();
    let of = |open: &Open| open.get(executor).copied().unwrap_or_default();
    let total = at_first.values().sum::<i64>() + moved.values().sum::<i64>();
    OpenJobs { of_executor: whole(of(at_first) + of(moved)), total: whole(total) }
}

/// Adds to one count; one that comes to 0 is left out, so that names that are not in use take no room.
fn shift(open: &mut Open, executor: &str, by: i64) {
    if by == 0 {
        return;
    }
    match open.get_mut(executor) {
        Some(count) if *count + by == 0 => {
            open.remove(executor);
        }
        Some(count) => *count += by,
        None => {
            open.insert(executor.to_owned(), by);
        }
    }
}

/// States that have jobs, in the order of the states.
fn listed(counts: [i64; STATES]) -> Vec<(JobStateName, u64)> {
    let counts = JobStateName::ALL.into_iter().zip(counts);
    counts
        .filter_map(|(state, count)| Some((state, u64::try_from(count).ok().filter(|count| *count > 0)?)))
        .collect()
}

fn place(state: JobStateName) -> usize {
    JobStateName::ALL.iter().position(|one| *one == state).expect("every state is among all")
}
