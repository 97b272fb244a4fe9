//! A node: an engine over its way to the store, and the loops that stand for the workers.
//!
//! Each loop is one bounded round and a sleep. A node that dies loses all its tasks and comes back as another owner.

pub(crate) mod api;
pub(crate) mod executor;
pub(crate) mod poller;
pub(crate) mod script;
pub(crate) mod workers;

use std::sync::Arc;

use domain::{Claim, Fence, JobId, OwnerId, RecordId, RecordKind, Timestamp};
use engine::{Engine, Ids, StaleReports, Wakes};
use pipelines::Router;
use store::{Store, Take, Taken};

use crate::clock::{SimClock, SimIds};
use crate::heap::SECOND;
use crate::setting::WhoseWorkers;
use crate::store::SimStore;
use crate::workers::{OnNode, Workers, route_beside};
use crate::world::Sim;

/// The lanes that nodes dispatch from; `peer` is left to those who pull.
pub const LANES: [&str; 2] = ["builtin", "outside"];
/// The lane that peers pull from.
pub const PEER_LANE: &str = "peer";
/// Records that one round takes at most.
const BATCH: usize = 4;
/// Jobs that one node runs at once.
pub const MAX_RUNNING: usize = 4;
/// Rounds of a recovery.
const RECOVERY_ROUNDS: usize = 3;

/// One process on the store.
#[derive(Clone)]
pub struct Node {
    pub(crate) sim: Sim,
    pub(crate) number: usize,
    pub(crate) owner: OwnerId,
    pub(crate) engine: Engine,
    /// What knows the pipelines.
    pub(crate) router: Arc<Router>,
    /// What wakes the engine's own workers, if this node has them.
    wakes: Option<Arc<Wakes>>,
    pub(crate) actor: Arc<str>,
    pub(crate) stale_reports: Arc<StaleReports>,
}

impl Node {
    /// A new process of this node.
    pub fn boot(sim: &Sim, number: usize) -> Self {
        let (boot, retention, checkpoint_after) = sim.with(|world| {
            let node = &mut world.nodes[number];
            node.up = true;
            node.recovering = true;
            node.boots += 1;
            (node.boots, world.setting.retention, world.setting.checkpoint_after)
        });
        let owner = OwnerId::new(format!("node-{number}-boot-{boot}"));
        sim.with(|world| world.owners.insert(owner.clone()));
        let engine = Engine::new(
            Arc::new(SimStore::new(sim.clone(), number)),
            Arc::new(SimClock { sim: sim.clone(), node: number }),
            Arc::new(SimIds(sim.clone())),
            retention,
        )
        .checkpointing_after(checkpoint_after);
        let actor = crate::orders::actor(number);
        match sim.with(|world| world.setting.workers) {
            WhoseWorkers::Scripted => {
                let (engine, router) = route_beside(sim, number, &owner, engine);
                let stale_reports = count_stale(sim, number, &engine);
                let node = Self {
                    sim: sim.clone(),
                    number,
                    owner,
                    engine,
                    router,
                    wakes: None,
                    actor,
                    stale_reports,
                };
                node.spawn(recover(node.clone()));
                node
            }
            WhoseWorkers::Engine => {
                let (workers, engine) = Workers::on(sim, number, &owner, engine);
                let (wakes, router) = (Some(workers.wakes()), workers.router());
                workers.start(sim, number);
                sim.with(|world| world.nodes[number].recovering = false);
                let stale_reports = count_stale(sim, number, &engine);
                Self { sim: sim.clone(), number, owner, engine, router, wakes, actor, stale_reports }
            }
        }
    }

    /// Starts a task that dies with this process.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.sim.spawn(Some(self.number), work);
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.engine.clock().now()
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        self.engine.store()
    }

    /// The ids.
    pub fn ids(&self) -> &dyn Ids {
        self.engine.ids()
    }

    /// A taking by this node, now.
    pub fn take(&self, limit: usize) -> Take {
        self.take_for(self.owner.clone(), limit)
    }

    /// A taking for someone.
    pub fn take_for(&self, owner: OwnerId, limit: usize) -> Take {
        let lease = self.sim.with(|world| world.setting.lease);
        Take::by(owner, self.now(), lease, limit)
    }

    /// A lease on a job begins now, perhaps: its end is attended to, whatever is heard of it.
    pub fn will_attend(&self) {
        if let Some(wakes) = &self.wakes {
            wakes.due(self.sim.with(|world| world.setting.lease).expires_at(self.now()));
        }
    }

    /// A claim on an event begins now, perhaps: its end is looked after, whatever is heard of it.
    pub fn will_route(&self) {
        if let Some(wakes) = &self.wakes {
            wakes.routing_due(self.sim.with(|world| world.setting.lease).expires_at(self.now()));
        }
    }

    /// Prolongs a lease. The new fence replaces the old one, which is dead.
    pub async fn renew(&self, id: &RecordId, fence: Fence) -> Result<Claim, store::StoreError> {
        let lease = self.sim.with(|world| world.setting.lease);
        self.will_attend();
        self.store().renew(id, fence, self.now(), lease).await.map(|taken| taken.claim)
    }

    /// A place for one more job on this node, if there is one.
    pub fn slot(&self) -> Option<RunningJob> {
        let room = self.sim.with(|world| world.nodes[self.number].running < MAX_RUNNING);
        room.then(|| RunningJob::on(&self.sim, self.number))
    }

    async fn rest(&self) {
        let idle = self.sim.with(|world| world.setting.idle);
        self.sim.doze(SECOND / 10, idle).await;
    }
}

