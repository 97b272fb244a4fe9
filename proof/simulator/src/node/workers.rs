//! The engine's own workers on a node of the simulation: the real rounds, the real attempts, on the heap's time.
//!
//! Only the specialist is scripted. What a real attempt never does (forget to renew, write without its fence) is left to the
//! scripted workers of `node`; a seed has one or the other.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use domain::job::{AfterExternal, CancelAnswer, Resubmit, Retryable};
use domain::operation::{Operation, POLL_TIMED_OUT, PollAnswer, PollError, PollFailure};
use domain::policy::Hint;
use domain::{Digest, OwnerId, RecordId, RetryPolicy};
use engine::{
    Assignment, Attempts, AttendJobs, CancelReply, Changes, DaemonSettings, Deferral, DispatchJobs,
    Dispatching, Engine, Executor, Executors, Failure, Intent, Link, Output, Outside, PollOperations, Polled,
    Polls, Produced, Spawn, Specialist, Stop, Task, Timer, Wakes, Worker, drive_for_good,
};
use futures::future::BoxFuture;
use pipelines::Router;

use crate::clock::SimClock;
use crate::connector::Connector;
use crate::counters::Sometimes;
use crate::heap::SECOND;
use crate::invariants::{Effect, Produced as Proof, must};
use crate::node::{LANES, MAX_RUNNING, RunningJob};
use crate::routed::{self, Routing};
use crate::script::{Act, Script};
use crate::world::Sim;

/// How often a node that shares its store asks it again.
const LOOK_AGAIN_EVERY: i64 = 10 * SECOND;
/// Longer than any run: lanes without an executor are left to the peers that pull from them.
const NEVER_SECONDS: u64 = 10 * 365 * 86_400;

/// The workers of one process, not yet running.
pub struct Workers {
    timer: Arc<dyn Timer>,
    attend: Arc<dyn Worker>,
    dispatch: Arc<dyn Worker>,
    poll: Arc<dyn Worker>,
    route: Arc<dyn Worker>,
    wakes: Arc<Wakes>,
    router: Arc<Router>,
}

impl Workers {
    /// Workers for a node, and the engine whose commits wake them.
    pub fn on(sim: &Sim, node: usize, owner: &OwnerId, engine: Engine) -> (Self, Engine) {
        let (lease, retention, policy) =
            sim.with(|world| (world.setting.lease, world.setting.retention, world.setting.host.clone()));
        let timer: Arc<dyn Timer> = Arc::new(SimClock { sim: sim.clone(), node });
        let (wakes, changes) = (Arc::new(Wakes::default()), Arc::new(Changes::default()));
        let (routing, engine) = Routing::on(sim, executors(sim, node), &wakes, engine);
        let engine = engine.watched_by(changes.clone());
        let settings = DaemonSettings {
            preparation: None,
            owner: owner.clone(),
            lease,
            retention,
            lane_limits: BTreeMap::new(),
            policy,
            grace_seconds: NEVER_SECONDS,
            dispatching: Dispatching::On,
            standing: engine::Standing::alone(),
        };
        let attempts = Arc::new(Attempts::new(
            engine.clone(),
            executors(sim, node),
            timer.clone(),
            Arc::new(OnNode { sim: sim.clone(), node }),
            wakes.clone(),
            changes,
            &settings,
        ));
        let engine = engine.watched_by(attempts.clone());
        let polls = Arc::new(Polls::new(
            engine.clone(),
            executors(sim, node),
            timer.clone(),
            Arc::new(OnNode { sim: sim.clone(), node }),
            wakes.clone(),
            &settings,
        ));
        let poll = PollOperations::new(engine.clone(), polls, wakes.clone());
        let strangers_from = timer.now().plus_seconds(settings.grace_seconds);
        let attend =
            AttendJobs::new(engine.clone(), owner.clone(), lease, wakes.clone()).sparing(attempts.clone());
        let dispatch =
            DispatchJobs::new(engine.clone(), owner.clone(), attempts, wakes.clone(), strangers_from);
        let router = routing.router.clone();
        let route = Arc::new(routing.worker(sim, owner.clone(), engine.clone()));
        let (attend, dispatch, poll) = (Arc::new(attend), Arc::new(dispatch), Arc::new(poll));
        (Self { timer, attend, dispatch, poll, route, wakes, router }, engine)
    }

