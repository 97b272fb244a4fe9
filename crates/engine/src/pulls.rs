//! Work that others pull: who waits for it, and what is known of the lanes without a question to the store.
//!
//! Whoever waits costs nothing but memory. A commit that makes a job ready in a lane that somebody waits for wakes the worker that
//! hands out (`workers/hand_out.rs`), which takes for all of them at once, under their own names: a puller is the owner of its
//! claim, and outlives this process.

mod attempt;
mod damaged;
mod waiting;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use domain::attention::Holding;
use domain::job::{Caller, Job, Pull};
use domain::{Claim, Fence, Lease, OwnerId, Record, RecordId, Refusal};
use store::{Commit, Lane, StoreError, Take, Taken};
use tokio::sync::{Notify, oneshot};

use crate::locked::Locked;
use crate::{CommitWatch, DaemonSettings, Engine, EngineError, LaneLimits, MayTake, Spawn, Standing, Wakes};
pub use attempt::{Beat, Handed};
pub(crate) use damaged::BODY_DAMAGED;
use waiting::{Waiter, Waiting};

/// Who may wait at once, on this node.
pub const MAX_WAITING: usize = 20_000;

/// For how long somebody who asked for work of a lane is taken to come back.
const IN_SIGHT_SECONDS: u64 = 90;

/// Someone who asks for work.
#[derive(Clone, Debug)]
pub struct Puller {
    /// Unique per process that does the work.
    pub owner: OwnerId,
    /// Who asks, for the facts.
    pub actor: Arc<str>,
    /// Whose reports on the attempt count.
    pub caller: Caller,
    /// Where its work queues.
    pub lanes: Vec<PulledLane>,
}

/// A lane that is pulled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledLane {
    /// Its whole name.
    pub name: Arc<str>,
    /// How many of its jobs may be held at the same time.
    pub limit: Option<usize>,
}

/// Those who wait on this node.
pub struct Pulls {
    engine: Engine,
    lease: Lease,
    standing: Arc<Standing>,
    spawn: Arc<dyn Spawn>,
    wakes: Arc<Wakes>,
    lane_limits: LaneLimits,
    waiting: Mutex<Waiting>,
    asked: Notify,
    /// How often the store was asked for work to hand out.
    questions: AtomicU64,
    /// How many jobs were handed out.
    handed: AtomicU64,
}

impl Pulls {
    /// Nobody yet.
    pub fn new(engine: Engine, spawn: Arc<dyn Spawn>, wakes: Arc<Wakes>, settings: &DaemonSettings) -> Self {
        Self {
            engine,
            lease: settings.lease,
            standing: settings.standing.clone(),
            spawn,
            wakes,
            lane_limits: settings.lane_limits.clone().into(),
            waiting: Mutex::default(),
            asked: Notify::new(),
            questions: AtomicU64::new(0),
            handed: AtomicU64::new(0),
        }
    }

    /// How often the store was asked for work to hand out, since the start.
    pub fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// How many jobs were handed out, since the start.
    pub fn handed_out(&self) -> u64 {
        self.handed.load(Ordering::Relaxed)
    }

    /// The store is asked for work.
    pub(crate) fn count_question(&self) {
        self.questions.fetch_add(1, Ordering::Relaxed);
    }

    /// The limit of a lane that callers name so.
    pub fn limit_of(&self, lane: &str) -> Option<usize> {
        self.lane_limits.of(lane)
    }

    /// The lease of whoever pulls.
    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// How many wait on this node for the work of a lane in other circles.
    pub fn waiting_elsewhere(&self, lane: &str) -> usize {
        self.waiting().elsewhere(lane)
    }

    /// Whether somebody waits for work of a lane on this node, or asked for it a moment ago.
    pub fn are_in_sight(&self, lane: &str) -> bool {
        let now = self.engine.clock().now();
        self.waiting().is_asked(lane, IN_SIGHT_SECONDS, now)
    }

