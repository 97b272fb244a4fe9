//! The driver: runs the workers, each in its own loop, until told to stop.
//!
//! A worker that has nothing to do sleeps until the time that it named or a wake-up from a commit; meanwhile nothing is asked of the
//! store. A round that fails is logged and tried again after a wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use domain::attention::Retention;
use domain::job::Trigger;
use domain::policy::HostPolicy;
use domain::timeline::Step;
use domain::{JobId, Lease, OperationId, OwnerId, Record};
use store::{Store, StoreError, Taking};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::commit_log::CommitLog;
use crate::locked::Locked;
use crate::membership::{Agreement, Member};
use crate::preparation::Preparation;
use crate::{
    AsksWatched, Attempts, AttendJobs, Changes, DispatchJobs, Engine, EngineError, Executors, HandOutJobs,
    Ids, Membership, Next, NotePresence, OnRuntime, PollOperations, Polls, Presences, Pulls, RouteEvents,
    RunOrder, StaleReports, Standing, SystemClock, TimeKeeper, Timer, Wakes, Worker,
};

/// How long attempts may go on after a stop was asked for.
const DRAIN: Duration = Duration::from_secs(10);
/// How long questions to services may go on after a stop was asked for.
const POLLS_DRAIN: Duration = Duration::from_secs(30);
/// How long attempts may take to stop when told to.
const STOPPING: Duration = Duration::from_secs(3);
/// Wait after a failed round.
const AFTER_FAILURE_SECONDS: u64 = 1;

/// What a daemon runs on.
pub struct DaemonSettings {
    /// Who this is: unique per process and boot.
    pub owner: OwnerId,
    /// Its leases.
    pub lease: Lease,
    /// How long ended records are kept.
    pub retention: Retention,
    /// Attempts at the same time, per lane; others go by their executor.
    pub lane_limits: BTreeMap<String, usize>,
    /// What the host grants to work outside.
    pub policy: HostPolicy,
    /// Seconds after the start in which an unknown executor may still come.
    pub grace_seconds: u64,
    /// Whether ready jobs are taken by themselves.
    pub dispatching: Dispatching,
    /// How this node stands to its store.
    pub standing: Arc<Standing>,
    /// Who prepares what follows by configuration, if anything does: see [`Router`](crate::Router).
    pub preparation: Option<Arc<dyn Preparation>>,
}

/// Whether ready jobs are taken by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatching {
    /// As soon as a slot is free.
    #[default]
    On,
    /// Only when someone asks; leases and deadlines are still attended to.
    Off,
}

/// The workers of one node, running.
pub struct Daemon {
    engine: Engine,
    attempts: Arc<Attempts>,
    polls: Arc<Polls>,
    pulls: Arc<Pulls>,
    presences: Arc<Presences>,
    asks: Arc<AsksWatched>,
    stale_reports: Arc<StaleReports>,
    changes: Arc<Changes>,
    wakes: Arc<Wakes>,
    timer: Arc<dyn Timer>,
    owner: OwnerId,
    standing: Arc<Standing>,
    policy: HostPolicy,
    /// What keeps the time of a store that nobody else has.
    timekeeper: OnceLock<Arc<TimeKeeper>>,
    /// How the time of a store that nodes share is agreed on.
    agreement: OnceLock<Arc<Agreement>>,
    stop: watch::Sender<Stage>,
    loops: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    /// Nothing new begins; leases and deadlines are still attended to.
    Draining,
    Ended,
}

