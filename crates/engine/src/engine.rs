//! `execute(order)`: the only way to the ledger.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

use domain::attention::Retention;
use domain::checkpoint::CHECKPOINT_AFTER;
use domain::job::JobCommand;
use domain::planted::{Bug, planted};
use domain::record::{apply, decide};
use domain::timers;
use domain::{Command, Decision, Lease, Record, RecordId, Refusal, Timestamp};
use store::{Commit, Committed, KeptKey, Store, StoreError, Taken};
use tokio::runtime::Handle;

use crate::lost::name_the_lost;
use crate::plan::{Assume, Plan, Planner, empty_commit};
use crate::preparation::Preparation;
use crate::siblings::Siblings;
use crate::{Clock, EngineError, Ids, Order, OrderKey, Outcome};

/// How often an order is decided anew because another commit was first.
const MAX_TRIES: usize = 16;
/// How often a commit of unknown outcome is repeated before its caller is told.
const MAX_REPEATS: usize = 4;

/// The write path, over any store.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    retention: Retention,
    lease: Lease,
    checkpoint_after: NonZeroU64,
    watches: Vec<Arc<dyn CommitWatch>>,
    preparation: Option<Arc<dyn Preparation>>,
    siblings: Arc<Siblings>,
}

/// Whether a refused order has left something on its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A fact tells of it.
    Stored,
    /// Nothing was written.
    None,
}

/// What came of an order that was tried, if no other commit was first.
enum Tried {
    /// It was carried out, or it was so already.
    Done(Outcome),
    /// It was refused, and what is kept of that is committed.
    Refused(Refusal),
}

impl Tried {
    fn outcome(self) -> Result<Outcome, EngineError> {
        match self {
            Self::Done(outcome) => Ok(outcome),
            Self::Refused(refusal) => Err(refusal.into()),
        }
    }
}

/// Told of every commit that has become durable. It only notes what is of use to it: it is called on the way to the answer.
pub trait CommitWatch: Send + Sync {
    /// This was committed.
    fn committed(&self, _: &Commit, _: Committed) {}

    /// This was committed, or may have been: then nobody will say.
    fn perhaps_committed(&self, _: &Commit) {}
}

