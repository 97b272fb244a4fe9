//! A daemon on a memory store with connectors, a clock moved by hand, and ways to wait for what it writes down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::attention::Retention;
use domain::job::{Job, JobCommand, JobSpec, JobStateName, NewJob};
use domain::operation::Operation;
use domain::policy::HostPolicy;
use domain::{BodyName, JobId, Lease, OwnerId, Record, RetryPolicy, Timestamp};
use engine::{
    Clock, Daemon, DaemonSettings, Dispatching, Executors, Ids, ManualClock, Order, OrderBody, RandomIds,
};
use executors::http::{CallbackUrls, Connector, HttpConnector, Secrets, Transport};
use executors::outbound::{Outbound, OutboundRules};
use store::{MemoryStore, NewBody, body_ref};

/// A change that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(20);
pub const TOKEN: &str = "t0p/s3cret+token";

pub struct World {
    pub daemon: Arc<Daemon>,
    pub store: Arc<MemoryStore>,
    pub clock: Arc<ManualClock>,
    name: String,
}

/// The connector that a file says.
pub fn parsed(connector: &str) -> Connector {
    Connector::parse("connector.yaml", connector).unwrap_or_else(|mistake| panic!("{mistake}"))
}

impl World {
    pub fn new(connector: &str) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_700_000_000)));
        Self::on(Arc::new(MemoryStore::new()), clock, connector)
    }

    /// The next process on the same store.
    pub fn on(store: Arc<MemoryStore>, clock: Arc<ManualClock>, connector: &str) -> Self {
        Self::of_many(store, clock, &[connector.to_owned()], HostPolicy::default(), None)
    }

    /// With several connectors, whose services may call back.
    pub fn of_many(
        store: Arc<MemoryStore>,
        clock: Arc<ManualClock>,
        connectors: &[String],
        policy: HostPolicy,
        callbacks: Option<Arc<dyn CallbackUrls>>,
    ) -> Self {
        let connectors = connectors.iter().map(|connector| {
            let connector = parsed(connector);
            let allow = connector.allowed().to_vec();
            let outbound = Outbound::new(OutboundRules { allow, ..OutboundRules::default() }).unwrap();
            (connector, Arc::new(outbound) as Arc<dyn Transport>)
        });
        Self::over(store, clock, connectors.collect(), policy, callbacks)
    }

    /// With connectors that go out like this.
    pub fn over(
        store: Arc<MemoryStore>,
        clock: Arc<ManualClock>,
        connectors: Vec<(Connector, Arc<dyn Transport>)>,
        policy: HostPolicy,
        callbacks: Option<Arc<dyn CallbackUrls>>,
    ) -> Self {
        Self::beside(store, clock, connectors, policy, callbacks, &mut Executors::default())
    }

    /// The same, beside executors that are there.
    pub fn beside(
        store: Arc<MemoryStore>,
        clock: Arc<ManualClock>,
        connectors: Vec<(Connector, Arc<dyn Transport>)>,
        mut policy: HostPolicy,
        callbacks: Option<Arc<dyn CallbackUrls>>,
        executors: &mut Executors,
    ) -> Self {
        let mut names = Vec::new();
        for (connector, transport) in connectors {
            let name = connector.name().to_owned();
            policy.kind_overrides.insert(name.clone(), connector.policy().clone());
            let mut secrets = Secrets::default();
            secrets.add("token", TOKEN.to_owned()).unwrap();
            let connector =
                HttpConnector::over(connector, secrets, transport, clock.clone(), callbacks.clone());
            executors.register(&name, connector.executor());
            names.push(name);
        }
        let executors = std::mem::take(executors);
        let settings = DaemonSettings {
            preparation: None,
            owner: OwnerId::new(format!("test-{:x}", RandomIds.next())),
            lease: Lease::DEFAULT,
            retention: Retention::DEFAULT,
            lane_limits: BTreeMap::new(),
            policy,
            grace_seconds: 5,
            dispatching: Dispatching::On,
            standing: engine::Standing::alone(),
        };
        let daemon = Daemon::start(store.clone(), clock.clone(), Arc::new(RandomIds), executors, settings);
        Self { daemon: Arc::new(daemon), store, clock, name: names.into_iter().next().unwrap_or_default() }
    }

    pub async fn create(&self, input: &str, max_attempts: u32) -> JobId {
        self.create_for(&self.name, input, max_attempts).await
    }

    pub async fn create_for(&self, executor: &str, input: &str, max_attempts: u32) -> JobId {
        let retry = RetryPolicy { max_attempts, backoff_seconds: 30, max_backoff_seconds: 60 };
        self.create_with(executor, input, retry).await
    }

    pub async fn create_with(&self, executor: &str, input: &str, retry: RetryPolicy) -> JobId {
        let id = RandomIds.job_id();
        let spec = JobSpec { title: "a job".to_owned(), ..JobSpec::plain(Some(executor), retry) };
        let body = body_ref(BodyName::Input, input.as_bytes());
        let new = NewJob { spec, due_at: None, bodies: vec![body] };
        let mut order = Order::new(id.clone(), JobCommand::Create(Box::new(new)), Arc::from("test"));
        let body = NewBody { body, bytes: Arc::from(input.as_bytes()) };
        order.bodies.push(OrderBody { record: id.clone().into(), body });
        self.daemon.engine().execute(order).await.expect("it is accepted");
        id
    }

    pub async fn cancel(&self, id: &JobId) {
        let command = JobCommand::RequestCancel { by: None, reason: "enough".to_owned() };
        let order = Order::new(id.clone(), command, Arc::from("test"));
        self.daemon.engine().execute(order).await.expect("it is allowed");
    }

    pub fn job(&self, id: &JobId) -> Job {
        let record = self.store.inspect(|tables| tables.views[&id.clone().into()].clone());
        record.as_job().expect("a job's id names a job").clone()
    }

    /// The operation of the job.
    pub fn operation(&self, id: &JobId) -> Operation {
        let of_job = |record: &Arc<Record>| {
            record.as_operation().filter(|operation| operation.link.job_id == *id).cloned()
        };
        self.store
            .inspect(|tables| tables.views.values().find_map(of_job))
            .expect("it left something outside")
    }

    /// Waits until it is so, woken by every commit.
    pub async fn until(&self, mut so: impl FnMut(&Self) -> bool) {
        let mut ledger = self.daemon.ledger();
        while !so(self) {
            let changed = tokio::time::timeout(PATIENCE, ledger.changed()).await;
            changed.unwrap_or_else(|_| panic!("it stays as it is: {}", self.everything())).unwrap();
        }
    }

    pub async fn until_state(&self, id: &JobId, state: JobStateName) -> Job {
        self.until(|world| world.job(id).state.name() == state).await;
        self.job(id)
    }

    /// Lets the next poll come due and waits for what came of it.
    pub async fn next_poll(&self, id: &JobId) -> Operation {
        let before = self.operation(id);
        self.clock.set(before.next_poll_at);
        self.until(|world| {
            let now = world.operation(id);
            now.polls > before.polls || now.ended.is_some()
        })
        .await;
        self.operation(id)
    }

    pub fn result(&self, job: &Job) -> serde_json::Value {
        self.body(job, job.result.data.expect("it has a result"))
    }

    pub fn error(&self, job: &Job) -> serde_json::Value {
        self.body(job, job.result.error.expect("it has an error"))
    }

    /// Everything that is kept, as text.
    pub fn everything(&self) -> String {
        self.store.inspect(|tables| {
            let bodies = tables.bodies.values().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            let bodies = bodies.collect::<Vec<_>>().join("\n");
            format!("{:?}\n{:?}\n{bodies}", tables.facts, tables.views)
        })
    }

    /// A private text of a job's operation.
    pub fn text_of(&self, job: &JobId, said: domain::BodyRef) -> String {
        let key = (self.operation(job).id.into(), said.name.as_str(), said.sha256);
        String::from_utf8(self.store.inspect(|tables| tables.bodies[&key].to_vec())).unwrap()
    }

    fn body(&self, job: &Job, body: domain::BodyRef) -> serde_json::Value {
        let key = (job.id.clone().into(), body.name.as_str(), body.sha256);
        let bytes = self.store.inspect(|tables| tables.bodies[&key].clone());
        serde_json::from_slice(&bytes).unwrap()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
