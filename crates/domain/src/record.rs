//! All kinds of record behind one face, so that the write path is one path.

use thiserror::Error;

use crate::event::{self, Event, EventCommand, EventFact};
use crate::job::{self, Job, JobCommand, JobFact, ResultRefs};
use crate::operation::{self, Operation, OperationCommand, OperationFact};
use crate::run::{self, Run, RunCommand, RunFact};
use crate::{BodyRef, Decision, RecordId, Refusal, Timestamp};

/// The state of one record, folded from its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A job.
    Job(Box<Job>),
    /// An operation.
    Operation(Box<Operation>),
    /// An event.
    Event(Box<Event>),
    /// A run.
    Run(Box<Run>),
}

/// What may be ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Of a job.
    Job(JobCommand),
    /// Of an operation.
    Operation(OperationCommand),
    /// Of an event.
    Event(EventCommand),
    /// Of a run.
    Run(RunCommand),
}

/// What happened to a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// To a job.
    Job(JobFact),
    /// To an operation.
    Operation(OperationFact),
    /// To an event.
    Event(EventFact),
    /// To a run.
    Run(RunFact),
}

/// A fact that does not fit the state before it: the stream is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the fact does not fit the record before it: {0}")]
pub struct Misfold(pub &'static str);

/// Decides a command on the record with this id, present or not.
pub fn decide(state: Option<&Record>, id: &RecordId, command: &Command, now: Timestamp) -> Decision<Fact> {
    match (command, id, state) {
        (Command::Job(command), RecordId::Job(id), None) => job::decide_new(id, command, now).map(Fact::Job),
        (Command::Job(command), RecordId::Job(_), Some(Record::Job(job))) => {
            run::following(job, job::decide(job, command, now), now).map(Fact::Job)
        }
        (Command::Operation(command), RecordId::Operation(id), None) => {
            operation::decide_new(id, command, now).map(Fact::Operation)
        }
        (Command::Operation(command), RecordId::Operation(_), Some(Record::Operation(operation))) => {
            operation::decide(operation, command, now).map(Fact::Operation)
        }
        (Command::Event(command), RecordId::Event(id), None) => {
            event::decide_new(id, command).map(Fact::Event)
        }
        (Command::Event(command), RecordId::Event(_), Some(Record::Event(event))) => {
            event::decide(event, command).map(Fact::Event)
        }
        (Command::Run(command), RecordId::Run(id), None) => run::decide_new(id, command).map(Fact::Run),
        (Command::Run(command), RecordId::Run(_), Some(Record::Run(run))) => {
            run::decide(run, command, now).map(Fact::Run)
        }
        (
            Command::Job(_) | Command::Operation(_) | Command::Event(_) | Command::Run(_),
            RecordId::Job(_) | RecordId::Operation(_) | RecordId::Event(_) | RecordId::Run(_),
            _,
        ) => Decision::refuse(Refusal::WrongRecordKind),
    }
}

/// Folds one fact, recorded at this time, into the record.
pub fn apply(state: &mut Option<Record>, id: &RecordId, fact: &Fact, at: Timestamp) -> Result<(), Misfold> {
    match (state, fact, id) {
        (Some(Record::Job(job)), Fact::Job(fact), RecordId::Job(_)) => job::apply(job, fact, at),
        (Some(Record::Operation(operation)), Fact::Operation(fact), RecordId::Operation(_)) => {
            operation::apply(operation, fact, at)
        }
        (Some(Record::Event(event)), Fact::Event(fact), RecordId::Event(_)) => event::apply(event, fact, at),
        (Some(Record::Run(run)), Fact::Run(fact), RecordId::Run(_)) => run::apply(run, fact, at),
        (state @ None, Fact::Event(EventFact::Published(new)), RecordId::Event(id)) => {
            *state = Some(Record::Event(Box::new(Event::new(id.clone(), new, at))));
            Ok(())
        }
        (state @ None, Fact::Run(RunFact::Started(new)), RecordId::Run(id)) => {
            *state = Some(Record::Run(Box::new(Run::new(id.clone(), new, at))));
            Ok(())
        }
        (state @ None, Fact::Job(JobFact::Created(new)), RecordId::Job(id)) => {
            *state = Some(Record::Job(Box::new(Job::new(id.clone(), new, at))));
            Ok(())
        }
        (state @ None, Fact::Operation(OperationFact::Dispatched(new)), RecordId::Operation(id)) => {
            *state = Some(Record::Operation(Box::new(Operation::new(id.clone(), new, at))));
            Ok(())
        }
        (None, _, _) => Err(Misfold("the stream does not begin with the record's beginning")),
        (Some(_), _, _) => Err(Misfold("the fact is of another kind of record")),
    }
}

impl<F> Decision<F> {
    /// The same decision with its facts wrapped.
    fn map<G>(self, wrap: impl Fn(F) -> G) -> Decision<G> {
        match self {
            Self::Facts { facts, consequences } => {
                Decision::Facts { facts: facts.into_iter().map(wrap).collect(), consequences }
            }
            Self::Nothing => Decision::Nothing,
            Self::Refused { refusal, evidence, consequences } => {
                Decision::Refused { refusal, evidence: evidence.map(wrap), consequences }
            }
        }
    }
}

impl Record {
    /// The record's id.
    pub fn id(&self) -> RecordId {
        match self {
            Self::Job(job) => job.id.clone().into(),
            Self::Operation(operation) => operation.id.clone().into(),
            Self::Event(event) => event.id.clone().into(),
            Self::Run(run) => run.id.clone().into(),
        }
    }
}

impl Record {
    /// When anything last happened to it.
    pub fn updated_at(&self) -> Timestamp {
        match self {
            Self::Job(job) => job.updated_at,
            Self::Operation(operation) => operation.updated_at,
            Self::Event(event) => event.updated_at,
            Self::Run(run) => run.updated_at,
        }
    }

    /// Whether this body must be stored with it. A purge removes the bodies, and leaves the digests in results.
    pub fn stores_body(&self, body: BodyRef) -> bool {
        match self {
            Self::Job(job) => {
                let results = std::iter::once(&job.result)
                    .chain(job.attempts.iter().filter_map(|attempt| Some(&attempt.end.as_ref()?.result)))
                    .filter(|_| job.purged_at.is_none());
                let named = job.bodies.iter().chain(&job.answers);
                named.chain(results.flat_map(ResultRefs::bodies)).any(|named| *named == body)
            }
            Self::Operation(operation) => operation.handle == Some(body),
            Self::Event(event) => event.said.payload == body,
            Self::Run(run) => [run.begun.plan, run.begun.input].contains(&body),
        }
    }

    /// Whether it has reached its end.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Job(job) => job.state.name().is_terminal(),
            Self::Operation(operation) => operation.ended.is_some(),
            Self::Event(event) => event.settled.is_some(),
            Self::Run(run) => run.end.is_some(),
        }
    }
}

impl From<JobCommand> for Command {
    fn from(command: JobCommand) -> Self {
        Self::Job(command)
    }
}

impl From<EventCommand> for Command {
    fn from(command: EventCommand) -> Self {
        Self::Event(command)
    }
}

impl From<RunCommand> for Command {
    fn from(command: RunCommand) -> Self {
        Self::Run(command)
    }
}

impl From<OperationCommand> for Command {
    fn from(command: OperationCommand) -> Self {
        Self::Operation(command)
    }
}
