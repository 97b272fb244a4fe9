//! The smallest write path: decide a command and what follows from it, all or nothing, and keep the facts.

use std::collections::{BTreeMap, VecDeque};

use domain::job::Job;
use domain::operation::Operation;
use domain::record::{apply, decide};
use domain::{Command, Decision, Fact, Record, RecordId, Refusal, Timestamp};

/// More commands than this never follow from one.
const MAX_COMMANDS_IN_A_STEP: usize = 10;

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) record: RecordId,
    pub(crate) at: Timestamp,
    pub(crate) fact: Fact,
}

/// Records with their facts.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) records: BTreeMap<RecordId, Record>,
    pub(crate) ledger: Vec<Line>,
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Done,
    Nothing,
    Refused(Refusal),
}

impl World {
    /// Decides the command and all that follows from it; a refusal anywhere undoes the step.
    pub(crate) fn execute(
        &mut self,
        id: impl Into<RecordId>,
        command: impl Into<Command>,
        now: Timestamp,
    ) -> Outcome {
        let mut step = self.clone();
        let mut waiting = VecDeque::from([(id.into(), command.into())]);
        let mut decided = 0;
        let mut refused = None;
        while let Some((id, command)) = waiting.pop_front() {
            decided += 1;
            assert!(decided <= MAX_COMMANDS_IN_A_STEP, "a step does not end: {command:?}");
            match decide(step.records.get(&id), &id, &command, now) {
                Decision::Facts { facts, consequences } => {
                    for fact in facts {
                        step.record(&id, fact, now);
                    }
                    waiting.extend(consequences.into_iter().map(|next| (next.record, next.command)));
                }
                Decision::Nothing => {}
                Decision::Refused { refusal, evidence, consequences } if decided == 1 => {
                    if let Some(evidence) = evidence {
                        step.record(&id, evidence, now);
                    }
                    waiting.extend(consequences.into_iter().map(|next| (next.record, next.command)));
                    refused = Some(refusal);
                }
                Decision::Refused { refusal, .. } => return Outcome::Refused(refusal),
            }
        }
        let happened = step.ledger.len() > self.ledger.len();
        *self = step;
        if let Some(refusal) = refused {
            return Outcome::Refused(refusal);
        }
        if happened { Outcome::Done } else { Outcome::Nothing }
    }

    /// The world that the ledger alone tells of.
    pub(crate) fn folded_again(&self) -> Self {
        let mut again = Self::default();
        for line in self.ledger.clone() {
            again.record(&line.record, line.fact, line.at);
        }
        again
    }

    fn record(&mut self, id: &RecordId, fact: Fact, at: Timestamp) {
        let mut state = self.records.remove(id);
        apply(&mut state, id, &fact, at).expect("a decided fact folds");
        self.records.insert(id.clone(), state.expect("a folded record is there"));
        self.ledger.push(Line { record: id.clone(), at, fact });
    }

    /// The only job there is.
    pub(crate) fn job(&self) -> &Job {
        self.records.values().find_map(Record::as_job).expect("there is a job")
    }

    /// Every operation, oldest first.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.records.values().filter_map(Record::as_operation)
    }
}
