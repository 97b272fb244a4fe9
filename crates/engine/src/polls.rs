//! The questions to services that are under way on this node: their places, and how long others wait for one.
//!
//! A service that hangs holds its own places and nobody else's: what is due at it meanwhile is put off. Only where places become
//! free quickly are they waited for, by a few: to put off and to take again costs more than the question. Within one service, what hung
//! last time waits behind what did not (`slots.rs`).

mod asked;
mod early;
mod echoes;
mod heard;
mod lost;
mod question;
mod slots;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::operation::{Operation, PollHistory};
use domain::policy::KindPolicy;
use domain::{Lease, OperationId, OwnerId, RecordId, Timestamp};
use store::{Take, Taken};
use tokio::sync::{Notify, watch};

use crate::locked::Locked;
use crate::{DaemonSettings, Engine, Executors, MayTake, Registered, Spawn, Standing, Timer, Wakes};
use question::{Question, Urgency};
use slots::{PATIENCE_MICROS, Service};

/// The questions under way on this node.
pub struct Polls {
    engine: Engine,
    executors: Executors,
    owner: OwnerId,
    lease: Lease,
    pub(crate) timer: Arc<dyn Timer>,
    spawn: Arc<dyn Spawn>,
    wakes: Arc<Wakes>,
    /// Before this time an unknown executor may still come.
    strangers_from: Timestamp,
    grace_seconds: u64,
    limit: usize,
    standing: Arc<Standing>,
    places: Mutex<Places>,
    /// The operations whose services have called back, with the number of the newest question about each since then: the first time
    /// counts at once, later ones keep to the interval, and one question is an answer to all that called before it.
    called: Mutex<BTreeMap<OperationId, u64>>,
    /// The operations that are asked about now; whoever waits for the end of a question holds a receiver.
    asking: Mutex<BTreeMap<RecordId, watch::Sender<()>>>,
    /// Told whenever a question has ended.
    ended: Notify,
    stopping: watch::Sender<bool>,
}

#[derive(Default)]
struct Places {
    taken: usize,
    /// How many questions ever began here: the number of the newest.
    begun: u64,
    by_kind: BTreeMap<String, Service>,
}

/// Somebody who waits for a place, until this goes.
struct Waiting<'a> {
    polls: &'a Polls,
    kind: &'a str,
    history: PollHistory,
}

/// A place at a service, free again when this goes.
struct Place<'a> {
    polls: &'a Polls,
    kind: String,
    history: PollHistory,
    taken_at: Timestamp,
}

impl Polls {
    /// None yet.
    pub fn new(
        engine: Engine,
        executors: Executors,
        timer: Arc<dyn Timer>,
        spawn: Arc<dyn Spawn>,
        wakes: Arc<Wakes>,
        settings: &DaemonSettings,
    ) -> Self {
        Self {
            engine,
            executors,
            owner: settings.owner.clone(),
            lease: settings.lease,
            strangers_from: timer.now().plus_seconds(settings.grace_seconds),
            grace_seconds: settings.grace_seconds,
            timer,
            spawn,
            wakes,
            limit: settings.policy.max_concurrent_polls_total.0 as usize,
            standing: settings.standing.clone(),
            places: Mutex::default(),
            called: Mutex::default(),
            asking: Mutex::default(),
            ended: Notify::new(),
            stopping: watch::Sender::new(false),
        }
    }

    /// Whether new work may be taken here now.
    pub(crate) fn may_take(&self) -> MayTake {
        self.standing.may_take(self.lease)
    }

    /// How many are under way.
    pub fn count(&self) -> usize {
        self.places.locked().taken
    }

    /// How many questions may begin now.
    pub(crate) fn free(&self) -> usize {
        self.limit.saturating_sub(self.places.locked().taken)
    }

    /// A taking by this node.
    pub(crate) fn take(&self, now: Timestamp, limit: usize) -> Take {
        Take::by(self.owner.clone(), now, self.lease, limit).until_next_commit()
    }

    /// Looks after an operation that was taken because it is due, in a task of its own.
    pub(crate) fn begin(self: &Arc<Self>, taken: Taken) {
        // Should this process lose sight of it, the end of the lease brings it back.
        self.wakes.operation_due(taken.claim.lease_expires_at);
        let asking = self.ask_about(&taken.id);
        let polls = self.clone();
        self.spawn.spawn(Box::pin(async move {
            Question::new(&polls, taken, Urgency::WhenDue).settle().await;
            polls.end(asking);
        }));
    }