    /// What wakes them.
    pub fn wakes(&self) -> Arc<Wakes> {
        self.wakes.clone()
    }

    /// What knows the pipelines.
    pub fn router(&self) -> Arc<Router> {
        self.router.clone()
    }

    /// Starts their loops on their node.
    pub fn start(self, sim: &Sim, node: usize) {
        if !sim.with(|world| world.setting.is_in_process()) {
            sim.spawn(Some(node), look_again(sim.clone(), self.wakes));
        }
        for worker in [self.attend, self.dispatch, self.poll, self.route] {
            sim.spawn(Some(node), drive_for_good(worker, self.timer.clone()));
        }
    }
}

/// The engine's own routing beside scripted workers, and the engine whose commits wake it. Their reports say nothing of what follows: every
/// step after the first is begun by this worker.
pub fn route_beside(sim: &Sim, node: usize, owner: &OwnerId, engine: Engine) -> (Engine, Arc<Router>) {
    let wakes = Arc::new(Wakes::default());
    let (routing, engine) = Routing::on(sim, executors(sim, node), &wakes, engine);
    if sim.with(|world| world.setting.events) == 0 {
        return (engine, routing.router);
    }
    let router = routing.router.clone();
    let timer: Arc<dyn Timer> = Arc::new(SimClock { sim: sim.clone(), node });
    let route = Arc::new(routing.worker(sim, owner.clone(), engine.clone()));
    sim.spawn(Some(node), look_again(sim.clone(), wakes));
    sim.spawn(Some(node), drive_for_good(route, timer));
    (engine, router)
}

/// A node that shares its store learns only so of what the others wrote.
async fn look_again(sim: Sim, wakes: Arc<Wakes>) {
    loop {
        sim.sleep(LOOK_AGAIN_EVERY).await;
        wakes.look_again();
    }
}

fn executors(sim: &Sim, node: usize) -> Executors {
    let mut executors = Executors::default();
    for lane in LANES {
        let specialist = Arc::new(Scripted { sim: sim.clone(), node, lane });
        executors.register(
            lane,
            Executor {
                specialist,
                concurrency: MAX_RUNNING,
                retry: RetryPolicy::ONCE,
                modes: engine::Modes::default(),
            },
        );
    }
    executors
}

/// Tasks of a node: they die with it.
pub struct OnNode {
    /// The world.
    pub sim: Sim,
    /// The node.
    pub node: usize,
}

impl Spawn for OnNode {
    fn spawn(&self, task: Task) {
        self.sim.spawn(Some(self.node), task);
    }
}

/// A specialist whose answers are drawn.
struct Scripted {
    sim: Sim,
    node: usize,
    lane: &'static str,
}

impl Specialist for Scripted {
    fn produce<'a>(
        &'a self,
        assignment: Assignment,
        link: Link,
    ) -> Pin<Box<dyn Future<Output = Produced> + Send + 'a>> {
        Box::pin(self.perform(assignment, link))
    }

    fn poll(&self, outside: Outside) -> BoxFuture<'_, Result<Polled, PollError>> {
        Box::pin(async move {
            let _hung = HungRequest::on(&self.sim, self.node, &outside.operation);
            let hangs = self.sim.with(|world| {
                let connector = world.connectors.get(&outside.operation.id);
                connector.is_some_and(|connector| connector.hangs)
            });
            if hangs {
                std::future::pending::<()>().await;
            }
            self.sim.doze(SECOND / 50, 5 * SECOND).await;
            self.sim.with(|world| {
                let now = world.heap.now();
                let (connectors, rng) = (&mut world.connectors, &mut world.rng);
                let Some(connector) = connectors.get_mut(&outside.operation.id) else {
                    return Ok(Polled::Unknown);
                };
                let answer = connector.poll(now, rng)?;
                let mut polled = polled(answer, connector);
                if let Polled::Completed(output) = &mut polled {
                    output.emitted = routed::emitted_outside(world, &outside.operation.link.job_id);
                }
                Ok(polled)
            })
        })
    }

    fn cancel(&self, outside: Outside) -> BoxFuture<'_, CancelReply> {
        Box::pin(async move {
            let _hung = HungRequest::on(&self.sim, self.node, &outside.operation);
            // The request leaves at once; its answer takes a while, or comes too late.
            let job = outside.operation.link.job_id.clone();
            self.sim.with(|world| world.check.sends_cancel(job.into()));
            self.sim.doze(SECOND / 50, 5 * SECOND).await;
            self.sim.with(|world| {
                let (connectors, rng) = (&mut world.connectors, &mut world.rng);
                connectors
                    .get_mut(&outside.operation.id)
                    .map_or(CancelAnswer::Unreachable, |connector| connector.cancel(rng))
                    .into()
            })
        })
    }
}

