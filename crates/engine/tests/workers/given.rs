//! A daemon on a counted memory store with scripted specialists, and ways to wait for what it does.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::ask::{Ask, Closing};
use domain::attention::Retention;
use domain::job::{Job, JobCommand, JobSpec, JobStateName, NewJob};
use domain::peer::{Peer, Sighting};
use domain::run::StepLink;
use domain::{
    BodyName, BodyRef, Digest, Fence, JobId, Lease, OwnerId, Record, RecordId, RecordKind, RetryPolicy,
    Timestamp,
};
use engine::{
    Assignment, Clock, Daemon, DaemonSettings, Dispatching, EngineError, Executor, Executors, Ids, Link,
    ManualClock, Order, OrderBody, Produced, RandomIds, Specialist,
};
use store::{
    AskQuery, AskStore, Commit, Committed, IdempotencyKey, JobQuery, KeptKey, KeptPluginFact, Lane, Loaded,
    MemoryStore, NewBody, Node, Page, PeerPage, PeerQuery, PeerStore, PluginState, PluginStore, Reply,
    RoutingPage, RoutingQuery, RoutingStore, Store, StoreError, StoredFact, Take, Taken, Taking, Token,
    body_ref,
};
use tokio::sync::{Notify, Semaphore};

pub const GRACE_SECONDS: u32 = 5;
const SETTLING_YIELDS: usize = 200;
/// How often the engine gives a commit of unknown outcome.
const REPEATS: usize = 4;

pub struct Given {
    pub daemon: Arc<Daemon>,
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
        let settings = DaemonSettings {
            routes: engine::pipelines::Routes::default(),
            owner: OwnerId::new(format!("test-{:x}", RandomIds.next())),
            lease: Lease::DEFAULT,
            retention: Retention::DEFAULT,
            lane_limits: BTreeMap::new(),
            policy: domain::policy::HostPolicy::default(),
            grace_seconds: u64::from(GRACE_SECONDS),
            dispatching: Dispatching::On,
            standing: engine::Standing::alone(),
        };
        let daemon = Daemon::start(store.clone(), clock.clone(), Arc::new(RandomIds), registered, settings);
        Self { daemon: Arc::new(daemon), store, clock }
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

    pub async fn load(&self, id: &JobId) -> Job {
        let loaded =
            self.store.inner.load(&id.clone().into()).await.expect("it can be read").expect("it is there");
        match &*loaded.record {
            Record::Job(job) => (**job).clone(),
            Record::Operation(_) | Record::Event(_) | Record::Run(_) => {
                unreachable!("a job's id names a job")
            }
        }
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
        self.store.calls.load(Ordering::Relaxed)
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

/// A memory store that counts what is asked of it and tells of every write.
#[derive(Default)]
pub struct Counted {
    pub inner: MemoryStore,
    /// So many commits are written and answered with "nobody knows".
    unknown: AtomicUsize,
    calls: AtomicU64,
    pub written: Notify,
    holds_commits: AtomicBool,
    commits_held: AtomicUsize,
    commits: AtomicUsize,
    refused_takes: AtomicUsize,
    most_taken: AtomicUsize,
}

impl Counted {
    /// The most due records that were ever given at once.
    pub fn most_taken(&self) -> usize {
        self.most_taken.load(Ordering::SeqCst)
    }

    /// Commits that were asked for so far.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// So many times nothing due can be taken.
    pub fn refuse_takes(&self, times: usize) {
        self.refused_takes.store(times, Ordering::SeqCst);
    }

    /// From now on no commit is answered.
    pub fn hold_commits(&self) {
        self.holds_commits.store(true, Ordering::SeqCst);
    }

    pub fn commits_held(&self) -> usize {
        self.commits_held.load(Ordering::SeqCst)
    }

    /// The next commits are written, and nobody is told.
    pub fn keep_silent_about(&self, commits: usize) {
        self.unknown.store(commits, Ordering::SeqCst);
    }

    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl PeerStore for Counted {
    fn keep_peer(&self, peer: Peer) -> Reply<'_, ()> {
        self.count();
        self.inner.keep_peer(peer)
    }

    fn peer<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Peer>> {
        self.count();
        self.inner.peer(id)
    }

    fn peers(&self, query: PeerQuery) -> Reply<'_, PeerPage> {
        self.count();
        self.inner.peers(query)
    }

    fn forget_peer<'a>(&'a self, id: &'a str, version: u64) -> Reply<'a, bool> {
        self.count();
        self.inner.forget_peer(id, version)
    }

    fn note_sightings(&self, sightings: Vec<Sighting>) -> Reply<'_, ()> {
        self.count();
        self.inner.note_sightings(sightings)
    }
}