impl Daemon {
    /// Starts the workers on the current runtime.
    pub fn start(
        store: Arc<dyn Store>,
        timer: Arc<dyn Timer>,
        ids: Arc<dyn Ids>,
        executors: Executors,
        settings: DaemonSettings,
    ) -> Self {
        let (wakes, changes) = (Arc::new(Wakes::default()), Arc::new(Changes::default()));
        let asks = Arc::new(AsksWatched::default());
        let clock: Arc<dyn crate::Clock> = timer.clone();
        let presences = Arc::new(Presences::new(settings.owner.as_str(), clock.clone()));
        let mut base = Engine::new(store, clock, ids, settings.retention)
            .leasing(settings.lease)
            .watched_by(wakes.clone())
            .watched_by(changes.clone())
            .watched_by(asks.clone())
            .watched_by(Arc::new(CommitLog));
        if let Some(preparation) = settings.preparation.clone() {
            base = base.prepared_by(preparation);
        }
        for watch in executors.watches() {
            base = base.watched_by(watch.clone());
        }
        let pulls = Arc::new(Pulls::new(base.clone(), Arc::new(OnRuntime), wakes.clone(), &settings));
        base = base.watched_by(pulls.clone());
        let attempts = Arc::new(Attempts::new(
            base.clone(),
            executors,
            timer.clone(),
            Arc::new(OnRuntime),
            wakes.clone(),
            changes.clone(),
            &settings,
        ));
        let engine = base.watched_by(attempts.clone());
        let polls = Arc::new(Polls::new(
            engine.clone(),
            attempts.executors().clone(),
            timer.clone(),
            Arc::new(OnRuntime),
            wakes.clone(),
            &settings,
        ));
        let stale_reports = Arc::new(StaleReports::new(engine.clone(), timer.clone(), Arc::new(OnRuntime)));
        let policy = settings.policy.clone();
        let (owner, standing) = (settings.owner.clone(), settings.standing.clone());
        let (stop, stage) = watch::channel(Stage::Running);
        let poll = PollOperations::new(engine.clone(), polls.clone(), wakes.clone());
        let attend = AttendJobs::new(engine.clone(), settings.owner.clone(), settings.lease, wakes.clone())
            .sparing(attempts.clone());
        let hand_out = HandOutJobs::new(engine.clone(), pulls.clone());
        let note_presence = NotePresence::new(engine.clone(), presences.clone());
        let route = RouteEvents::new(
            engine.clone(),
            settings.owner.clone(),
            settings.lease,
            wakes.clone(),
            settings.standing.clone(),
        );
        let mut loops = vec![
            tokio::spawn(drive(Arc::new(route), timer.clone(), stage.clone(), Stage::Draining)),
            tokio::spawn(drive(Arc::new(attend), timer.clone(), stage.clone(), Stage::Ended)),
            tokio::spawn(drive(Arc::new(poll), timer.clone(), stage.clone(), Stage::Draining)),
            tokio::spawn(drive(Arc::new(hand_out), timer.clone(), stage.clone(), Stage::Draining)),
            tokio::spawn(drive(Arc::new(note_presence), timer.clone(), stage.clone(), Stage::Ended)),
        ];
        if settings.dispatching == Dispatching::On {
            let strangers_from = timer.now().plus_seconds(settings.grace_seconds);
            let dispatch = DispatchJobs::new(
                engine.clone(),
                settings.owner,
                attempts.clone(),
                wakes.clone(),
                strangers_from,
            );
            loops.push(tokio::spawn(drive(Arc::new(dispatch), timer.clone(), stage, Stage::Draining)));
        }
        let loops = Mutex::new(loops);
        Self {
            engine,
            attempts,
            polls,
            pulls,
            presences,
            asks,
            stale_reports,
            changes,
            wakes,
            timer,
            owner,
            standing,
            policy,
            timekeeper: OnceLock::new(),
            agreement: OnceLock::new(),
            stop,
            loops,
        }
    }

    /// Keeps this node among those that share its store, until the daemon ends.
    pub fn join(&self, membership: Membership) {
        if let Some(clock) = self.standing.shared_clock() {
            let (store, id) = (membership.store.clone(), membership.node.id.clone());
            let agreement = Agreement::new(self.engine.clone(), store, clock.clone(), id, self.wakes.clone());
            // Whoever joins twice is still one node.
            let _ = self.agreement.set(Arc::new(agreement));
        }
        let member = Member {
            membership,
            engine: self.engine.clone(),
            timer: self.timer.clone(),
            attempts: self.attempts.clone(),
            polls: self.polls.clone(),
            pulls: self.pulls.clone(),
            wakes: self.wakes.clone(),
            changes: self.changes.clone(),
            asks: self.asks.clone(),
            standing: self.standing.clone(),
            agreement: self.agreement.get().cloned(),
            seen: BTreeMap::new(),
        };
        self.spawn_until_ended(member.keep_up());
    }

    /// Goes on with this until the daemon has ended, or is dropped.
    fn spawn_until_ended(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut stage = self.stop.subscribe();
        let spawned = tokio::spawn(async move {
            tokio::select! {
                () = work => {}
                _ = stage.wait_for(|stage| *stage == Stage::Ended) => {}
            }
        });
        self.loops.locked().push(spawned);
    }

    /// Keeps the time of a store that this node has for itself, until the daemon ends.
    pub fn keep_time(&self, clock: Arc<SystemClock>) {
        let keeper = TimeKeeper::new(clock, self.engine.clone(), self.wakes.clone());
        if self.timekeeper.set(keeper.clone()).is_ok() {
            self.spawn_until_ended(async move { keeper.run().await });
        }
    }

    /// Makes store time what the wall clock says, the machine's or the database server's, because somebody says so; none if they agree.
    pub async fn set_clock_right(&self, by: Arc<str>) -> Result<Option<Step>, EngineError> {
        if let Some(keeper) = self.timekeeper.get().cloned() {
            return to_its_end(async move { keeper.set_right(by).await }).await;
        }
        let Some(agreement) = self.agreement.get().cloned() else { return Ok(None) };
        to_its_end(async move { agreement.set_right(by).await }).await
    }

    /// Who this node is: the owner of its claims.
    pub fn node_id(&self) -> &str {
        self.owner.as_str()
    }

    /// Whether this node takes work.
    pub fn taking(&self) -> Taking {
        self.standing.taking()
    }

