//! A plan: an order decided together with its consequences, as one commit.
//!
//! The records that a step touches are loaded as the decisions name them; each is decided on the state that the
//! decisions before it left. Either everything is allowed, or nothing is written.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;

use domain::ask::{self, AskChange};
use domain::attention::{Retention, attention};
use domain::event::{EventCommand, EventFact};
use domain::job::{JobCommand, JobFact};
use domain::operation::OperationFact;
use domain::planted::{Bug, planted};
use domain::record::{apply, decide};
use domain::run::{RunCommand, RunFact};
use domain::timeline::Steps;
use domain::timers;
use domain::{Command, Consequence, Decision, Fact, Fence, Lease, Record, RecordId, Refusal, Timestamp};
use store::{Change, Commit, Head, Loaded, NewFact, Remembered, Removal, Store, Urgency};

use crate::routing::{Also, Signals};
use crate::{EngineError, Ids, Order, OrderBody};

/// Consequences that one commit may hold.
const MAX_CONSEQUENCES: usize = 1_000;

/// What an order comes to.
pub(crate) enum Plan {
    /// This is to be committed, and then this is the answer.
    Write { commit: Commit, answer: Result<Arc<Record>, Refusal> },
    /// It is so already.
    Nothing(Arc<Record>),
}

/// A record as the step has left it so far.
struct Working {
    expected: Head,
    state: Option<Record>,
    facts: Vec<Fact>,
    source: Source,
}

/// Where the state of a record was taken from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The store, or an assumption that its commit proves.
    Store,
    /// What this process remembers: only a commit against its head proves it.
    Memory,
}

impl Working {
    fn absent() -> Self {
        Self { expected: Head::default(), state: None, facts: Vec::new(), source: Source::Store }
    }

    fn of(loaded: Loaded) -> Self {
        let state = Some(Arc::unwrap_or_clone(loaded.record));
        Self { expected: loaded.head, state, facts: Vec::new(), source: Source::Store }
    }

    fn remembered(remembered: Remembered) -> Self {
        let state = Some(Arc::unwrap_or_clone(remembered.record));
        Self { expected: remembered.head, state, facts: Vec::new(), source: Source::Memory }
    }

    /// Whether it is only remembered, and no commit will prove it.
    fn is_unproven(&self) -> bool {
        self.source == Source::Memory && self.facts.is_empty()
    }

    /// Refuses to be decided at a time before its last change.
    fn at(self, now: Timestamp) -> Result<Self, Halt> {
        match self.state.as_ref().map(Record::updated_at) {
            Some(at) if at > now && !planted(Bug::TimeGoesBack) => Err(Halt::RecordIsLater(at)),
            Some(_) | None => Ok(self),
        }
    }
}

pub(crate) struct Planner<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) ids: &'a dyn Ids,
    pub(crate) retention: Retention,
    pub(crate) now: Timestamp,
    /// Where store time has jumped: what was set before is moved before anything is decided on it.
    pub(crate) steps: Steps,
    pub(crate) lease: Lease,
    /// Who is asked what the end of a record means.
    pub(crate) signals: Option<&'a dyn Signals>,
}

/// Why a plan was not finished.
enum Halt {
    /// A record was changed at a later time than the plan's.
    RecordIsLater(Timestamp),
    /// It would be refused, or leave a record as it is, for the sake of something that was only remembered.
    Hearsay,
    /// It cannot be.
    Failed(EngineError),
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

/// What may be taken for granted without a read.
#[derive(Clone, Copy)]
pub(crate) enum Assume<'a> {
    /// A new id is hardly ever taken, and what is remembered has hardly ever changed since: the commit finds out, and the next try loads.
    TheLikely,
    /// The record is as it was read; the commit finds out.
    Unchanged(&'a Loaded),
    /// Nothing.
    Nothing,
}

impl Planner<'_> {
    /// Decides the order and all that follows from it.
    ///
    /// Another caller may have read the clock later and committed first. Time never goes back within a stream: such a
    /// record is decided at its own last time, and so is everything with it.
    pub(crate) async fn plan(&mut self, order: &Order, mut assume: Assume<'_>) -> Result<Plan, EngineError> {
        loop {
            match self.plan_at(self.now, order, assume).await {
                Ok(plan) => return Ok(plan),
                Err(Halt::RecordIsLater(at)) => self.now = at,
                Err(Halt::Hearsay) => assume = Assume::Nothing,
                Err(Halt::Failed(error)) => return Err(error),
            }
        }
    }