impl RoutingStore for Counted {
    fn routing(&self, query: RoutingQuery) -> Reply<'_, RoutingPage> {
        self.count();
        self.inner.routing(query)
    }

    fn newest_run<'a>(&'a self, pipeline: &'a str, dedupe_key: &'a str) -> Reply<'a, Option<Arc<Record>>> {
        self.count();
        self.inner.newest_run(pipeline, dedupe_key)
    }
}

impl AskStore for Counted {
    fn keep_ask(&self, ask: Ask, replied: Option<Closing>) -> Reply<'_, bool> {
        self.count();
        self.inner.keep_ask(ask, replied)
    }

    fn ask<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Ask>> {
        self.count();
        self.inner.ask(id)
    }

    fn asks(&self, query: AskQuery) -> Reply<'_, Vec<Ask>> {
        self.count();
        self.inner.asks(query)
    }

    fn close_ask<'a>(&'a self, id: &'a str, closing: Closing) -> Reply<'a, bool> {
        self.count();
        self.inner.close_ask(id, closing)
    }
}

impl PluginStore for Counted {
    fn plugin_state<'a>(&'a self, plugin: &'a str) -> Reply<'a, Option<PluginState>> {
        self.count();
        self.inner.plugin_state(plugin)
    }

    fn plugin_facts<'a>(
        &'a self,
        plugin: &'a str,
        after: u64,
        limit: usize,
    ) -> Reply<'a, Vec<KeptPluginFact>> {
        self.count();
        self.inner.plugin_facts(plugin, after, limit)
    }
}