/// Counts the stale reports that come to a node.
fn count_stale(sim: &Sim, node: usize, engine: &Engine) -> Arc<StaleReports> {
    let (clock, spawn) = (SimClock { sim: sim.clone(), node }, OnNode { sim: sim.clone(), node });
    Arc::new(StaleReports::new(engine.clone(), Arc::new(clock), Arc::new(spawn)))
}

/// A job that a node runs; its place is free again when this goes.
pub struct RunningJob {
    sim: Sim,
    node: usize,
    boot: u32,
}

impl RunningJob {
    /// One more on this node.
    pub fn on(sim: &Sim, node: usize) -> Self {
        let boot = sim.with(|world| {
            let state = &mut world.nodes[node];
            state.running += 1;
            state.boots
        });
        Self { sim: sim.clone(), node, boot }
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        self.sim.at_end(|world| {
            let node = &mut world.nodes[self.node];
            if node.boots == self.boot {
                node.running = node.running.saturating_sub(1);
            }
        });
    }
}

/// What a process does first: it looks after what is due before it asks for new work.
async fn recover(node: Node) {
    for _ in 0..RECOVERY_ROUNDS {
        let jobs = attend_jobs(&node).await;
        let operations = poll_operations(&node).await;
        if jobs + operations == 0 {
            break;
        }
    }
    node.sim.with(|world| world.nodes[node.number].recovering = false);
    node.spawn(rounds(node.clone(), Worker::Dispatch));
    node.spawn(rounds(node.clone(), Worker::AttendJobs));
    node.spawn(rounds(node.clone(), Worker::PollOperations));
}

#[derive(Clone, Copy)]
enum Worker {
    Dispatch,
    AttendJobs,
    PollOperations,
}

async fn rounds(node: Node, worker: Worker) {
    loop {
        node.rest().await;
        match worker {
            Worker::Dispatch => dispatch(&node).await,
            Worker::AttendJobs => drop(attend_jobs(&node).await),
            Worker::PollOperations => drop(poll_operations(&node).await),
        }
    }
}

/// Takes ready jobs, as many as there is room for, and runs each in its own task.
async fn dispatch(node: &Node) {
    for lane in LANES {
        let running = node.sim.with(|world| world.nodes[node.number].running);
        let room = MAX_RUNNING.saturating_sub(running).min(BATCH);
        if room == 0 {
            return;
        }
        let Ok(taken) = node.store().take_ready(lane.into(), node.take(room)).await else { continue };
        for taken in taken {
            let Some(slot) = node.slot() else { break };
            node.spawn(run(node.clone(), taken, slot));
        }
    }
}

async fn run(node: Node, taken: Taken, slot: RunningJob) {
    executor::run(&node, taken).await;
    drop(slot);
}

/// Does what time alone brings about for jobs.
async fn attend_jobs(node: &Node) -> usize {
    let Ok(taken) = node.store().take_due(RecordKind::Job, node.take(BATCH)).await else { return 0 };
    for taken in &taken {
        // Whoever took it over in the meantime will see to it; this one goes on with the next.
        let _ = node.attend(taken).await;
    }
    taken.len()
}

/// Asks the services of due operations.
async fn poll_operations(node: &Node) -> usize {
    let Ok(taken) = node.store().take_due(RecordKind::Operation, node.take(BATCH)).await else { return 0 };
    let count = taken.len();
    for taken in taken {
        node.spawn(poller::poll(node.clone(), taken));
    }
    count
}

/// The job of a record, if it is one.
pub fn job_id(id: &RecordId) -> Option<JobId> {
    id.as_job().cloned()
}
