//! The attempts that run on this node: their slots, their leases, their end.

mod adopt;
mod asked;
mod outside;
mod report;
mod run;
mod tenure;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use domain::attention::Holding;
use domain::job::{JobStateName, anywhere, pinned, pinned_to};
use domain::policy::HostPolicy;
use domain::{AttemptId, JobId, Lease, OwnerId, Record, RecordId, Timestamp};
use store::{Commit, Committed, Lane, Taken};
use tokio::sync::{Notify, watch};

use crate::locked::Locked;
use crate::{
    Changes, CommitWatch, DaemonSettings, Dispatching, Engine, EngineError, Executors, LaneLimits, MayTake,
    Spawn, Standing, Stop, Timer, Wakes, neighbours,
};
use asked::Origin;
pub use asked::RunOrder;
pub(crate) use report::{MAX_AGAIN, is_about_the_report, is_damage};
use run::Attempt;
pub(crate) use work::message_of;

/// What the actor of a report begins with if it comes from the doer of one attempt; the attempt's id follows.
pub const DOER: &str = "attempt:";
/// Attempts at the same time in a lane that has no limit of its own.
const DEFAULT_LANE_LIMIT: usize = 64;

/// The attempts that run on this node.
pub struct Attempts {
    engine: Engine,
    executors: Executors,
    owner: OwnerId,
    lease: Lease,
    timer: Arc<dyn Timer>,
    spawn: Arc<dyn Spawn>,
    wakes: Arc<Wakes>,
    changes: Arc<Changes>,
    lane_limits: LaneLimits,
    /// What the host grants to work outside.
    policy: HostPolicy,
    strangers_from: Timestamp,
    grace_seconds: u64,
    dispatching: Dispatching,
    standing: Arc<Standing>,
    running: Mutex<Running>,
    /// Told whenever an attempt has ended.
    ended: Notify,
}

#[derive(Default)]
struct Running {
    /// How many ever began here: the number of the newest.
    begun: u64,
    /// The newest attempt of each job.
    by_job: BTreeMap<JobId, Begun>,
    /// By the lane that each would be for any node: what is pinned here takes of the same places.
    by_lane: BTreeMap<Arc<str>, usize>,
    /// The lanes with a limit of which something was pinned here, as they are for any node: both are looked at when a place is free.
    pinned_here: BTreeSet<Arc<str>>,
}

/// An attempt that runs.
struct Begun {
    number: u64,
    /// Known once it is on the ledger.
    attempt_id: Option<AttemptId>,
    since: Timestamp,
    stopper: watch::Sender<Stop>,
}

/// Whether there are attempts that began after a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Younger {
    Some,
    None,
}