    /// Somebody asks for work of these lanes.
    fn note_asked(&self, lanes: &[PulledLane]) {
        let now = self.engine.clock().now();
        self.waiting().note_asked(lanes, now);
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.waiting().count()
    }

    /// Waits for a record to hold; `Busy` if too many wait. Whoever stops waiting gets nothing.
    pub async fn take(
        self: &Arc<Self>,
        owner: OwnerId,
        lanes: Vec<PulledLane>,
    ) -> Result<Taken, EngineError> {
        let (told, taken) = oneshot::channel();
        let waiter = Arc::new(Waiter::new(owner, told));
        self.note_asked(&lanes);
        let mut place = {
            let mut waiting = self.waiting();
            if waiting.count() >= MAX_WAITING {
                return Err(StoreError::Busy.into());
            }
            if waiting.add(&waiter, &lanes) {
                self.asked.notify_one();
            }
            Place { pulls: self.clone(), waiter, lanes, taken }
        };
        // Whoever hands out is gone with the process.
        (&mut place.taken).await.map_err(|_| EngineError::Contended)
    }

    /// A record to hold, if there is one now.
    pub async fn take_now(
        &self,
        owner: &OwnerId,
        lanes: &[PulledLane],
    ) -> Result<Option<Taken>, EngineError> {
        self.note_asked(lanes);
        for lane in lanes {
            let known_empty = self.waiting().is_empty(&lane.name);
            if known_empty || self.may_take() != MayTake::Yes {
                continue;
            }
            let take = Take::by(owner.clone(), self.engine.clock().now(), self.lease, 1);
            self.count_question();
            let mut taken = self.engine.store().take_ready(lane.lane(), take).await?;
            if let Some(taken) = taken.pop() {
                self.attend_to_end_of(&taken);
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// Until it is sure that its taker may have it.
    pub fn held(self: &Arc<Self>, taken: Taken) -> Held {
        Held { pulls: self.clone(), taken: Some(taken) }
    }

    /// One record by its id, if it may be pulled now and nobody holds it.
    pub async fn take_named(
        &self,
        id: &RecordId,
        owner: OwnerId,
        lease: Lease,
    ) -> Result<Taken, EngineError> {
        let now = self.engine.clock().now();
        let taken = self.engine.store().take(id, Take::by(owner, now, lease, 1)).await?;
        self.attend_to_end_of(&taken);
        // Looked at after it was taken: it may have ended in between.
        let loaded = self.engine.store().load(id).await?.ok_or(Refusal::UnknownRecord)?;
        let may_be_taken = match loaded.record.as_event() {
            Some(event) => event.may_be_claimed(),
            None => attempt::job(&loaded.record)?.may_be_pulled(now),
        };
        match may_be_taken {
            Ok(()) => Ok(taken),
            Err(refusal) => {
                self.hand_back(&taken).await;
                Err(refusal.into())
            }
        }
    }

    /// Prolongs a claim from outside; whoever shows another fence has lost it.
    pub async fn renew(&self, id: &RecordId, fence: Fence, lease: Lease) -> Result<Claim, StoreError> {
        let now = self.engine.clock().now();
        let renewed = self.engine.store().renew(id, fence, now, lease).await?;
        self.attend_to_end_of(&renewed);
        Ok(renewed.claim)
    }

    /// If its holder is not heard of, the end of the lease is attended to at once.
    fn attend_to_end_of(&self, taken: &Taken) {
        self.wakes.record_due(&taken.id, taken.claim.lease_expires_at);
    }

    /// Whether work may be handed out here now.
    pub(crate) fn may_take(&self) -> MayTake {
        self.standing.may_take(self.lease)
    }

    /// Others may have made work ready: the worker asks which lanes have something. Only for nodes that share a store.
    pub(crate) fn look_again(&self) {
        if self.waiting().look_again() {
            self.asked.notify_one();
        }
    }

    /// Ends when a lane should be asked.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Hands a taken record to the one who holds it now; nobody's if that one waits no more.
    pub(crate) fn hand(self: &Arc<Self>, lane: &str, taken: Taken) {
        self.attend_to_end_of(&taken);
        let waiter = self.waiting().remove_owner(lane, &taken.claim.owner);
        let left = match waiter {
            Some(waiter) => waiter.tell(taken),
            None => Some(taken),
        };
        if let Some(taken) = left {
            self.hand_back_by_itself(taken);
        }
    }

    fn hand_back_by_itself(self: &Arc<Self>, taken: Taken) {
        let pulls = self.clone();
        self.spawn.spawn(Box::pin(async move { pulls.hand_back(&taken).await }));
    }

    /// Gives a record back that nobody has seen: it is ready again at once.
    pub(crate) async fn hand_back(&self, taken: &Taken) {
        if let Err(error) = self.release(&taken.id, taken.claim.fence()).await {
            // The end of its lease brings it back.
            tracing::info!(record = %taken.id, code = error.code(), "not handed back: {error}");
        }
    }

    /// Whoever shows the fence gives a record back: it is ready again as soon as a worker has looked at it.
    pub async fn release(&self, id: &RecordId, fence: Fence) -> Result<(), StoreError> {
        let now = self.engine.clock().now();
        self.engine.store().hand_back(id, fence, now, now).await?;
        self.wakes.record_due(id, now);
        Ok(())
    }

    pub(crate) fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.locked()
    }

    /// Whether a job is pulled from a lane with a limit.
    fn has_limit(&self, job: &Job) -> bool {
        let (None, Pull::Lane(lane)) = (&job.spec.executor, job.spec.pull()) else { return false };
        self.lane_limits.of(lane).is_some()
    }
}

impl CommitWatch for Pulls {
    /// A question for nothing is harmless, a missing one is not.
    fn perhaps_committed(&self, commit: &Commit) {
        let mut waiting = self.waiting();
        let mut asked = false;
        for change in &commit.changes {
            match (&change.agenda.place, &*change.record) {
                (Some(place), _) if change.agenda.ready => asked |= waiting.may_be_ready(&place.lane),
                // It has left its slot, whatever becomes of it.
                (_, Record::Job(job))
                    if change.agenda.holding != Holding::LeaseBound && self.has_limit(job) =>
                {
                    asked |= waiting.may_be_ready(&Arc::from(&*job.spec.lane()));
                }
                (Some(_) | None, _) => {}
            }
        }
        drop(waiting);
        if asked {
            self.asked.notify_one();
        }
    }
}

impl PulledLane {
    /// As the store is asked.
    pub(crate) fn lane(&self) -> Lane<'_> {
        Lane { name: &self.name, limit: self.limit }
    }
}

/// A record that was taken for someone who may hang up: whoever drops it gives it back.
pub struct Held {
    pulls: Arc<Pulls>,
    taken: Option<Taken>,
}

impl Held {
    /// It stays taken.
    pub fn keep(mut self) -> Taken {
        self.taken.take().expect("it is kept once")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.pulls.hand_back_by_itself(taken);
        }
    }
}

/// Someone's place among those who wait, as long as they do.
struct Place {
    pulls: Arc<Pulls>,
    waiter: Arc<Waiter>,
    lanes: Vec<PulledLane>,
    taken: oneshot::Receiver<Taken>,
}

impl Drop for Place {
    fn drop(&mut self) {
        // It may wait for long: what counts is when it was there last.
        self.pulls.note_asked(&self.lanes);
        self.pulls.waiting().remove(&self.waiter, &self.lanes);
        self.taken.close();
        // It was given in the moment in which its taker went away.
        if let Ok(taken) = self.taken.try_recv() {
            self.pulls.hand_back_by_itself(taken);
        }
    }
}
