//! Orders under way: what each one did, compared with what its giver is told.
//!
//! An order has its effect at most once, and "no" means that it had none (P3). Only "unknown" may be either.

use std::sync::Arc;

use domain::job::{Holder, JobCommand, JobStateName, LeftBy, Reporter};
use domain::{AttemptId, BodyRef, Record, RecordId, Refusal};
use engine::{EngineError, Evidence, Order, Outcome};
use store::{FactId, StoreError, Taken};

use crate::counters::Sometimes;
use crate::invariants::{Violation, broken, must};
use crate::node::Node;
use crate::slab::Key;
use crate::world::{Sim, World};

/// What an order has done so far.
#[derive(Debug)]
pub struct OrderTrace {
    /// The record that it is for.
    pub record: RecordId,
    /// What kind of order it is.
    pub kind: OrderKind,
    /// The attempt that it speaks for.
    pub attempt: Option<AttemptId>,
    /// The result that it brings.
    pub result: Option<BodyRef>,
    /// Whether its record was read.
    pub loaded: bool,
    /// Whether its giver may not know what came of a commit.
    pub unknown: bool,
    /// The first fact that it wrote.
    pub effect: Option<FactId>,
    /// The records that it wrote, and the first version of each.
    pub written: Vec<(RecordId, u64)>,
    /// Who reports, if it is a report on an attempt.
    pub by: Option<Reporter>,
    /// Whether it wrote nothing but a trace of a refused report.
    pub evidence_only: bool,
}

/// The kinds of order whose lost answers are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    /// New work.
    Create,
    /// A new attempt.
    Dispatch,
    /// The good end of an attempt.
    Complete,
    /// Another end of an attempt.
    Finish,
    /// Anything else.
    Other,
}

impl Node {
    /// Gives an order through the engine, and holds the answer against what was done.
    pub async fn order(&self, order: Order) -> Result<Outcome, EngineError> {
        self.order_with_evidence(order).await.0
    }

    /// The same; also says whether an order that was refused has left evidence.
    pub async fn order_with_evidence(&self, order: Order) -> (Result<Outcome, EngineError>, Evidence) {
        let trace = Under::begin(&self.sim, OrderTrace::of(&order));
        let (answer, evidence) = self.engine.execute_with_evidence(order).await;
        trace.end(&answer);
        (answer, evidence)
    }

    /// Attends to a due record through the engine.
    pub async fn attend(&self, taken: &Taken) -> Result<Outcome, EngineError> {
        let trace = Under::begin(&self.sim, OrderTrace::new(taken.id.clone(), OrderKind::Other));
        let answer = self.engine.attend(taken, self.actor.clone()).await;
        trace.end(&answer);
        answer
    }
}

/// An order under way; dropped without an end when its node dies.
struct Under<'a> {
    sim: &'a Sim,
    key: Key,
}

impl<'a> Under<'a> {
    fn begin(sim: &'a Sim, trace: OrderTrace) -> Self {
        let key = sim.with(|world| {
            let key = world.orders.insert(trace);
            if let Some(polled) = &mut world.polled {
                polled.order = Some(key);
            }
            key
        });
        Self { sim, key }
    }

    fn end(self, answer: &Result<Outcome, EngineError>) {
        self.sim.with(|world| {
            let trace = world.orders.remove(self.key).expect("it ends once");
            if let Some(polled) = &mut world.polled {
                polled.order = None;
            }
            world.count_race(&trace, answer);
            if trace.effect.is_some() && !trace.evidence_only {
                let handed = was_handed_to(world, &trace);
                world.require(handed);
            }
            if world.check.proof_is_left(&trace) {
                world.require(told_the_truth(&trace, answer));
            }
        });
    }
}

impl Drop for Under<'_> {
    fn drop(&mut self) {
        self.sim.at_end(|world| {
            if let Some(trace) = world.orders.remove(self.key)
                && trace.loaded
                && trace.effect.is_none()
            {
                world.counters.saw(Sometimes::CrashBetweenLoadAndCommit);
            }
        });
    }
}