    async fn plan_at(&self, now: Timestamp, order: &Order, assume: Assume<'_>) -> Result<Plan, Halt> {
        let ordered = || [&order.command].into_iter().chain(&order.then);
        let needs_claim = |command: &Command| matches!(command, Command::Job(job) if job.needs_claim());
        if order.fence.is_none() && ordered().any(needs_claim) {
            return Err(EngineError::from(Refusal::ClaimRequired).into());
        }
        let mut records = BTreeMap::new();
        let assumed = match assume {
            Assume::TheLikely if creates(&order.command) => Some(Working::absent()),
            Assume::Unchanged(loaded) => {
                Some(self.on_time(&order.record, Working::of(loaded.clone()), &order.command, now)?)
            }
            Assume::TheLikely | Assume::Nothing => None,
        };
        records.extend(assumed.map(|working| (order.record.clone(), working)));
        let mut waiting: VecDeque<_> = ordered()
            .map(|command| Consequence { record: order.record.clone(), command: command.clone() })
            .collect();
        let mut also = order.also.iter();
        let mut refusal = None;
        let mut decided = 0;
        let mut told = Also::default();
        let mut hearsay = false;
        loop {
            // Of a refused order nothing follows but its evidence.
            let next = || also.next().filter(|_| refusal.is_none()).cloned();
            let Some(step) = waiting.pop_front().or_else(next) else {
                if told.consequences.is_empty() && self.tell_ends(&records, &mut told) {
                    waiting.extend(told.consequences.iter().cloned());
                    continue;
                }
                break;
            };
            decided += 1;
            if decided > MAX_CONSEQUENCES {
                return Err(EngineError::TooManyConsequences.into());
            }
            if !records.contains_key(&step.record) {
                let working = match assume {
                    Assume::TheLikely if creates(&step.command) => Working::absent(),
                    Assume::TheLikely => self.remember_or_load(&step.record).await?,
                    Assume::Unchanged(_) | Assume::Nothing => self.load(&step.record).await?,
                };
                let working = self.on_time(&step.record, working, &step.command, now)?;
                hearsay |= working.source == Source::Memory;
                records.insert(step.record.clone(), working);
            }
            let working = records.get_mut(&step.record).expect("it was loaded above");
            match decide(working.state.as_ref(), &step.record, &step.command, now) {
                Decision::Facts { facts, consequences } => {
                    self.fold(&step.record, working, facts)?;
                    waiting.extend(consequences);
                }
                Decision::Nothing => {}
                Decision::Refused { .. } if hearsay => return Err(Halt::Hearsay),
                Decision::Refused { refusal: said, evidence, consequences }
                    if decided == 1 && (evidence.is_some() || !consequences.is_empty()) =>
                {
                    self.fold(&step.record, working, evidence.into_iter().collect())?;
                    waiting.extend(consequences);
                    refusal = Some(said);
                }
                Decision::Refused { refusal, .. } => return Err(EngineError::from(refusal).into()),
            }
        }
        if records.values().any(Working::is_unproven) {
            return Err(Halt::Hearsay);
        }
        let mut plan = self.finish(order, records, told.bodies.into_vec(), refusal)?;
        if let (Some(update), Plan::Write { commit, answer: Ok(_) }) = (&order.plugin_state, &mut plan) {
            let before = self.store.plugin_state(&update.plugin).await.map_err(EngineError::from)?;
            commit.plugin_states.push(update.applied(before.as_ref()).map_err(EngineError::from)?);
        }
        Ok(plan)
    }

    /// The commit without facts that only brings the agenda of a record up to date.
    pub(crate) fn refresh(
        &self,
        id: RecordId,
        fence: Option<Fence>,
        loaded: Loaded,
        actor: Arc<str>,
    ) -> Commit {
        let change = Change {
            id,
            expected: loaded.head,
            facts: Vec::new(),
            agenda: attention(&loaded.record, self.retention).entry(self.now),
            record: loaded.record,
            bodies: Vec::new(),
            fence,
            removal: Removal::Nothing,
        };
        Commit {
            at: self.now,
            actor,
            causation_id: None,
            correlation_id: None,
            changes: vec![change],
            keys: Vec::new(),
            asks: Vec::new(),
            plugin_states: Vec::new(),
            urgency: Urgency::Result,
            lease: self.lease,
        }
    }

    async fn load(&self, id: &RecordId) -> Result<Working, EngineError> {
        Ok(self.store.load(id).await?.map_or_else(Working::absent, Working::of))
    }

    async fn remember_or_load(&self, id: &RecordId) -> Result<Working, EngineError> {
        match self.store.remembered(id) {
            Some(remembered) => Ok(Working::remembered(remembered)),
            None => self.load(id).await,
        }
    }

    /// The record as it stands at this time: if store time has jumped since its last change, its timers are moved first.
    fn on_time(
        &self,
        id: &RecordId,
        mut working: Working,
        command: &Command,
        now: Timestamp,
    ) -> Result<Working, Halt> {
        if timers::is_move(command) {
            return Ok(working);
        }
        let state = working.state.as_ref();
        let Some(moves) = state.and_then(|record| timers::to_move(record, &self.steps, now)) else {
            return working.at(now);
        };
        if let Decision::Facts { facts, .. } = decide(state, id, &moves, now) {
            self.fold(id, &mut working, facts)?;
        }
        Ok(working)
    }

    fn fold(&self, id: &RecordId, working: &mut Working, facts: Vec<Fact>) -> Result<(), EngineError> {
        for fact in facts {
            apply(&mut working.state, id, &fact, self.now)
                .map_err(|misfold| EngineError::Store(store::StoreError::Broken(misfold.to_string())))?;
            working.facts.push(fact);
        }
        Ok(())
    }

