//! The driver: runs the workers, each in its own loop, until told to stop.
//!
//! A worker that has nothing to do sleeps until the time that it named or a wake-up from a commit; meanwhile nothing is asked of the
//! store. A round that fails is logged and tried again after a wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::attention::Retention;
use domain::{Lease, OwnerId};
use store::Store;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::{Attempts, AttendJobs, DispatchJobs, Engine, Executors, Ids, Next, Timer, Wakes, Worker};

/// How long attempts may go on after a stop was asked for.
const DRAIN: Duration = Duration::from_secs(10);
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
    /// Seconds after the start in which an unknown executor may still come.
    pub grace_seconds: u64,
}

/// The workers of one node, running.
pub struct Daemon {
    engine: Engine,
    attempts: Arc<Attempts>,
    stop: watch::Sender<Stage>,
    loops: Vec<JoinHandle<()>>,
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
        let wakes = Arc::new(Wakes::default());
        let clock: Arc<dyn crate::Clock> = timer.clone();
        let base = Engine::new(store, clock, ids, settings.retention).watched_by(wakes.clone());
        let attempts = Arc::new(Attempts::new(
            base.clone(),
            executors,
            settings.owner.clone(),
            settings.lease,
            timer.clone(),
            wakes.clone(),
            settings.lane_limits,
        ));
        let engine = base.watched_by(attempts.clone());
        let strangers_from = timer.now().plus_seconds(settings.grace_seconds);
        let dispatch = DispatchJobs::new(
            engine.clone(),
            settings.owner.clone(),
            attempts.clone(),
            wakes.clone(),
            strangers_from,
        );
        let attend = AttendJobs::new(engine.clone(), settings.owner, settings.lease, wakes);
        let (stop, stage) = watch::channel(Stage::Running);
        let loops = vec![
            tokio::spawn(drive(Arc::new(dispatch), timer.clone(), stage.clone(), Stage::Draining)),
            tokio::spawn(drive(Arc::new(attend), timer, stage, Stage::Ended)),
        ];
        Self { engine, attempts, stop, loops }
    }

    /// The engine whose commits wake the workers.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The attempts that run here.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Stops: nothing new begins, what runs may finish for a while, the rest is stopped and handed back.
    pub async fn stop(self) {
        self.stop.send_replace(Stage::Draining);
        if tokio::time::timeout(DRAIN, self.attempts.all_ended()).await.is_err() {
            self.attempts.stop_all();
            if tokio::time::timeout(STOPPING, self.attempts.all_ended()).await.is_err() {
                tracing::warn!(
                    attempts = self.attempts.count(),
                    "attempts did not stop; their leases will end"
                );
            }
        }
        self.stop.send_replace(Stage::Ended);
        for one in self.loops {
            let _ = one.await;
        }
    }
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
                tracing::warn!(worker = worker.name(), code = error.code(), "round failed: {error}");
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
            () = due => {}
            () = worker.woken() => {}
            _ = stage.wait_for(|stage| *stage >= until) => {}
        }
    }
}