impl World {
    fn count_race(&mut self, trace: &OrderTrace, answer: &Result<Outcome, EngineError>) {
        match answer {
            Err(EngineError::Refused(Refusal::StaleAttempt))
                if matches!(trace.kind, OrderKind::Complete | OrderKind::Finish) =>
            {
                self.counters.saw(Sometimes::StaleResultRefused);
            }
            Err(EngineError::Refused(Refusal::Terminal { state: JobStateName::Cancelled }))
                if trace.kind == OrderKind::Complete =>
            {
                self.counters.saw(Sometimes::CancelRacingFinish);
            }
            Err(EngineError::Refused(Refusal::Terminal { state: JobStateName::Expired }))
                if trace.kind == OrderKind::Complete =>
            {
                self.counters.saw(Sometimes::ExpiryRacingCompletion);
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// Only whoever an attempt was handed to changes anything by a report on it.
fn was_handed_to(world: &World, trace: &OrderTrace) -> Result<(), Violation> {
    let (Some(by), Some(attempt)) = (&trace.by, &trace.attempt) else { return Ok(()) };
    let Some(Record::Job(job)) = world.check.record(&trace.record) else { return Ok(()) };
    let Some(attempt) = job.attempts.iter().find(|one| one.id == *attempt) else { return Ok(()) };
    let handed = match (&attempt.holder, by) {
        (Holder::Bearer, _) | (Holder::Daemon, Reporter::Daemon) => true,
        (Holder::Caller(holder), Reporter::Caller(caller)) => holder == caller,
        (Holder::Daemon | Holder::Caller(_), _) => false,
    };
    must(handed, "holder", || {
        format!("{}: a report of {by:?} on an attempt of {:?} took effect", trace.record, attempt.holder)
    })
}

/// An answer that says "nothing happened" is given only if nothing did.
fn told_the_truth(trace: &OrderTrace, answer: &Result<Outcome, EngineError>) -> Result<(), Violation> {
    let denied = match answer {
        Ok(outcome) => {
            let recorded = outcome.record().as_job().and_then(|job| job.result.data);
            if trace.result.is_some() && recorded != trace.result {
                return broken("I9", || format!("{} accepted a result and recorded another", trace.record));
            }
            false
        }
        Err(EngineError::Refused(_)) => !trace.evidence_only,
        Err(EngineError::KeyTaken(_) | EngineError::Contended | EngineError::TooManyConsequences) => true,
        Err(EngineError::Store(error)) => match error {
            StoreError::OutcomeUnknown | StoreError::Unavailable(_) => false,
            StoreError::Conflict
            | StoreError::Fenced
            | StoreError::ClaimHeld
            | StoreError::UnknownRecord
            | StoreError::KeyTaken(_)
            | StoreError::TooLarge { .. }
            | StoreError::Busy
            | StoreError::Full
            | StoreError::BodyDamaged(_)
            | StoreError::Broken(_) => true,
        },
    };
    if denied && trace.effect.is_some() {
        return broken("P3", || {
            format!("an order on {} took effect, and its giver was told: {answer:?}", trace.record)
        });
    }
    Ok(())
}

impl OrderTrace {
    fn new(record: RecordId, kind: OrderKind) -> Self {
        Self {
            record,
            kind,
            attempt: None,
            result: None,
            by: None,
            loaded: false,
            unknown: false,
            effect: None,
            written: Vec::new(),
            evidence_only: false,
        }
    }

    fn of(order: &Order) -> Self {
        let Some(command) = order.command.as_job() else {
            return Self::new(order.record.clone(), OrderKind::Other);
        };
        #[allow(clippy::wildcard_enum_match_arm, reason = "the others are of no attempt")]
        let (kind, attempt) = match command {
            JobCommand::Create(_) => (OrderKind::Create, None),
            JobCommand::Dispatch(_) => (OrderKind::Dispatch, None),
            JobCommand::Report(report) => {
                let kind = if report.state == JobStateName::Completed {
                    OrderKind::Complete
                } else if report.state.is_terminal() {
                    OrderKind::Finish
                } else {
                    OrderKind::Other
                };
                (kind, report.attempt_id.clone())
            }
            JobCommand::Resume { attempt_id }
            | JobCommand::Deliver { attempt_id }
            | JobCommand::Heartbeat { attempt_id, .. }
            | JobCommand::IntendSubmit { attempt_id, .. }
            | JobCommand::LoseSubmit { attempt_id, .. }
            | JobCommand::Defer { attempt_id, .. }
            | JobCommand::RecordCancelAnswer { attempt_id, .. }
            | JobCommand::LoseLease { attempt_id, .. }
            | JobCommand::TimeOutAttempt { attempt_id, .. } => (OrderKind::Other, Some(attempt_id.clone())),
            _ => (OrderKind::Other, None),
        };
        let report = if let JobCommand::Report(report) = command { Some(report) } else { None };
        let result = report.and_then(|report| report.details.result.data);
        let by = if let JobCommand::Heartbeat { by, .. }
        | JobCommand::Defer { left_by: LeftBy::Doer(by), .. } = command
        {
            Some(by.clone())
        } else {
            report.map(|report| report.by.clone())
        };
        Self { attempt, result, by, ..Self::new(order.record.clone(), kind) }
    }
}

/// The actor of a node's own orders.
pub fn actor(node: usize) -> Arc<str> {
    Arc::from(format!("node-{node}"))
}