impl Attempts {
    /// None yet.
    pub fn new(
        engine: Engine,
        executors: Executors,
        timer: Arc<dyn Timer>,
        spawn: Arc<dyn Spawn>,
        wakes: Arc<Wakes>,
        changes: Arc<Changes>,
        settings: &DaemonSettings,
    ) -> Self {
        Self {
            engine,
            executors,
            owner: settings.owner.clone(),
            lease: settings.lease,
            strangers_from: timer.now().plus_seconds(settings.grace_seconds),
            grace_seconds: settings.grace_seconds,
            dispatching: settings.dispatching,
            timer,
            spawn,
            wakes,
            changes,
            lane_limits: settings.lane_limits.clone().into(),
            policy: settings.policy.clone(),
            standing: settings.standing.clone(),
            running: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// What can do the work.
    pub fn executors(&self) -> &Executors {
        &self.executors
    }

    /// The lease that its attempts have.
    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// Whether new work may be taken here now.
    pub fn may_take(&self) -> MayTake {
        self.standing.may_take(self.lease)
    }

    /// Whether leases can be judged here now.
    pub(crate) fn is_sure(&self) -> bool {
        self.standing.is_sure(self.lease)
    }

    /// When an attempt whose lease was last renewed then stops by itself.
    fn stops_at(&self, renewed_at: Timestamp) -> Option<(Timestamp, Timestamp)> {
        self.standing.stops_at(renewed_at, self.lease).map(|stops_at| (renewed_at, stops_at))
    }

    /// Whether jobs of an executor of ours queue in a lane, or it has a limit of its own.
    pub fn serves(&self, lane: &str) -> bool {
        let lane = anywhere(lane);
        self.executors.concurrency(lane).is_some() || self.lane_limits.of(lane).is_some()
    }

    /// Whether only another node takes from a lane.
    pub fn is_pinned_elsewhere(&self, lane: &str) -> bool {
        pinned_to(lane).is_some_and(|(node, _)| node != self.owner.node())
    }

    /// Whether a lane that is not served here is served by another node.
    pub(crate) async fn is_served_elsewhere(&self, lane: &str) -> Result<bool, EngineError> {
        let whose = neighbours::Whose::Anybodys;
        neighbours::have(&self.engine, &self.standing, lane, whose, self.timer.now()).await
    }

    /// Before this time nothing is done about executors and lanes that are not known here: they may still come.
    pub fn strangers_from(&self) -> Timestamp {
        self.strangers_from
    }

    /// Whether jobs are taken by themselves.
    pub fn dispatching(&self) -> Dispatching {
        self.dispatching
    }

    /// The lane to take from, with the limit that all nodes together keep to, if it has one of its own: that of the lane for any node.
    pub(crate) fn lane<'a>(&self, name: &'a str) -> Lane<'a> {
        let usual = anywhere(name);
        let limit = self.lane_limits.of(usual);
        if limit.is_some() && pinned_to(name).is_some() {
            // Before it is asked: a place that becomes free meanwhile must not be missed.
            self.running.locked().pinned_here.insert(Arc::from(usual));
        }
        Lane { name, limit }
    }

    /// How many attempts may begin in this lane here now.
    pub fn free_slots(&self, lane: &str) -> usize {
        let usual = anywhere(lane);
        let limit = match (self.lane_limits.of(usual), self.executors.concurrency(usual)) {
            (Some(limit), _) => limit,
            (None, Some(concurrency)) => concurrency,
            (None, None) => DEFAULT_LANE_LIMIT,
        };
        limit.saturating_sub(self.running.locked().by_lane.get(usual).copied().unwrap_or_default())
    }

    /// Until when nobody may be asked whose jobs queue in this lane.
    pub(crate) fn left_alone_until(&self, lane: &str, now: Timestamp) -> Option<Timestamp> {
        self.executors.left_alone_until(anywhere(lane), now)
    }

    /// Whoever was left alone is not any more: the jobs that wait in its lane, for any node or for this one, are looked at.
    pub fn look_at_lane(&self, usual: &str) {
        self.wakes.ready(&Arc::from(usual));
        self.wakes.ready(&Arc::from(pinned(self.owner.node(), usual)));
    }

    /// A place in a lane with a limit may have become free. Other nodes hear of the commit that freed it.
    fn place_freed(&self, usual: &str) {
        if self.lane_limits.of(usual).is_none() {
            return;
        }
        if self.running.locked().pinned_here.contains(usual) {
            self.wakes.ready(&Arc::from(pinned(self.owner.node(), usual)));
        }
        self.wakes.ready(&Arc::from(usual));
    }

    /// Begins an attempt of a job that was taken. It runs by itself and reports by itself.
    pub(crate) fn begin_found(self: &Arc<Self>, lane: &Arc<str>, taken: Taken) {
        self.begin(lane, taken, Origin::Found);
    }

    fn begin(self: &Arc<Self>, lane: &Arc<str>, taken: Taken, origin: Origin) {
        let RecordId::Job(job_id) = taken.id.clone() else { return };
        // Should this process lose sight of it, the end of the lease brings it back.
        self.wakes.due(taken.claim.lease_expires_at);
        let usual: Arc<str> =
            if pinned_to(lane).is_some() { Arc::from(anywhere(lane)) } else { lane.clone() };
        let (link, far_end) = crate::Link::new(run::PROGRESS_WAITING);
        let stopper = far_end.stopper.clone();
        let since = self.timer.now();
        let number = {
            let mut running = self.running.locked();
            *running.by_lane.entry(usual.clone()).or_default() += 1;
            running.begun += 1;
            let number = running.begun;
            running.by_job.insert(job_id.clone(), Begun { number, attempt_id: None, since, stopper });
            number
        };
        let attempt = Attempt::new(self.clone(), taken, link, far_end);
        let attempts = self.clone();
        self.spawn.spawn(Box::pin(async move {
            attempt.run(origin).await;
            attempts.end(&usual, &job_id, number);
        }));
    }

