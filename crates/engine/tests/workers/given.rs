//! A daemon on a counted memory store with scripted specialists, and ways to wait for what it does.

mod counted;
pub mod routed;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::attention::Retention;
use domain::job::{Job, JobCommand, JobSpec, JobStateName, NewJob};
use domain::run::StepLink;
use domain::{BodyName, JobId, Lease, OwnerId, RetryPolicy, Timestamp};
use engine::{
    Assignment, Clock, Daemon, DaemonSettings, Dispatching, EngineError, Executor, Executors, Ids, Link,
    ManualClock, Order, OrderBody, Produced, RandomIds, Specialist,
};
use pipelines::Router;
use pipelines::Routes;
use store::{NewBody, Store, StoreError, body_ref};
use tokio::sync::{Notify, Semaphore};

pub use counted::Counted;

pub const GRACE_SECONDS: u32 = 5;
const SETTLING_YIELDS: usize = 200;
/// How often the engine gives a commit of unknown outcome.
const REPEATS: usize = 4;

pub struct Given {
    pub daemon: Arc<Daemon>,
    pub pipelines: Arc<Router>,
    pub store: Arc<Counted>,
    pub clock: Arc<ManualClock>,
}

impl Given {
    pub fn new<const N: usize>(executors: [(String, Executor); N]) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_700_000_000)));
        Self::on(Arc::new(Counted::default()), clock, executors)
    }

    pub fn on<const N: usize>(
        store: Arc<Counted>,
        clock: Arc<ManualClock>,
        executors: [(String, Executor); N],
    ) -> Self {
        let mut registered = Executors::default();
        for (name, executor) in executors {
            registered.register(&name, executor);
        }
        Self::started(store, clock, registered)
    }

    /// With executors of circles.
    pub fn with(executors: Executors) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_700_000_000)));
        Self::started(Arc::new(Counted::default()), clock, executors)
    }

    fn started(store: Arc<Counted>, clock: Arc<ManualClock>, registered: Executors) -> Self {
        let pipelines = Arc::new(Router::new(registered.clone(), Routes::default()));
        let settings = DaemonSettings { preparation: Some(pipelines.clone()), ..settings() };
        let daemon = Daemon::start(store.clone(), clock.clone(), Arc::new(RandomIds), registered, settings);
        Self { daemon: Arc::new(daemon), pipelines, store, clock }
    }

    pub async fn create(&self, job: Draft) -> JobId {
        let id = RandomIds.job_id();
        let mut bodies = Vec::new();
        if let Some(input) = &job.input {
            bodies.push(body_ref(BodyName::Input, input));
        }
        let due_at = job.due_in.map(|seconds| self.clock.now().plus_seconds(seconds));
        let new = NewJob { spec: job.spec, due_at, bodies: bodies.clone() };
        let mut order = Order::new(id.clone(), JobCommand::Create(Box::new(new)), Arc::from("test"));
        if let (Some(body), Some(input)) = (bodies.first(), job.input) {
            let body = NewBody { body: *body, bytes: Arc::from(input) };
            order.bodies.push(OrderBody { record: id.clone().into(), body });
        }
        self.daemon.engine().execute(order).await.expect("it is accepted");
        id
    }

    /// The same, but nobody learns whether it was accepted. It was.
    pub async fn create_unknowingly(&self, executor: &str) -> JobId {
        let id = RandomIds.job_id();
        let spec = JobSpec::plain(Some(executor), Executors::DEFAULT_RETRY);
        let new = NewJob { spec, due_at: None, bodies: Vec::new() };
        let order = Order::new(id.clone(), JobCommand::Create(Box::new(new)), Arc::from("test"));
        self.store.keep_silent_about(REPEATS);
        let answer = self.daemon.engine().execute(order).await.map(|_| ());
        assert!(matches!(answer, Err(EngineError::Store(StoreError::OutcomeUnknown))), "{answer:?}");
        id
    }

    pub async fn is_gone(&self, id: &JobId) -> bool {
        self.store.inner.load(&id.clone().into()).await.expect("it can be read").is_none()
    }

    pub async fn order(&self, id: &JobId, command: JobCommand) {
        let order = Order::new(id.clone(), command, Arc::from("test"));
        self.daemon.engine().execute(order).await.expect("it is allowed");
    }

    /// The same, given on another node: nothing of this daemon hears of the commit.
    pub async fn order_unheard(&self, id: &JobId, command: JobCommand) {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let beside = engine::Engine::new(store, clock, Arc::new(RandomIds), Retention::DEFAULT);
        let order = Order::new(id.clone(), command, Arc::from("test"));
        beside.execute(order).await.expect("it is allowed");
    }

    pub async fn load(&self, id: &JobId) -> Job {
        let loaded =
            self.store.inner.load(&id.clone().into()).await.expect("it can be read").expect("it is there");
        loaded.record.as_job().expect("a job's id names a job").clone()
    }

    pub async fn state_of(&self, id: &JobId) -> JobStateName {
        self.load(id).await.state.name()
    }

    /// Waits for a state, woken by every write to the store.
    pub async fn until(&self, id: &JobId, state: JobStateName) -> Job {
        loop {
            let written = self.store.written.notified();
            let job = self.load(id).await;
            if job.state.name() == state {
                return job;
            }
            written.await;
        }
    }

    pub async fn result_of(&self, job: &Job) -> Vec<u8> {
        let body = job.result.data.expect("it has a result");
        self.store
            .inner
            .body(&job.id.clone().into(), body)
            .await
            .expect("it can be read")
            .expect("it is kept")
    }

    /// Lets everything that can go on go on.
    pub async fn settle(&self) {
        settle().await;
    }

    pub fn store_calls(&self) -> u64 {
        self.store.calls()
    }
}

