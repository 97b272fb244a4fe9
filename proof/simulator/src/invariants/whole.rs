//! The whole state at once: every view folded from scratch, every row looked at. Slow, so only now and then.

use domain::checkpoint::is_checkpoint;
use domain::job::{Job, JobState};
use domain::record::apply;
use domain::{BodyRef, OperationId, Record, RecordId, Timestamp};
use store::{StoreError, Tables, fact_kind, sha256};

use super::{Checker, Violation, broken, is_open, must};
use crate::heap::SECOND;

/// How long a due record may wait for a worker when nothing goes wrong.
const LONGEST_WAIT: i64 = 90 * SECOND;
/// Facts of a stuck record that are told.
const LAST_FACTS: usize = 8;

impl Checker {
    /// Everything that is stored agrees with itself and with what was acknowledged.
    pub fn whole(&self, tables: &Tables) -> Result<(), Violation> {
        for (id, positions) in &tables.streams {
            let mut folded = None;
            let mut last = Timestamp::default();
            let first = first_version(tables, id);
            for (expected, (version, position)) in (first..).zip(positions) {
                must(*version == expected, "I11", || format!("{id} lacks version {expected}"))?;
                let stored = &tables.facts[position];
                let begins = expected == 1 || expected > first || is_checkpoint(fact_kind(&stored.fact));
                must(begins, "I11", || format!("{id} begins at version {first}, and not with a checkpoint"))?;
                let set_back = stored.fact.moves_back();
                must(stored.at >= last || set_back, "I11", || {
                    format!("{id} goes back in time at version {version}")
                })?;
                last = stored.at;
                apply(&mut folded, id, &stored.fact, stored.at)
                    .map_err(|misfold| Violation { invariant: "I1", text: format!("{id}: {misfold}") })?;
            }
            let view = tables.views.get(id).map(AsRef::as_ref);
            must(view == folded.as_ref(), "I1", || format!("the view of {id} is not the fold of its facts"))?;
            must(self.record(id) == folded.as_ref(), "I1", || format!("{id} changed without a commit"))?;
            if let Some(record) = &folded {
                self.is_looked_after(tables, id, record)?;
                bodies_are_there(tables, id, record)?;
            }
        }
        must(tables.views.len() == tables.streams.len(), "I1", || "a view has no facts".to_owned())?;
        let lost = self.streams.keys().find(|id| !tables.streams.contains_key(id));
        must(lost.is_none(), "I0", || format!("{lost:?} was accepted and is gone"))?;
        self.all_present(tables)
    }

    /// Every record, open or over, has a row that brings it back, or waits for someone outside.
    fn is_looked_after(&self, tables: &Tables, id: &RecordId, record: &Record) -> Result<(), Violation> {
        let Some(row) = tables.agenda.get(id) else {
            return broken("agenda", || format!("{id} has no agenda row"));
        };
        let waits = if let Some(run) = record.as_run() {
            // Its jobs bring it back.
            run.open_jobs().next().is_some()
        } else if let Some(operation) = record.as_operation() {
            let job: RecordId = operation.link.job_id.clone().into();
            let awaited = self.streams.get(&job).and_then(|job| job.life.waits_for.as_ref());
            must(!is_open(record) || awaited == Some(&operation.id), "I7", || {
                format!("{id} is open, and {job} waits for {awaited:?}")
            })?;
            false
        } else if let Some(job) = record.as_job() {
            self.waits_outside(id, job)?
        } else {
            false
        };
        must(waits || row.ready || row.due_at.is_some(), "agenda", || {
            format!("nothing brings {id} back: {row:?}")
        })
    }

    /// Whether a job waits for someone outside.
    fn waits_outside(&self, id: &RecordId, job: &Job) -> Result<bool, Violation> {
        match &job.state {
            JobState::AwaitingInput | JobState::Blocked => Ok(true),
            JobState::Running => Ok(job.attempts.is_empty()),
            JobState::AwaitingExternal { operation, .. } => {
                let awaited = self.record(&operation.clone().into()).filter(|awaited| is_open(awaited));
                must(awaited.is_some(), "I7", || format!("{id} waits for {operation}, which is over"))?;
                let told =
                    awaited.and_then(Record::as_operation).is_some_and(|outside| outside.cancel.is_some());
                must(told || job.cancel.is_none(), "I14", || {
                    format!("{id} was asked to stop, and {operation} was not")
                })?;
                Ok(true)
            }
            JobState::Queued { .. }
            | JobState::Dispatching
            | JobState::Delivered
            | JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Expired
            | JobState::Unavailable { .. } => Ok(false),
        }
    }