    /// Takes a place for a question about this operation.
    fn ask_about(&self, id: &RecordId) -> RecordId {
        let number = {
            let mut places = self.places.locked();
            places.taken += 1;
            places.begun += 1;
            places.begun
        };
        if let RecordId::Operation(operation) = id
            && let Some(newest) = self.called.locked().get_mut(operation)
        {
            *newest = number;
        }
        self.asking.locked().insert(id.clone(), watch::Sender::new(()));
        id.clone()
    }

    fn end(&self, asking: RecordId) {
        self.asking.locked().remove(&asking);
        self.places.locked().taken -= 1;
        self.wakes.place_freed();
        self.ended.notify_waiters();
    }

    /// Tells when the question about this operation ends that this node asks now, if it asks one.
    fn ends_of(&self, id: &OperationId) -> Option<watch::Receiver<()>> {
        self.asking.locked().get(&RecordId::Operation(id.clone())).map(watch::Sender::subscribe)
    }

    /// The executor of an operation: by its kind and the circle of its job, never by who it was then.
    fn executor_of(&self, operation: &Operation) -> Option<&Registered> {
        self.executors.find(operation.link.circle.as_deref(), &operation.link.kind)
    }

    /// Ends when none is under way any more.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.places.locked().taken == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Gives up what is under way: it is asked again by whoever comes next.
    pub(crate) fn stop_all(&self) {
        self.stopping.send_replace(true);
    }

    /// A place at the service of this kind, or when there may be one.
    async fn place(
        &self,
        kind: &str,
        policy: &KindPolicy,
        history: PollHistory,
    ) -> Result<Place<'_>, Timestamp> {
        let limit = policy.max_concurrent_polls_per_module as usize;
        if let Some(place) = self.free_place(kind, limit, history) {
            return Ok(place);
        }
        let Some((waiting, freed)) = self.wait(kind, limit, history) else {
            return Err(self.turn(kind, policy, history));
        };
        let patience = self.timer.now().plus_micros(PATIENCE_MICROS);
        loop {
            let told = freed.notified();
            if let Some(place) = self.free_place(waiting.kind, limit, history) {
                return Ok(place);
            }
            tokio::select! {
                biased;
                () = told => {}
                () = self.timer.sleep_until(patience) => return Err(self.turn(kind, policy, history)),
            }
        }
    }

    fn free_place(&self, kind: &str, limit: usize, history: PollHistory) -> Option<Place<'_>> {
        let now = self.timer.now();
        let taken = self.places.locked().service(kind, now).take(history, limit, now);
        taken.then(|| Place { polls: self, kind: kind.to_owned(), history, taken_at: now })
    }

    /// Lets somebody wait for a place, if it will be free soon and few wait for it.
    fn wait<'a>(
        &'a self,
        kind: &'a str,
        limit: usize,
        history: PollHistory,
    ) -> Option<(Waiting<'a>, Arc<Notify>)> {
        let now = self.timer.now();
        let freed = self.places.locked().service(kind, now).wait(history, limit, now)?;
        Some((Waiting { polls: self, kind, history }, freed))
    }

    /// When somebody who is put off may hope for a place.
    fn turn(&self, kind: &str, policy: &KindPolicy, history: PollHistory) -> Timestamp {
        let now = self.timer.now();
        let limit = policy.max_concurrent_polls_per_module as usize;
        let time_limit_micros = i64::from(policy.status_timeout_ms) * 1_000;
        self.places.locked().service(kind, now).put_off(history, limit, time_limit_micros, now)
    }
}

impl Places {
    fn service(&mut self, kind: &str, now: Timestamp) -> &mut Service {
        if !self.by_kind.contains_key(kind) {
            self.by_kind.insert(kind.to_owned(), Service::new(now));
        }
        let service = self.by_kind.get_mut(kind).expect("it was put there above");
        service.bound(now);
        service
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(service) = self.polls.places.locked().by_kind.get_mut(self.kind) {
            service.stop_waiting(self.history);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let now = self.polls.timer.now();
        if let Some(service) = self.polls.places.locked().by_kind.get_mut(&self.kind) {
            service.free(self.history, self.taken_at, now);
        }
    }
}