    /// This node is told to take work or not.
    pub fn tell(&self, taking: Taking) {
        if self.standing.told(taking) {
            tracing::info!(?taking, "told by an operator");
            self.wakes.look_again();
            self.pulls.look_again();
        }
    }

    /// Those who pull work from here.
    pub fn pulls(&self) -> &Arc<Pulls> {
        &self.pulls
    }

    /// Those who are heard of here.
    pub fn presences(&self) -> &Arc<Presences> {
        &self.presences
    }

    /// Whoever waits for an ask here.
    pub fn asks(&self) -> &Arc<AsksWatched> {
        &self.asks
    }

    /// The stale reports that are counted and not kept.
    pub fn stale_reports(&self) -> &Arc<StaleReports> {
        &self.stale_reports
    }

    /// The questions to services that are under way here.
    pub fn polls(&self) -> &Polls {
        &self.polls
    }

    /// The engine whose commits wake the workers.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The attempts that run here.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// The executors of this node.
    pub fn executors(&self) -> &Executors {
        self.attempts.executors()
    }

    /// Runs a job now, whatever its due time. Answers when the attempt has left `dispatching`, or after ten seconds.
    pub async fn run_now(
        &self,
        job: &JobId,
        trigger: Trigger,
        order: RunOrder,
    ) -> Result<Arc<Record>, EngineError> {
        self.attempts.run_now(job, trigger, order).await
    }

    /// Asks the service of an operation now, within the same limits as every poll.
    pub async fn poll_now(&self, operation: &OperationId) -> Result<Arc<Record>, EngineError> {
        self.polls.poll_now(operation).await
    }

    /// The service of an operation has called back: it is asked at once, or its word is taken if its executor says so.
    pub async fn called_back(&self, operation: &OperationId, body: Arc<[u8]>) -> Result<(), EngineError> {
        self.polls.called_back(operation, body).await
    }

    /// What the host grants to work outside.
    pub fn policy(&self) -> &HostPolicy {
        &self.policy
    }

    /// Whoever waits for a record or for the ledger.
    pub fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// The highest position of the ledger that was committed by this process.
    pub fn ledger(&self) -> watch::Receiver<u64> {
        self.changes.ledger()
    }

    /// Stops: nothing new begins, what runs may finish for a while, the rest is stopped and handed back.
    pub async fn stop(&self) {
        self.stop.send_replace(Stage::Draining);
        tokio::join!(self.end_polls(), self.end_attempts());
        self.stop.send_replace(Stage::Ended);
        let loops = std::mem::take(&mut *self.loops.locked());
        for one in loops {
            let _ = one.await;
        }
    }

    /// Questions are answered soon or not at all; the rest is asked again after the next start.
    async fn end_polls(&self) {
        if tokio::time::timeout(POLLS_DRAIN, self.polls.all_ended()).await.is_err() {
            self.polls.stop_all();
            let _ = tokio::time::timeout(STOPPING, self.polls.all_ended()).await;
        }
    }

    async fn end_attempts(&self) {
        if tokio::time::timeout(DRAIN, self.attempts.all_ended()).await.is_err() {
            self.attempts.stop_all();
            if tokio::time::timeout(STOPPING, self.attempts.all_ended()).await.is_err() {
                tracing::warn!(
                    attempts = self.attempts.count(),
                    "attempts did not stop; their leases will end"
                );
            }
        }
    }
}

/// Sets the clock in a task of its own: a caller that hangs up leaves no step half adopted.
async fn to_its_end(
    setting: impl Future<Output = Result<Option<Step>, EngineError>> + Send + 'static,
) -> Result<Option<Step>, EngineError> {
    tokio::spawn(setting).await.unwrap_or(Err(EngineError::Store(StoreError::OutcomeUnknown)))
}

/// Runs one worker as long as the process lives.
pub async fn drive_for_good(worker: Arc<dyn Worker>, timer: Arc<dyn Timer>) {
    let (_running, stage) = watch::channel(Stage::Running);
    drive(worker, timer, stage, Stage::Ended).await;
}

/// Runs one worker until the stage says so.
async fn drive(
    worker: Arc<dyn Worker>,
    timer: Arc<dyn Timer>,
    mut stage: watch::Receiver<Stage>,
    until: Stage,
) {
    while *stage.borrow() < until {
        let next = match worker.round(timer.now()).await {
            Ok(next) => next,
            Err(error) => {
                let failed = worker.failed_round();
                tracing::warn!(worker = worker.name(), code = error.code(), "{failed}: {error}");
                Next::At(timer.now().plus_seconds(AFTER_FAILURE_SECONDS))
            }
        };
        let due = async {
            match next {
                Next::Now => {}
                Next::At(at) => timer.sleep_until(at).await,
                Next::WhenWoken => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = due => {}
            () = worker.woken() => {}
            told = stage.wait_for(|stage| *stage >= until) => {
                // A daemon that was dropped works no more.
                if told.is_err() {
                    return;
                }
            }
        }
    }
}