impl Store for Counted {
    fn commit(&self, commit: Commit) -> Reply<'_, Committed> {
        self.count();
        if self.holds_commits.load(Ordering::SeqCst) {
            self.commits_held.fetch_add(1, Ordering::SeqCst);
            return Box::pin(std::future::pending());
        }
        self.commits.fetch_add(1, Ordering::SeqCst);
        let mut answer = self.inner.commit_now(&commit);
        let one_less = |left: usize| left.checked_sub(1);
        if self.unknown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            answer = Err(StoreError::OutcomeUnknown);
        }
        self.written.notify_waiters();
        Box::pin(std::future::ready(answer))
    }

    fn load<'a>(&'a self, id: &'a RecordId) -> Reply<'a, Option<Loaded>> {
        self.count();
        self.inner.load(id)
    }

    fn body<'a>(&'a self, id: &'a RecordId, body: BodyRef) -> Reply<'a, Option<Vec<u8>>> {
        self.count();
        self.inner.body(id, body)
    }

    fn key<'a>(&'a self, key: &'a IdempotencyKey) -> Reply<'a, Option<KeptKey>> {
        self.count();
        self.inner.key(key)
    }

    fn jobs(&self, query: JobQuery) -> Reply<'_, Page> {
        self.count();
        self.inner.jobs(query)
    }

    fn job_counts(&self) -> Reply<'_, Vec<(JobStateName, u64)>> {
        self.count();
        self.inner.job_counts()
    }

    fn open_jobs<'a>(&'a self, executor: &'a str) -> Reply<'a, store::OpenJobs> {
        self.count();
        self.inner.open_jobs(executor)
    }

    fn operations_of<'a>(&'a self, job: &'a domain::JobId, limit: usize) -> Reply<'a, Vec<Arc<Record>>> {
        self.count();
        self.inner.operations_of(job, limit)
    }

    fn orphans(&self, after: Option<store::OrphanCursor>, limit: usize) -> Reply<'_, Vec<Arc<Record>>> {
        self.count();
        self.inner.orphans(after, limit)
    }

    fn orphan_count(&self) -> Reply<'_, u64> {
        self.count();
        self.inner.orphan_count()
    }

    fn facts_of<'a>(&'a self, id: &'a RecordId, after: u64, limit: usize) -> Reply<'a, Vec<StoredFact>> {
        self.count();
        self.inner.facts_of(id, after, limit)
    }

    fn facts_after(&self, position: u64, limit: usize) -> Reply<'_, Vec<StoredFact>> {
        self.count();
        self.inner.facts_after(position, limit)
    }

    fn take_due(&self, kind: RecordKind, take: Take) -> Reply<'_, Vec<Taken>> {
        self.count();
        let one_less = |left: usize| left.checked_sub(1);
        if self.refused_takes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Box::pin(std::future::ready(Err(StoreError::Unavailable("it is away".to_owned()))));
        }
        Box::pin(async move {
            let taken = self.inner.take_due(kind, take).await?;
            self.most_taken.fetch_max(taken.len(), Ordering::SeqCst);
            Ok(taken)
        })
    }

    fn take_ready<'a>(&'a self, lane: Lane<'a>, take: Take) -> Reply<'a, Vec<Taken>> {
        self.count();
        self.inner.take_ready(lane, take)
    }

    fn take<'a>(&'a self, id: &'a RecordId, take: Take) -> Reply<'a, Taken> {
        self.count();
        self.inner.take(id, take)
    }

    fn renew<'a>(&'a self, id: &'a RecordId, fence: Fence, now: Timestamp, lease: Lease) -> Reply<'a, Taken> {
        self.count();
        self.inner.renew(id, fence, now, lease)
    }

    fn hand_back<'a>(
        &'a self,
        id: &'a RecordId,
        fence: Fence,
        now: Timestamp,
        due_at: Timestamp,
    ) -> Reply<'a, ()> {
        self.count();
        self.inner.hand_back(id, fence, now, due_at)
    }

    fn ready_lanes(&self) -> Reply<'_, Vec<Arc<str>>> {
        self.count();
        self.inner.ready_lanes()
    }

    fn earliest_due(&self, kind: RecordKind) -> Reply<'_, Option<Timestamp>> {
        self.count();
        self.inner.earliest_due(kind)
    }

    fn keep_token(&self, token: Token) -> Reply<'_, ()> {
        self.count();
        self.inner.keep_token(token)
    }

    fn token<'a>(&'a self, sha256: &'a Digest) -> Reply<'a, Option<Token>> {
        self.count();
        self.inner.token(sha256)
    }

    fn tokens(&self) -> Reply<'_, Vec<Token>> {
        self.count();
        self.inner.tokens()
    }

    fn revoke_token<'a>(&'a self, id: &'a str, at: Timestamp) -> Reply<'a, bool> {
        self.count();
        self.inner.revoke_token(id, at)
    }

    fn keep_node(&self, node: Node, forget_before: Timestamp) -> Reply<'_, ()> {
        self.count();
        self.inner.keep_node(node, forget_before)
    }

    fn nodes(&self) -> Reply<'_, Vec<Node>> {
        self.count();
        self.inner.nodes()
    }

    fn tell_node<'a>(&'a self, id: &'a str, taking: Taking) -> Reply<'a, bool> {
        self.count();
        self.inner.tell_node(id, taking)
    }

    fn remove_node<'a>(&'a self, id: &'a str) -> Reply<'a, ()> {
        self.count();
        self.inner.remove_node(id)
    }
}
