//! The three answers of the rules: facts, nothing ("already so"), or a refusal with a stable code.

use crate::{Command, RecordId, Refusal};

/// Records that one commit changes because of the one that was ordered. What is over it goes on in later commits, from a cursor in the state
/// of a record that stays due until all is done.
pub const MAX_CONSEQUENCES: usize = 100;
/// Records above it that hear of its end in the same commit, whatever else is in there: the job of an operation, the run of the job, and the
/// events of both ends.
pub const MAX_NOTIFIED: usize = 4;

/// What a command comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision<F> {
    /// It happens: these facts, and what follows on other records in the same commit.
    Facts {
        /// What happened, in order.
        facts: Vec<F>,
        /// What must be decided in the same commit, all or nothing.
        consequences: Vec<Consequence>,
    },
    /// It is already so; nothing is written.
    Nothing,
    /// It may not happen. Evidence is what the record keeps of the attempt to do it, if anything.
    Refused {
        /// Why not.
        refusal: Refusal,
        /// A bounded trace of the refused report.
        evidence: Option<F>,
        /// What is written down on other records all the same, in one commit with the evidence.
        consequences: Vec<Consequence>,
    },
}

/// A command on another record that belongs to the same step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequence {
    /// The record that it is for.
    pub record: RecordId,
    /// What is ordered.
    pub command: Command,
}

impl<F> Decision<F> {
    /// One fact and nothing else.
    pub fn fact(fact: F) -> Self {
        Self::facts([fact])
    }

    /// These facts and nothing else.
    pub fn facts(facts: impl Into<Vec<F>>) -> Self {
        Self::Facts { facts: facts.into(), consequences: Vec::new() }
    }

    /// A refusal that leaves no trace.
    pub fn refuse(refusal: Refusal) -> Self {
        Self::Refused { refusal, evidence: None, consequences: Vec::new() }
    }

    /// Adds what follows on another record. Where nothing happens, nothing follows.
    pub fn then(mut self, record: impl Into<RecordId>, command: impl Into<Command>) -> Self {
        match &mut self {
            Self::Facts { consequences, .. } | Self::Refused { consequences, .. } => {
                consequences.push(Consequence { record: record.into(), command: command.into() });
            }
            Self::Nothing => {}
        }
        self
    }
}

impl<F> From<Refusal> for Decision<F> {
    fn from(refusal: Refusal) -> Self {
        Self::refuse(refusal)
    }
}
