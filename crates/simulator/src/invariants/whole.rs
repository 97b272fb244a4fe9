//! The whole state at once: every view folded from scratch, every row looked at. Slow, so only now and then.

use domain::job::JobState;
use domain::record::apply;
use domain::{OperationId, Record, RecordId, Timestamp};
use store::{Tables, fact_kind};

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
            for (expected, (version, position)) in (1..).zip(positions) {
                must(*version == expected, "I11", || format!("{id} lacks version {expected}"))?;
                let stored = &tables.facts[position];
                let set_back = domain::timers::is_move_back(&stored.fact);
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
        let waits = match record {
            Record::Event(_) => false,
            // Its jobs bring it back.
            Record::Run(run) => run.open_jobs().next().is_some(),
            Record::Operation(operation) => {
                let job: RecordId = operation.link.job_id.clone().into();
                let awaited = self.streams.get(&job).and_then(|job| job.life.waits_for.as_ref());
                must(!is_open(record) || awaited == Some(&operation.id), "I7", || {
                    format!("{id} is open, and {job} waits for {awaited:?}")
                })?;
                false
            }
            Record::Job(job) => match &job.state {
                JobState::AwaitingInput | JobState::Blocked => true,
                JobState::Running => job.attempts.is_empty(),
                JobState::AwaitingExternal { operation, .. } => {
                    let awaited = self.record(&operation.clone().into()).filter(|awaited| is_open(awaited));
                    must(awaited.is_some(), "I7", || format!("{id} waits for {operation}, which is over"))?;
                    let told =
                        matches!(awaited, Some(Record::Operation(outside)) if outside.cancel.is_some());
                    must(told || job.cancel.is_none(), "I14", || {
                        format!("{id} was asked to stop, and {operation} was not")
                    })?;
                    true
                }
                JobState::Queued { .. }
                | JobState::Dispatching
                | JobState::Delivered
                | JobState::Completed
                | JobState::Failed
                | JobState::Cancelled
                | JobState::Expired
                | JobState::Unavailable { .. } => false,
            },
        };
        must(waits || row.ready || row.due_at.is_some(), "agenda", || {
            format!("nothing brings {id} back: {row:?}")
        })
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
            Some(Record::Operation(operation)) => format!("{operation:?}"),
            Some(Record::Event(event)) => format!("{event:?}"),
            Some(Record::Run(run)) => format!("{run:?}"),
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

/// What a record refers to lies beside it.
fn bodies_are_there(tables: &Tables, id: &RecordId, record: &Record) -> Result<(), Violation> {
    let of_run;
    let bodies = match record {
        Record::Job(job) => job.bodies.as_slice(),
        Record::Operation(operation) => operation.handle.as_slice(),
        Record::Event(event) => std::slice::from_ref(&event.said.payload),
        Record::Run(run) => {
            of_run = [run.begun.plan, run.begun.input];
            &of_run
        }
    };
    let lost = bodies
        .iter()
        .find(|body| !tables.bodies.contains_key(&(id.clone(), body.name.as_str(), body.sha256)));
    must(lost.is_none(), "I9", || format!("{id} refers to a body that is not there: {lost:?}"))
}