/// A request about an open operation whose last poll was not answered in time, until it ends.
struct HungRequest {
    sim: Sim,
    node: usize,
}

impl HungRequest {
    /// Of all slots of a service on a node such requests hold at most half.
    fn on(sim: &Sim, node: usize, operation: &Operation) -> Option<Self> {
        let timed_out = operation.last_error.as_ref().is_some_and(|error| error.code == POLL_TIMED_OUT);
        if !timed_out || operation.ended.is_some() {
            return None;
        }
        let most = operation.policy.max_concurrent_polls_per_module as usize / 2;
        sim.with(|world| {
            let under_way = world.hung_under_way.entry(node).or_default();
            *under_way += 1;
            let held = *under_way;
            if held == most {
                world.counters.saw(Sometimes::HungHeldTheirHalf);
            }
            world.require(must(held <= most, "slots", || {
                format!(
                    "node {node} has {held} requests under way about work that hung, at most {most} may be"
                )
            }));
        });
        Some(Self { sim: sim.clone(), node })
    }
}

impl Drop for HungRequest {
    fn drop(&mut self) {
        self.sim.at_end(|world| {
            if let Some(under_way) = world.hung_under_way.get_mut(&self.node) {
                *under_way -= 1;
            }
        });
    }
}

/// What a service says, with the bytes of its result.
fn polled(answer: PollAnswer, connector: &Connector) -> Polled {
    match answer {
        PollAnswer::Open(status, hints) => Polled::Open(status, hints),
        PollAnswer::Completed(_) => {
            let (_, result) = connector.result();
            Polled::Completed(Output { data: Some(result.bytes.to_vec()), ..Output::default() })
        }
        PollAnswer::Failed(PollFailure { retryable: Retryable::Yes | Retryable::NotBefore(_), .. }) => {
            Polled::Failed(Failure::transient("unlucky", "it failed"))
        }
        PollAnswer::Failed(PollFailure { retryable: Retryable::No, .. }) | PollAnswer::NobodyToAsk(_) => {
            Polled::Failed(Failure::permanent("hopeless", "it failed"))
        }
        PollAnswer::TimedOut => Polled::TimedOut,
        PollAnswer::Cancelled => Polled::Cancelled,
        PollAnswer::Expired => Polled::Expired,
        PollAnswer::Unknown => Polled::Unknown,
        PollAnswer::NotNow { error, retry_after } => Polled::NotNow { error, retry_after },
    }
}

