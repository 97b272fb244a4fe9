//! A plan: an order decided together with its consequences, as one commit.
//!
//! The records that a step touches are loaded as the decisions name them; each is decided on the state that the
//! decisions before it left. Either everything is allowed, or nothing is written.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;

use domain::ask::AskChange;
use domain::attention::Retention;
use domain::checkpoint;
use domain::follow::{Before, ChangeEffects, follow};
use domain::job::{Job, JobFact};
use domain::operation::OperationFact;
use domain::planted::{Bug, planted};
use domain::record::{apply, decide};
use domain::timeline::Steps;
use domain::timers;
use domain::{
    BodyName, Checkpoint, Command, Consequence, Decision, Fact, Fence, Lease, MAX_CONSEQUENCES, MAX_NOTIFIED,
    Record, RecordId, Refusal, Timestamp,
};
use store::{
    Change, Commit, Head, Loaded, NewBody, NewFact, Remembered, Removal, Store, Urgency, VIEW_FORMAT,
    encode_fact, limits,
};

use crate::kept::Bodies;
use crate::preparation::{FollowUps, Preparation};
use crate::{EngineError, Ids, Order, OrderBody};

/// Records that one commit may change.
const MAX_RECORDS: usize = 1 + MAX_CONSEQUENCES + MAX_NOTIFIED;
/// Commands that one commit decides: rules that answer each other without end come to an end here.
const MAX_DECISIONS: usize = 10 * MAX_RECORDS;

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
    /// The state before the facts, if this may be where a checkpoint of it is due.
    before: Option<Record>,
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
        Self {
            expected: Head::default(),
            state: None,
            before: None,
            facts: Vec::new(),
            source: Source::Store,
        }
    }

    fn of(loaded: Loaded) -> Self {
        let state = Some(Arc::unwrap_or_clone(loaded.record));
        Self { expected: loaded.head, state, ..Self::absent() }
    }

    fn remembered(remembered: Remembered) -> Self {
        let state = Some(Arc::unwrap_or_clone(remembered.record));
        Self { expected: remembered.head, state, source: Source::Memory, ..Self::absent() }
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
    /// After how many facts an open record writes a checkpoint.
    pub(crate) checkpoint_after: NonZeroU64,
    /// Who is asked what the end of a record means.
    pub(crate) preparation: Option<&'a dyn Preparation>,
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
        if order.fence.is_none() && ordered().any(Command::needs_claim) {
            return Err(EngineError::from(Refusal::ClaimRequired).into());
        }
        let mut records = BTreeMap::new();
        let assumed = match assume {
            Assume::TheLikely if order.command.is_new_work() => Some(Working::absent()),
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
        let mut told = Bodies::default();
        let mut ended = BTreeSet::new();
        let mut hearsay = false;
        let mut asks = Vec::new();
        loop {
            // Of a refused order nothing follows but its evidence, and nothing of a result that its job did not take.
            let counts = refusal.is_none() && is_taken(order, &records);
            let next = || also.next().filter(|_| counts).cloned();
            let Some(step) = waiting.pop_front().or_else(next) else {
                let ends = self.tell_ends(&records, &mut ended);
                if ends.consequences.is_empty() {
                    break;
                }
                waiting.extend(ends.consequences);
                told.extend(ends.bodies);
                continue;
            };
            decided += 1;
            if decided > MAX_DECISIONS {
                return Err(EngineError::TooManyConsequences.into());
            }
            if !records.contains_key(&step.record) {
                if records.len() >= MAX_RECORDS {
                    return Err(EngineError::TooManyConsequences.into());
                }
                let working = match assume {
                    Assume::TheLikely if step.command.is_new_work() => Working::absent(),
                    Assume::TheLikely => self.remember_or_load(&step.record).await?,
                    Assume::Unchanged(_) | Assume::Nothing => self.load(&step.record).await?,
                };
                let working = self.on_time(&step.record, working, &step.command, now)?;
                hearsay |= working.source == Source::Memory;
                records.insert(step.record.clone(), working);
            }
            let working = records.get_mut(&step.record).expect("it was loaded above");
            let before = Before::of(working.state.as_ref());
            match decide(working.state.as_ref(), &step.record, &step.command, now) {
                Decision::Facts { facts, consequences } => {
                    let first = working.facts.len();
                    self.fold(&step.record, working, facts)?;
                    waiting.extend(consequences);
                    let after = working.state.as_ref();
                    let followed = after.map(|after| follow(&before, after, &working.facts[first..], now));
                    let ChangeEffects { consequence, asks: changes } = followed.unwrap_or_default();
                    let is_siblings = order.fences.iter().any(|(id, _)| *id == step.record);
                    let is_lost = decided > 1 && planted(Bug::EndOfEndNotTold)
                        || is_siblings && planted(Bug::SiblingEndNotTold);
                    waiting.extend(consequence.filter(|_| !is_lost));
                    asks.extend(changes);
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
        let is_taken = is_taken(order, &records);
        let mut plan = self.finish(order, records, told.into_vec(), asks, refusal)?;
        if let (true, Some(update), Plan::Write { commit, answer: Ok(_) }) =
            (is_taken, &order.plugin_state, &mut plan)
        {
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
            agenda: loaded.record.schedule(self.retention).entry(self.now),
            record: loaded.record,
            bodies: Vec::new(),
            fence,
            removal: Removal::Nothing,
        };
        Commit { changes: vec![change], ..empty_commit(self.now, actor, self.lease) }
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
        if command.is_move() {
            return Ok(working);
        }
        let state = working.state.as_ref();
        let Some(moves) = state.and_then(|record| timers::to_move(record, &self.steps, now)) else {
            return working.at(now);
        };
        match decide(state, id, &moves, now) {
            Decision::Facts { facts, .. } => {
                self.fold(id, &mut working, facts)?;
                Ok(working)
            }
            Decision::Nothing | Decision::Refused { .. } => working.at(now),
        }
    }

    fn fold(&self, id: &RecordId, working: &mut Working, facts: Vec<Fact>) -> Result<(), EngineError> {
        if working.facts.is_empty() {
            let (version, most) = (working.expected.version, limits::MAX_FACTS_PER_CHANGE);
            let may_be_due =
                |state: &&Record| checkpoint::may_be_due(state, version, most, self.checkpoint_after);
            working.before = working.state.as_ref().filter(may_be_due).cloned();
        }
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
        asks: Vec<AskChange>,
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
        commit.asks = asks;
        if refusal.is_none() {
            commit.keys.extend(order.keys.iter().map(|key| key.answered(&order.record, &record)));
        } else {
            // A refused order may be given again: its key is not used up. And evidence is kept of whoever lost the claim.
            commit.changes.iter_mut().for_each(|change| change.fence = None);
        }
        Ok(Plan::Write { commit, answer: refusal.map_or(Ok(record), Err) })
    }

    /// What listens to the ends that this step has brought about since it was last looked at.
    fn tell_ends(&self, records: &BTreeMap<RecordId, Working>, ended: &mut BTreeSet<RecordId>) -> FollowUps {
        let mut also = FollowUps::default();
        let Some(preparation) = self.preparation.filter(|_| !planted(Bug::EndNotPublished)) else {
            return also;
        };
        for (id, working) in records.iter().filter(|(_, working)| working.facts.iter().any(is_end)) {
            let Some(record) = working.state.as_ref().filter(|_| ended.insert(id.clone())) else { continue };
            let Some(job) = job_behind(record, records) else { continue };
            if let Some(followed) = preparation.follow_end(record, job, working.expected.version) {
                also.extend(followed);
            }
        }
        also
    }

    fn change(
        &self,
        order: &Order,
        told: &[OrderBody],
        id: RecordId,
        mut working: Working,
        record: Arc<Record>,
    ) -> Change {
        if let Some(checkpoint) = self.checkpoint(&mut working, &record) {
            working.facts.insert(0, checkpoint);
        }
        let bodies = order.bodies.iter().chain(told).filter(|body| body.record == id);
        let bodies = bodies.map(|body| body.body.clone()).filter(|new| is_kept(&record, new));
        let named = |fact| NewFact { id: self.ids.fact_id(), fact };
        Change {
            expected: working.expected,
            removal: removal(&working.facts),
            facts: working.facts.into_iter().map(named).collect(),
            bodies: bodies.collect(),
            agenda: record.schedule(self.retention).entry(self.now),
            fence: order.fence_of(&id),
            record,
            id,
        }
    }

    /// The checkpoint that the change of a record begins with, if one is due. A state that is too large for one keeps its facts.
    fn checkpoint(&self, working: &mut Working, record: &Record) -> Option<Fact> {
        let before = working.before.take()?;
        let Head { version, checksum } = working.expected;
        if !checkpoint::is_due(record, version, &working.facts, self.checkpoint_after) {
            return None;
        }
        let state = if planted(Bug::CheckpointOfLaterState) { record.clone() } else { before };
        let checkpointed = Box::new(Checkpoint::new(VIEW_FORMAT, checksum, state));
        let fact = Fact::Checkpointed { checkpointed };
        (encode_fact(&fact).len() <= limits::MAX_CHECKPOINT_BYTES).then_some(fact)
    }

    fn commit(&self, order: &Order, changes: Vec<Change>) -> Commit {
        let urgency = if order.command.is_new_work() { Urgency::NewWork } else { Urgency::Result };
        Commit {
            causation_id: order.causation_id.clone(),
            correlation_id: order.correlation_id.clone(),
            changes,
            urgency,
            ..empty_commit(self.now, order.actor.clone(), self.lease)
        }
    }
}

/// A commit of nothing yet.
pub(crate) fn empty_commit(at: Timestamp, actor: Arc<str>, lease: Lease) -> Commit {
    Commit {
        at,
        actor,
        causation_id: None,
        correlation_id: None,
        changes: Vec::new(),
        keys: Vec::new(),
        asks: Vec::new(),
        plugin_states: Vec::new(),
        urgency: Urgency::Result,
        lease,
    }
}

/// Whether a body is stored: of what services say of an operation, only what its state names; of what a job is given, only what was given
/// to it. A commit of several reports may bring what was prepared for another job under the same id.
fn is_kept(record: &Record, new: &NewBody) -> bool {
    let is_given = matches!(new.body.name, BodyName::Input | BodyName::Context);
    record.as_operation().is_none_or(|operation| operation.bodies().any(|body| *body == new.body))
        && record.as_job().is_none_or(|job| !is_given || job.bodies.contains(&new.body))
}

/// Whether the result of an order counts: the job that it is of took it in this step, as its end or to go on with.
fn is_taken(order: &Order, records: &BTreeMap<RecordId, Working>) -> bool {
    let Some(job) = &order.result_of else { return true };
    let took = |fact: &Fact| {
        matches!(fact, Fact::Job(JobFact::Completed(_) | JobFact::ExternalArrived(_) | JobFact::Failed(_)))
    };
    records.get(&RecordId::from(job.clone())).is_some_and(|working| working.facts.iter().any(took))
}

/// The job that a record is, or that an operation belongs to: its end was brought to its job in the same step.
fn job_behind<'a>(record: &'a Record, records: &'a BTreeMap<RecordId, Working>) -> Option<&'a Job> {
    if let Some(job) = record.as_job() {
        return Some(job);
    }
    let job_id = RecordId::from(record.as_operation()?.link.job_id.clone());
    records.get(&job_id)?.state.as_ref()?.as_job()
}

/// Whether a fact is the end of a job or of an operation.
const fn is_end(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Job(
            JobFact::Completed(_)
                | JobFact::Failed(_)
                | JobFact::Cancelled(_)
                | JobFact::Expired(_)
                | JobFact::BecameUnavailable(_)
        ) | Fact::Operation(
            OperationFact::Resolved(_) | OperationFact::Cancelled | OperationFact::Expired { .. }
        )
    )
}

/// What the facts of a step take away.
fn removal(facts: &[Fact]) -> Removal {
    facts.iter().map(Fact::removal).rfind(|removal| *removal != Removal::Nothing).unwrap_or(Removal::Nothing)
}