impl Engine {
    /// An engine on this store, with this clock and these ids.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        retention: Retention,
    ) -> Self {
        Self {
            store,
            clock,
            ids,
            retention,
            lease: Lease::DEFAULT,
            checkpoint_after: CHECKPOINT_AFTER,
            watches: Vec::new(),
            preparation: None,
            siblings: Arc::default(),
        }
    }

    /// The same engine, whose callers have this lease.
    pub fn leasing(mut self, lease: Lease) -> Self {
        self.lease = lease;
        self
    }

    /// The same engine, whose open records write a checkpoint after so many facts.
    pub fn checkpointing_after(mut self, facts: NonZeroU64) -> Self {
        self.checkpoint_after = facts;
        self
    }

    /// The same engine, for which this one prepares what follows by configuration.
    pub fn prepared_by(mut self, preparation: Arc<dyn Preparation>) -> Self {
        self.preparation = Some(preparation);
        self
    }

    /// The same engine, whose commits this one is told of.
    pub fn watched_by(mut self, watch: Arc<dyn CommitWatch>) -> Self {
        self.watches.push(watch);
        self
    }

    /// Who prepares what follows by configuration, if anything does.
    pub fn preparation(&self) -> Option<&dyn Preparation> {
        self.preparation.as_deref()
    }

    /// The reports that wait for each other.
    pub(crate) fn siblings(&self) -> &Arc<Siblings> {
        &self.siblings
    }

    /// The store, for reads and claims.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The ids.
    pub fn ids(&self) -> &dyn Ids {
        &*self.ids
    }

    /// Decides an order with its consequences and commits it: all or nothing, answered when it is durable.
    pub async fn execute(&self, order: Order) -> Result<Outcome, EngineError> {
        self.execute_with_evidence(order).await.0
    }

    /// The same; also says whether an order that was refused has left evidence on its record.
    pub async fn execute_with_evidence(&self, order: Order) -> (Result<Outcome, EngineError>, Evidence) {
        let mut assume = Assume::TheLikely;
        for _ in 0..MAX_TRIES {
            match self.try_once(&order, assume).await {
                Ok(Some(Tried::Done(outcome))) => return (Ok(outcome), Evidence::None),
                Ok(Some(Tried::Refused(refusal))) => return (Err(refusal.into()), Evidence::Stored),
                Ok(None) => assume = Assume::Nothing,
                Err(error) => return (Err(error), Evidence::None),
            }
        }
        (Err(EngineError::Contended), Evidence::None)
    }

    /// Does what time alone brings about for a record that was taken because it was due, and brings its agenda up to
    /// date. A poll that is due is the poller's business.
    pub async fn attend(&self, taken: &Taken, actor: Arc<str>) -> Result<Outcome, EngineError> {
        for _ in 0..MAX_TRIES {
            let Some(loaded) = self.store.load(&taken.id).await? else {
                return Err(Refusal::UnknownRecord.into());
            };
            let planner = self.planner();
            if let Some(moves) = timers::to_move(&loaded.record, &planner.steps, planner.now) {
                let order = Order::new(taken.id.clone(), moves, actor.clone()).under(taken.claim.fence());
                // Store time has jumped since: whether it is still due shows when its timers are moved.
                self.try_once(&order, Assume::Unchanged(&loaded)).await?.map(Tried::outcome).transpose()?;
                continue;
            }
            let due = loaded.record.due_command(self.retention, || self.ids.jitter(), planner.now);
            if let Some(mut command) = due {
                let job = loaded.record.as_job();
                let bodies = job.map(|job| name_the_lost(job, &mut command, taken.heard_at));
                let mut order =
                    Order::new(taken.id.clone(), command, actor.clone()).under(taken.claim.fence());
                order.bodies = bodies.unwrap_or_default();
                // Decided on the very state that was found due: what came in between may have undone the reason.
                match self.try_once(&order, Assume::Unchanged(&loaded)).await? {
                    Some(tried) => return tried.outcome(),
                    None => continue,
                }
            }
            let (id, fence) = (taken.id.clone(), Some(taken.claim.fence()));
            let record = loaded.record.clone();
            match self.commit_surely(planner.refresh(id, fence, loaded, actor.clone())).await {
                Ok(_) => return Ok(Outcome::AlreadySo { record }),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(EngineError::Contended)
    }

    /// Whether attending to this record would end its attempt because of the lease alone.
    pub(crate) async fn would_lose_its_lease(&self, taken: &Taken) -> Result<bool, EngineError> {
        let Some(loaded) = self.store.load(&taken.id).await? else { return Ok(false) };
        let due = self.due_now(&loaded.record);
        Ok(matches!(due, Some(Command::Job(JobCommand::LoseLease { .. }))))
    }

    /// Decides an order and commits it; none if another commit was first.
    async fn try_once(&self, order: &Order, assume: Assume<'_>) -> Result<Option<Tried>, EngineError> {
        let plan = match self.planner().plan(order, assume).await {
            Ok(plan) => plan,
            Err(error) => return Err(self.first_answer(&order.keys).await?.unwrap_or(error)),
        };
        match plan {
            Plan::Nothing(record) => match self.keep_keys(order, &record).await {
                Ok(()) => Ok(Some(Tried::Done(Outcome::AlreadySo { record }))),
                Err(error) => Err(error.into()),
            },
            Plan::Write { commit, answer } => match self.commit_surely(commit).await {
                Ok(committed) => Ok(Some(match answer {
                    Ok(record) => Tried::Done(Outcome::Changed { record, position: committed.position }),
                    Err(refusal) => Tried::Refused(refusal),
                })),
                Err(StoreError::Conflict) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// What was answered under an order's key, if it was used: that stands, whatever the order would come to now.
    pub(crate) async fn first_answer(&self, keys: &[OrderKey]) -> Result<Option<EngineError>, EngineError> {
        for key in keys {
            if let Some(kept) = self.store.key(&key.key).await? {
                return Ok(Some(EngineError::KeyTaken(Box::new(kept))));
            }
        }
        Ok(None)
    }

    /// Whether time alone brings something about for this record now: its end, or that it is forgotten.
    pub(crate) fn is_overdue(&self, record: &Record) -> bool {
        self.due_now(record).is_some()
    }

    fn due_now(&self, record: &Record) -> Option<Command> {
        let now = self.clock.now();
        self.on_time(record, now).due_command(self.retention, || self.ids.jitter(), now)
    }

    /// Moves the timers of a record, if store time has jumped since its last change; whether it did.
    pub async fn move_timers(&self, id: &RecordId, actor: Arc<str>) -> Result<bool, EngineError> {
        for _ in 0..MAX_TRIES {
            let Some(loaded) = self.store.load(id).await? else { return Ok(false) };
            let planner = self.planner();
            let at_once = timers::is_to_be_moved_at_once(&loaded.record);
            let moves = timers::to_move(&loaded.record, &planner.steps, planner.now);
            let Some(moves) = moves.filter(|_| at_once) else {
                let claim = loaded.claim.as_ref().filter(|claim| claim.is_live(planner.now));
                if claim.is_none_or(|claim| claim.owner.outside_name().is_none()) {
                    return Ok(false);
                }
                // Its limit was moved with the lease of whoever has claimed it: only the record knows that it is a time of day.
                match self.commit_surely(planner.refresh(id.clone(), None, loaded, actor.clone())).await {
                    Ok(_) => return Ok(false),
                    Err(StoreError::Conflict) => continue,
                    Err(error) => return Err(error.into()),
                }
            };
            let order = Order::new(id.clone(), moves, actor.clone());
            if let Some(tried) = self.try_once(&order, Assume::Unchanged(&loaded)).await? {
                return tried.outcome().map(|_| true);
            }
        }
        Err(EngineError::Contended)
    }

    /// The record with its timers moved, as any command finds it. Nothing is written.
    pub(crate) fn on_time<'a>(&self, record: &'a Record, now: Timestamp) -> Cow<'a, Record> {
        let Some(moves) = timers::to_move(record, &self.clock.steps(), now) else {
            return Cow::Borrowed(record);
        };
        let id = record.id();
        let mut state = Some(record.clone());
        if let Decision::Facts { facts, .. } = decide(Some(record), &id, &moves, now) {
            for fact in &facts {
                // A fact that does not fit leaves the record as it was.
                if apply(&mut state, &id, fact, now).is_err() {
                    return Cow::Borrowed(record);
                }
            }
        }
        state.map_or(Cow::Borrowed(record), Cow::Owned)
    }

    /// An order that changes nothing is answered for good too.
    async fn keep_keys(&self, order: &Order, record: &Record) -> Result<(), StoreError> {
        if order.keys.is_empty() {
            return Ok(());
        }
        let keys = order.keys.iter().map(|key| key.answered(&order.record, record)).collect();
        self.commit_keys(order.actor.clone(), keys).await
    }

    /// Writes keys and nothing else: no fact, no view.
    pub(crate) async fn commit_keys(&self, actor: Arc<str>, keys: Vec<KeptKey>) -> Result<(), StoreError> {
        let commit = Commit { keys, ..empty_commit(self.clock.now(), actor, self.lease) };
        self.commit_surely(commit).await.map(|_| ())
    }

    /// An error at the commit is usually a success: the same commit, under the same fact ids, finds out.
    async fn commit_surely(&self, commit: Commit) -> Result<Committed, StoreError> {
        let mut unanswered = Unanswered { engine: self, commit: Some(&commit) };
        let answer = self.commit_repeatedly(&commit).await;
        unanswered.commit = None;
        answer
    }

    async fn commit_repeatedly(&self, commit: &Commit) -> Result<Committed, StoreError> {
        for repeat in 0..MAX_REPEATS {
            match self.store.commit(commit.clone()).await {
                Err(StoreError::OutcomeUnknown) if planted(Bug::UnknownOutcomeDecidedAnew) => {
                    return Err(StoreError::Conflict);
                }
                Err(StoreError::OutcomeUnknown) => {}
                // "Nothing was written" is true of this repeat, not of the commit before it.
                Err(StoreError::Busy | StoreError::Full | StoreError::Unavailable(_)) if repeat > 0 => {}
                answer => {
                    if let Ok(committed) = answer {
                        for watch in &self.watches {
                            watch.perhaps_committed(commit);
                            watch.committed(commit, committed);
                        }
                    }
                    return answer;
                }
            }
        }
        self.watches.iter().for_each(|watch| watch.perhaps_committed(commit));
        Err(StoreError::OutcomeUnknown)
    }

    fn planner(&self) -> Planner<'_> {
        Planner {
            store: &*self.store,
            ids: &*self.ids,
            retention: self.retention,
            now: self.clock.now(),
            steps: self.clock.steps(),
            lease: self.lease,
            checkpoint_after: self.checkpoint_after,
            preparation: self.preparation(),
        }
    }
}

/// A commit that is on its way. Whoever asked for it may go before it is answered, as a request does whose client hangs up: it is
/// made all the same, and those who watch would never hear of it.
struct Unanswered<'a> {
    engine: &'a Engine,
    commit: Option<&'a Commit>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        // Without a runtime the whole process has ended, in a simulation.
        let (Some(commit), Ok(runtime)) = (self.commit, Handle::try_current()) else { return };
        let (engine, commit) = (self.engine.clone(), commit.clone());
        runtime.spawn(async move {
            // The very same commit finds out, and does nothing twice. In one batch with the first it conflicts with that: it is given again.
            for _ in 0..MAX_REPEATS {
                if !matches!(engine.commit_repeatedly(&commit).await, Err(StoreError::Conflict)) {
                    return;
                }
            }
        });
    }
}