    fn end(&self, lane: &Arc<str>, job_id: &JobId, number: u64) {
        let mut running = self.running.locked();
        // A later attempt of the same job may run already.
        if running.by_job.get(job_id).is_some_and(|newest| newest.number == number) {
            running.by_job.remove(job_id);
        }
        if let Some(count) = running.by_lane.get_mut(lane) {
            *count -= 1;
            if *count == 0 {
                running.by_lane.remove(lane);
            }
        }
        drop(running);
        // Others may have filled it when we asked last, and be gone.
        self.place_freed(lane);
        self.wakes.slot_freed();
        self.ended.notify_waiters();
    }

    /// How many run.
    pub fn count(&self) -> usize {
        self.running.locked().by_lane.values().sum()
    }

    /// Ends when none runs any more.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.count() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Tells all to stop.
    pub(crate) fn stop_all(&self) {
        for begun in self.running.locked().by_job.values() {
            begun.stopper.send_if_modified(|stop| replace(stop, Stop::Shutdown));
        }
    }

    /// An attempt that was begun is on the ledger.
    fn dispatched(&self, job_id: &JobId, attempt_id: &AttemptId, stopper: &watch::Sender<Stop>) {
        if let Some(begun) = self.running.locked().by_job.get_mut(job_id)
            && begun.stopper.same_channel(stopper)
        {
            begun.attempt_id = Some(attempt_id.clone());
        }
    }

    /// A record has changed, here or on another node: what that means for an attempt that runs here.
    pub(crate) fn notice(&self, record: &Record) {
        self.notice_by(record, None);
    }

    /// The same, if it may have been the doer of this attempt that changed it.
    fn notice_by(&self, record: &Record, doer: Option<&str>) {
        let Record::Job(job) = record else { return };
        let running = self.running.locked();
        let Some(begun) = running.by_job.get(&job.id) else { return };
        let state = job.state.name();
        let in_hands =
            matches!(state, JobStateName::Dispatching | JobStateName::Delivered | JobStateName::Running);
        let by_itself = doer.is_some() && doer == begun.attempt_id.as_ref().map(AttemptId::as_str);
        let stop = match &job.cancel {
            _ if by_itself && !in_hands => Stop::Reported,
            _ if state.is_terminal() => Stop::LeaseLost,
            Some(_) => Stop::Cancelled,
            None => return,
        };
        begun.stopper.send_if_modified(|current| replace(current, stop));
    }

    /// The jobs whose attempts began here before this time, and whether there are younger ones.
    pub(crate) fn begun_before(&self, time: Timestamp) -> (Vec<JobId>, Younger) {
        let running = self.running.locked();
        let old = running.by_job.iter().filter(|(_, one)| one.since <= time);
        let jobs: Vec<JobId> = old.map(|(job_id, _)| job_id.clone()).collect();
        let younger = if jobs.len() < running.by_job.len() { Younger::Some } else { Younger::None };
        (jobs, younger)
    }
}

impl CommitWatch for Attempts {
    /// A cancel reaches the attempt that runs here at once, and so does an end that others brought about.
    fn committed(&self, commit: &Commit, _: Committed) {
        for change in &commit.changes {
            self.notice_by(&change.record, commit.actor.strip_prefix(DOER));
            if let Record::Job(job) = &*change.record
                && change.agenda.holding != Holding::LeaseBound
                && let Some(executor) = &job.spec.executor
            {
                // It has left its slot without an attempt of ours: whoever waits for one in a lane with a limit looks again.
                let lane = job.spec.lane.as_deref().unwrap_or(executor);
                self.place_freed(lane);
            }
        }
    }
}

/// The first reason to stop stays.
fn replace(stop: &mut Stop, with: Stop) -> bool {
    let first = *stop == Stop::GoOn;
    if first {
        *stop = with;
    }
    first
}