    /// When nothing goes wrong any more, nothing that is due waits for long.
    pub fn nothing_overdue(&self, tables: &Tables, now: Timestamp) -> Result<(), Violation> {
        let Some(since) = self.calm_since else { return Ok(()) };
        let overdue = tables.agenda.iter().find(|(_, row)| {
            row.due_at.is_some_and(|due_at| due_at.max(since).plus_micros(LONGEST_WAIT) < now)
        });
        let Some((id, row)) = overdue else { return Ok(()) };
        broken("liveness", || format!("at {now:?} nobody has looked after {id}: {row:?}"))
    }

    /// A service took work under an intent: sooner or later a record knows of it, whatever happens in between.
    pub fn begins_outside(&mut self, id: &OperationId) {
        self.unknown_outside.insert(id.clone().into());
    }

    /// Nothing runs outside that no record knows of: asked at the end, when everything is over.
    pub fn all_known(&self) -> Result<(), Violation> {
        let unknown = self.unknown_outside.first();
        must(unknown.is_none(), "I9", || format!("{unknown:?} runs outside, and no record knows of it"))
    }

    /// Nothing that was accepted is open any more.
    pub fn all_over(&self, tables: &Tables) -> Result<(), Violation> {
        let Some((id, stream)) =
            self.streams.iter().find(|(_, stream)| stream.record.as_ref().is_some_and(is_open))
        else {
            return Ok(());
        };
        let state = match &stream.record {
            Some(Record::Job(job)) => format!("{:?}, {:?}", job.state, job.state_reason),
            Some(record) => format!("{record:?}"),
            None => String::new(),
        };
        let positions = tables.streams.get(id).into_iter().flat_map(|stream| stream.values().rev());
        let facts: Vec<_> =
            positions.take(LAST_FACTS).map(|position| fact_kind(&tables.facts[position].fact)).collect();
        broken("liveness", || {
            format!(
                "{id} is stuck: {state}; agenda {:?}; last facts, newest first: {facts:?}",
                tables.agenda.get(id)
            )
        })
    }
}

/// Where what is left of a stream begins; 1 if nothing has gone.
pub(super) fn first_version(tables: &Tables, id: &RecordId) -> u64 {
    tables.streams.get(id).and_then(|stream| stream.first_key_value()).map_or(1, |(version, _)| *version)
}

/// A read gives the bytes that the digest names, or says that they are damaged; it says so only of damaged ones.
pub fn body_read(
    tables: &Tables,
    id: &RecordId,
    body: BodyRef,
    answer: &Result<Option<Vec<u8>>, StoreError>,
) -> Result<(), Violation> {
    let stored = tables.bodies.get(&(id.clone(), body.name.as_str(), body.sha256));
    let is_whole = stored.map(|bytes| sha256(bytes) == body.sha256);
    let fits = match answer {
        Ok(Some(bytes)) => sha256(bytes) == body.sha256,
        Ok(None) => is_whole.is_none(),
        Err(StoreError::BodyDamaged(_)) => is_whole != Some(true),
        Err(_) => true,
    };
    must(fits, "body", || {
        let given = answer.as_ref().map(|bytes| bytes.as_ref().map(|bytes| sha256(bytes)));
        format!("the {} of {id} is {:?}, and a read gave {given:?}", body.name.as_str(), body.sha256)
    })
}

/// What a record refers to lies beside it.
fn bodies_are_there(tables: &Tables, id: &RecordId, record: &Record) -> Result<(), Violation> {
    let bodies = match record.as_operation() {
        // What its service said is kept as long as nobody purges it; without its handle nobody could stop it.
        Some(operation) => operation.handle.iter().copied().collect(),
        None => record.named_bodies(),
    };
    let lost = bodies
        .iter()
        .find(|body| !tables.bodies.contains_key(&(id.clone(), body.name.as_str(), body.sha256)));
    must(lost.is_none(), "I9", || format!("{id} refers to a body that is not there: {lost:?}"))
}