impl Scripted {
    async fn perform(&self, assignment: Assignment, mut link: Link) -> Produced {
        let _running = RunningJob::on(&self.sim, self.node);
        let (script, heeds) = self.sim.with(|world| {
            let script = Script::draw(world, self.lane);
            (script, world.rng.chance(700))
        });
        let job: RecordId = assignment.job.id.clone().into();
        let stopped = async {
            let stop = link.stopped().await;
            if stop == Stop::Cancelled {
                self.sim.with(|world| world.check.sends_cancel(job));
            }
            match stop {
                // An executor may be deaf to a cancel, but its process ends with its node.
                Stop::Cancelled if !heeds => std::future::pending().await,
                Stop::GoOn
                | Stop::Cancelled
                | Stop::TimeOver
                | Stop::Reported
                | Stop::LeaseLost
                | Stop::Shutdown => {}
            }
        };
        tokio::select! {
            biased;
            () = stopped => return Produced::Stopped,
            () = self.sim.sleep(script.work) => {}
        }
        match script.act {
            Act::Complete => Produced::Completed(self.result_of(&assignment)),
            // Who has been called again with what came from outside goes on to the end.
            Act::Defer(_) if assignment.arrived.is_some() => Produced::Completed(self.result_of(&assignment)),
            Act::Defer(then) => self.defer(&assignment, &link, then).await,
            Act::Fail(Retryable::Yes | Retryable::NotBefore(_)) => {
                Produced::Failed(Failure::transient("unlucky", "try again"))
            }
            Act::Fail(Retryable::No) | Act::Block => Produced::Failed(Failure::permanent("hopeless", "no")),
            Act::AwaitInput => {
                // Somebody must answer; who has been answered goes on to the end.
                self.sim.sleep(SECOND / 10).await;
                if assignment.answers.is_empty() {
                    Produced::AwaitingInput { question: b"null".to_vec() }
                } else {
                    Produced::Completed(self.result_of(&assignment))
                }
            }
            Act::Unavailable => Produced::Unavailable(Failure::permanent("missing", "it is not there")),
            // Handed over to somebody who is never heard of again.
            Act::Vanish => Produced::Delivered,
        }
    }

    /// Gives the work to a service: the intent, the request, the answer, each of which may be the last thing that happens.
    async fn defer(&self, assignment: &Assignment, link: &Link, then: AfterExternal) -> Produced {
        let (resubmit, before, after) = self.sim.with(|world| {
            let resubmit = if world.rng.chance(700) { Resubmit::SameKey } else { Resubmit::Never };
            (resubmit, world.rng.within(0, 3 * SECOND), world.rng.within(0, 3 * SECOND))
        });
        let intent = Intent { request_sha256: Digest([7; 32]), resubmit };
        let Ok(intended) = link.intend(intent).await else { return Produced::Stopped };
        self.sim.sleep(before).await;
        let taken = self.sim.with(|world| {
            if world.connectors.contains_key(&intended.key) {
                return true;
            }
            if !world.is_calm() && world.rng.chance(50) {
                return false;
            }
            let (job, attempt) = (&assignment.job.id, &assignment.attempt_id);
            let connector = crate::executor::begin_outside(world, job, attempt, &intended.key);
            world.connectors.insert(intended.key.clone(), connector);
            if world.check.record(&intended.key.clone().into()).is_none() {
                world.check.begins_outside(&intended.key);
            }
            true
        });
        self.sim.sleep(after).await;
        let lost = self.sim.with(|world| !world.is_calm() && world.rng.chance(100));
        if lost {
            return Produced::SubmitUnknown(Failure::transient("timed_out", "no answer"));
        }
        if !taken {
            return Produced::Failed(Failure::transient("not_taken", "the service refused"));
        }
        let hint = self.sim.with(|world| {
            let (connectors, rng) = (&world.connectors, &mut world.rng);
            connectors.get(&intended.key).map_or(Hint::Absent, |connector| connector.hint(rng))
        });
        let handle = intended.key.as_str().as_bytes().to_vec();
        Produced::Deferred(Deferral { retry_after: hint, then, ..Deferral::new(handle) })
    }

    /// What only this attempt can have produced.
    fn result_of(&self, assignment: &Assignment) -> Output {
        let effect = Effect {
            job: assignment.job.id.clone(),
            attempt: Some(assignment.attempt_id.clone()),
            operation: None,
        };
        let step = assignment.job.spec.step.as_ref().map(|step| step.step.as_str());
        self.sim.with(|world| {
            let emitted = routed::emitted_by(world, step);
            let Proof(body) = world.check.produce_with(effect, &emitted);
            Output { data: Some(body.bytes.to_vec()), emitted, ..Output::default() }
        })
    }
}