    fn finish(
        &self,
        order: &Order,
        records: BTreeMap<RecordId, Working>,
        told: Vec<OrderBody>,
        refusal: Option<Refusal>,
    ) -> Result<Plan, EngineError> {
        let mut changes = Vec::with_capacity(records.len());
        let mut answered = None;
        for (id, mut working) in records {
            let Some(record) = working.state.take().map(Arc::new) else { continue };
            if id == order.record {
                answered = Some(record.clone());
            }
            if !working.facts.is_empty() {
                changes.push(self.change(order, &told, id, working, record));
            }
        }
        let Some(record) = answered else { return Err(Refusal::UnknownRecord.into()) };
        if changes.is_empty() {
            return refusal.map_or(Ok(Plan::Nothing(record)), |refusal| Err(refusal.into()));
        }
        let mut commit = self.commit(order, changes);
        commit.asks = commit.changes.iter().flat_map(|change| self.asks_of(change)).collect();
        if refusal.is_none() {
            commit.keys.extend(order.keys.iter().map(|key| key.answered(&order.record, &record)));
        } else {
            // A refused order may be given again: its key is not used up. And evidence is kept of whoever lost the claim.
            commit.changes.iter_mut().for_each(|change| change.fence = None);
        }
        Ok(Plan::Write { commit, answer: refusal.map_or(Ok(record), Err) })
    }

    /// What listens to the ends that this step brings about; whether anything does.
    fn tell_ends(&self, records: &BTreeMap<RecordId, Working>, told: &mut Also) -> bool {
        let Some(signals) = self.signals.filter(|_| !planted(Bug::EndNotPublished)) else { return false };
        for working in records.values().filter(|working| working.facts.iter().any(is_end)) {
            let of_end =
                working.state.as_ref().and_then(|record| signals.of_end(record, working.expected.version));
            if let Some(also) = of_end {
                told.consequences.extend(also.consequences);
                told.bodies.extend(also.bodies);
            }
        }
        !told.consequences.is_empty()
    }

    fn change(
        &self,
        order: &Order,
        told: &[OrderBody],
        id: RecordId,
        working: Working,
        record: Arc<Record>,
    ) -> Change {
        let bodies = order.bodies.iter().chain(told).filter(|body| body.record == id);
        let bodies = bodies.map(|body| body.body.clone());
        let named = |fact| NewFact { id: self.ids.fact_id(), fact };
        Change {
            expected: working.expected,
            removal: removal(&working.facts),
            facts: working.facts.into_iter().map(named).collect(),
            bodies: bodies.collect(),
            agenda: attention(&record, self.retention).entry(self.now),
            fence: order.fence.clone().filter(|_| id == order.record),
            record,
            id,
        }
    }

    /// What the peer of a job is told of it, in the same commit.
    fn asks_of(&self, change: &Change) -> Vec<AskChange> {
        let Record::Job(job) = &*change.record else { return Vec::new() };
        let facts = change.facts.iter().filter_map(|new| match &new.fact {
            Fact::Job(fact) => Some(fact),
            Fact::Operation(_) | Fact::Event(_) | Fact::Run(_) => None,
        });
        ask::following(job, facts, self.now)
    }

    fn commit(&self, order: &Order, changes: Vec<Change>) -> Commit {
        let urgency = if creates(&order.command) { Urgency::NewWork } else { Urgency::Result };
        Commit {
            at: self.now,
            actor: order.actor.clone(),
            causation_id: order.causation_id.clone(),
            correlation_id: order.correlation_id.clone(),
            changes,
            keys: Vec::new(),
            asks: Vec::new(),
            plugin_states: Vec::new(),
            urgency,
            lease: self.lease,
        }
    }
}

fn creates(command: &Command) -> bool {
    matches!(
        command,
        Command::Job(JobCommand::Create(_))
            | Command::Event(EventCommand::Publish(_))
            | Command::Run(RunCommand::Start(_))
    )
}

/// Whether a fact is the end of a job or of an operation.
const fn is_end(fact: &Fact) -> bool {
    match fact {
        Fact::Job(fact) => matches!(
            fact,
            JobFact::Completed(_)
                | JobFact::Failed(_)
                | JobFact::Cancelled(_)
                | JobFact::Expired(_)
                | JobFact::BecameUnavailable(_)
        ),
        Fact::Operation(fact) => matches!(
            fact,
            OperationFact::Resolved(_) | OperationFact::Cancelled | OperationFact::Expired { .. }
        ),
        Fact::Event(_) | Fact::Run(_) => false,
    }
}

/// What the facts of a step take away.
fn removal(facts: &[Fact]) -> Removal {
    facts.iter().fold(Removal::Nothing, |removal, fact| match fact {
        Fact::Job(JobFact::Retired)
        | Fact::Operation(OperationFact::Retired)
        | Fact::Event(EventFact::Retired)
        | Fact::Run(RunFact::Retired) => Removal::Record,
        Fact::Job(JobFact::Purged) => Removal::Bodies,
        Fact::Job(_) | Fact::Operation(_) | Fact::Event(_) | Fact::Run(_) => removal,
    })
}