pub fn settings() -> DaemonSettings {
    DaemonSettings {
        preparation: None,
        owner: OwnerId::new(format!("test-{:x}", RandomIds.next())),
        lease: Lease::DEFAULT,
        retention: Retention::DEFAULT,
        lane_limits: BTreeMap::new(),
        policy: domain::policy::HostPolicy::default(),
        grace_seconds: u64::from(GRACE_SECONDS),
        dispatching: Dispatching::On,
        standing: engine::Standing::alone(),
    }
}

/// Runs this in a runtime of its own that is then dropped with every task in it, as the end of a process would.
pub fn in_a_process_that_dies<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let process = scope.spawn(|| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            runtime.block_on(work)
        });
        process.join().expect("it ends as it should")
    })
}

/// Lets every task that can go on go on.
pub async fn settle() {
    for _ in 0..SETTLING_YIELDS {
        tokio::task::yield_now().await;
    }
}

pub async fn answer(given: &Given, id: &JobId, answer: &[u8]) {
    let body = body_ref(BodyName::Answer, answer);
    let mut order = Order::new(id.clone(), JobCommand::Answer { answer: body }, Arc::from("test"));
    let new = NewBody { body, bytes: Arc::from(answer) };
    order.bodies.push(OrderBody { record: id.clone().into(), body: new });
    given.daemon.engine().execute(order).await.expect("it waits for it");
}

pub struct Draft {
    spec: JobSpec,
    input: Option<Vec<u8>>,
    due_in: Option<u64>,
}

pub fn job(executor: &str) -> Draft {
    let spec = JobSpec::plain(Some(executor), Executors::DEFAULT_RETRY);
    Draft { spec, input: None, due_in: None }
}

/// A job that names nobody.
pub fn unassigned() -> Draft {
    let mut draft = job("nobody");
    draft.spec.executor = None;
    draft
}

impl Draft {
    pub fn of_step(mut self, step: StepLink) -> Self {
        self.spec.step = Some(Box::new(step));
        self
    }

    pub fn input(mut self, input: &[u8]) -> Self {
        self.input = Some(input.to_vec());
        self
    }

    pub fn due_in(mut self, seconds: u64) -> Self {
        self.due_in = Some(seconds);
        self
    }

    pub fn deadline_in(mut self, given: &Given, seconds: u64) -> Self {
        self.spec.deadline_at = Some(given.clock.now().plus_seconds(seconds));
        self
    }

    pub fn attempts(mut self, max_attempts: u32) -> Self {
        self.spec.retry = RetryPolicy { max_attempts, backoff_seconds: 30, max_backoff_seconds: 60 };
        self
    }

    pub fn timeout(mut self, seconds: u64) -> Self {
        self.spec.timeout_seconds = Some(seconds);
        self
    }

    pub fn lane(mut self, lane: &str) -> Self {
        self.spec.lane = Some(lane.to_owned());
        self
    }

    pub fn circle(mut self, circle: &str) -> Self {
        self.spec.circle = Some(circle.to_owned());
        self
    }

    pub fn by(mut self, peer: &str) -> Self {
        self.spec.created_by_peer_id = Some(peer.to_owned());
        self
    }

    pub fn priority(mut self, priority: i32) -> Self {
        self.spec.priority = priority;
        self
    }
}

/// An executor whose work is a function.
pub fn scripted<F, W>(name: &str, concurrency: usize, work: F) -> (String, Executor)
where
    F: Fn(Assignment, Link) -> W + Send + Sync + 'static,
    W: Future<Output = Produced> + Send + 'static,
{
    struct Scripted<F>(F);
    impl<F, W> Specialist for Scripted<F>
    where
        F: Fn(Assignment, Link) -> W + Send + Sync,
        W: Future<Output = Produced> + Send + 'static,
    {
        fn produce<'a>(
            &'a self,
            assignment: Assignment,
            link: Link,
        ) -> Pin<Box<dyn Future<Output = Produced> + Send + 'a>> {
            Box::pin((self.0)(assignment, link))
        }
    }
    let specialist = Arc::new(Scripted(work));
    (
        name.to_owned(),
        Executor {
            specialist,
            concurrency,
            retry: Executors::DEFAULT_RETRY,
            modes: engine::Modes::default(),
        },
    )
}

/// A door that work waits at until the test opens it.
#[derive(Clone)]
pub struct Gate {
    inside: Arc<AtomicUsize>,
    names: Arc<Mutex<Vec<JobId>>>,
    changed: Arc<Notify>,
    permits: Arc<Semaphore>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            inside: Arc::default(),
            names: Arc::default(),
            changed: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
        }
    }
}

impl Gate {
    pub async fn pass(&self, id: &JobId) {
        self.inside.fetch_add(1, Ordering::SeqCst);
        self.names.lock().expect("no holder panics").push(id.clone());
        self.changed.notify_waiters();
        self.permits.acquire().await.expect("the gate is never closed for good").forget();
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    pub async fn arrived(&self, id: &JobId) {
        loop {
            let changed = self.changed.notified();
            if self.names.lock().expect("no holder panics").last() == Some(id) {
                return;
            }
            changed.await;
        }
    }

    pub fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }

    pub fn open(&self) {
        self.permits.add_permits(1);
    }
}
