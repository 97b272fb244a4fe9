//! A server and nodes whose clocks the test drives.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use domain::attention::Retention;
use domain::job::{
    Details, Dispatch, Holder as JobHolder, JobCommand, JobSpec, JobStateName, NewJob, Report, Reporter,
    Retryable, SubmitWord, Trigger,
};
use domain::operation::{Cancelability, NewOperation, OperationCommand};
use domain::policy::{Hint, KindPolicy};
use domain::{
    AttemptId, BodyName, Command, Jitter, JobId, Lease, OperationId, OwnerId, RecordId, RecordKind,
    RetryPolicy, Timestamp,
};
use engine::{
    Agreement, BootClock, Clock, Engine, EngineError, Measured, Order, OrderBody, Outcome, RandomIds,
    SharedClock, Wakes, boot_clock,
};
use store::{NewBody, SharedStore, Store, StoreError, StoredFact, Take, Taking, body_ref};
use store_sql::{PostgresAddress, PostgresLedger, PostgresOptions, PostgresStore};
use test_postgres::{Schema, ServerClock, client, server};
use tokio_postgres::Client;

pub const HOUR: i64 = 3_600;
/// How long a step has to last.
pub const ADOPT_AFTER: i64 = 300;
/// From one heartbeat to the next.
pub const BEAT: i64 = 10;
/// What the server's clock says at first.
const START: i64 = 1_800_000_000;
const SECOND: i64 = 1_000_000;

/// A boot-time clock that goes when the test says so.
pub struct Boot {
    id: i64,
    /// What it says from a moment on, by the real one.
    said: Mutex<Vec<(i64, i64)>>,
}

impl Boot {
    fn new() -> Self {
        static BOOTS: AtomicI64 = AtomicI64::new(1);
        let id = BOOTS.fetch_add(1, Ordering::Relaxed);
        Self { id, said: Mutex::new(vec![(0, 1_000_000 * SECOND)]) }
    }

    fn pass(&self, seconds: i64) {
        let mut said = self.said.lock().unwrap();
        let (_, now) = *said.last().unwrap();
        said.push((boot_clock(), now + seconds * SECOND));
    }

    fn now(&self) -> i64 {
        self.said.lock().unwrap().last().unwrap().1
    }

    fn at(&self, real: i64) -> i64 {
        self.said.lock().unwrap().iter().rfind(|(from, _)| *from <= real).unwrap().1
    }
}

/// A node with its own boot-time clock.
pub struct Node {
    pub id: String,
    pub store: Arc<PostgresStore>,
    pub clock: Arc<SharedClock>,
    pub engine: Engine,
    pub agreement: Agreement,
    boot: Arc<Boot>,
}

/// A PostgreSQL server whose clock the test sets, and nodes on one database there.
pub struct Driven {
    pub nodes: Vec<Node>,
    /// Seconds that have passed.
    pub passed: i64,
    clock: ServerClock,
    raw: Client,
    _schema: Schema,
}

impl Driven {
    /// So many nodes, each with a heartbeat behind it.
    pub async fn with(nodes: usize) -> Self {
        let schema = Schema::new().await;
        let clock = ServerClock::standing(&schema, START).await;
        let raw = client(&server()).await;
        let mut driven = Self { nodes: Vec::new(), passed: 0, clock, raw, _schema: schema };
        for number in 0..nodes {
            driven.start(&format!("node-{number}")).await;
        }
        driven.rounds().await;
        driven
    }

    /// A node is started, on a machine of its own: the last of them.
    pub async fn start(&mut self, id: &str) {
        self.start_on(Arc::new(Boot::new()), id).await;
    }

    /// A node dies and is started again under another id, on the same machine: the last of them.
    pub async fn restart(&mut self, number: usize, id: &str) {
        let boot = self.nodes.remove(number).boot;
        self.start_on(boot, id).await;
    }

    async fn start_on(&mut self, boot: Arc<Boot>, id: &str) {
        let address = PostgresAddress::parse(&self.clock.address).unwrap();
        let options = PostgresOptions { writers: 1, readers: 2, ..PostgresOptions::at(address) };
        let store = Arc::new(PostgresStore::open(&options).await.unwrap());
        let known = store.clock().await.unwrap();
        store.pulse("").await.unwrap();
        let (time, heard) = (store.time(), boot.clone());
        let measure = move || {
            let time = (*time.borrow()).unwrap();
            Measured {
                at: time.at,
                heard_at_boot: heard.at(time.heard_at_boot),
                uncertainty: time.uncertainty,
                correction_micros: time.correction_micros,
                revision: time.revision,
            }
        };
        let by = boot.clone();
        let by = BootClock { boot: boot.id, now: Box::new(move || by.now()) };
        let adopt_after = u64::try_from(ADOPT_AFTER).unwrap();
        let clock = Arc::new(SharedClock::by(by, store.newest_fact(), known, adopt_after, measure));
        let engine = Engine::new(store.clone(), clock.clone(), Arc::new(RandomIds), Retention::DEFAULT);
        let wakes = Arc::new(Wakes::default());
        let agreement = Agreement::new(engine.clone(), store.clone(), clock.clone(), id.to_owned(), wakes);
        self.nodes.push(Node { id: id.to_owned(), store, clock, engine, agreement, boot });
    }

    /// Time passes, by every clock.
    pub async fn pass(&mut self, seconds: i64) {
        self.passed += seconds;
        for node in &self.nodes {
            node.boot.pass(seconds);
        }
        self.set(seconds).await;
    }

    /// The server's clock is set by so much: no time passes.
    pub async fn set(&self, seconds: i64) {
        self.clock.set(&self.raw, seconds).await;
    }

    /// Machines stand still while time passes, and their boot-time clocks with them: they are behind the others afterwards.
    pub async fn stall(&mut self, stalled: &[usize], seconds: i64) {
        self.passed += seconds;
        for (_, node) in self.nodes.iter().enumerate().filter(|(number, _)| !stalled.contains(number)) {
            node.boot.pass(seconds);
        }
        self.set(seconds).await;
    }

    /// One heartbeat of each node, and what it does about the time.
    pub async fn rounds(&self) {
        for node in &self.nodes {
            node.round().await;
        }
    }

    /// So many seconds pass, with their heartbeats.
    pub async fn live(&mut self, seconds: i64) {
        for _ in 0..seconds / BEAT {
            self.pass(BEAT).await;
            self.rounds().await;
        }
    }

    /// Every node's time is what has passed, and so much more.
    pub fn check_times(&self, ahead: i64) {
        for node in &self.nodes {
            let off_by = node.clock.now().micros() / SECOND - START - self.passed - ahead;
            assert!(off_by.abs() <= 5, "{} is {off_by} s ahead of what passed and {ahead} s", node.id);
            assert_eq!(node.clock.departure(), None, "{}", node.id);
        }
    }

    /// No record differs from its facts, and time went back only where a fact says so.
    pub async fn verify(&self) {
        let address = PostgresAddress::parse(&self.clock.address).unwrap();
        let verified = PostgresLedger::open(&address).await.unwrap().verify().await.unwrap();
        assert_eq!(verified.differences, []);
    }
}

impl Node {
    /// A heartbeat, and what it does about the time.
    pub async fn round(&self) {
        let now = self.clock.now();
        let node = store::Node {
            id: self.id.clone(),
            name: self.id.clone(),
            url: String::new(),
            version: String::new(),
            schema_version: 1,
            executors: Vec::new(),
            started_at: now,
            heartbeat_at: now,
            attempts: 0,
            polls: 0,
            taking: Taking::Takes,
        };
        self.store.beat(node).await.unwrap();
        self.agreement.round().await.unwrap();
        self.agreement.moved().await;
    }

    pub async fn order(&self, id: &RecordId, command: impl Into<Command>) -> Result<Outcome, EngineError> {
        self.engine.execute(Order::new(id.clone(), command.into(), Arc::from("tester"))).await
    }

    /// A job that anyone may take.
    pub async fn create(&self, name: &str) -> RecordId {
        let id = RecordId::Job(JobId::new(format!("work-{name}")));
        let new = NewJob { spec: JobSpec::plain(None, RetryPolicy::ONCE), due_at: None, bodies: Vec::new() };
        self.order(&id, JobCommand::Create(Box::new(new))).await.unwrap();
        id
    }

    /// Work that goes on outside, and may do so for a quarter of an hour.
    pub async fn begin_outside(&self, name: &str) -> RecordId {
        let id = RecordId::Operation(OperationId::new(format!("op-{name}")));
        let policy = KindPolicy { max_ttl_seconds: 900, ..KindPolicy::default() };
        let bytes: Arc<[u8]> = Arc::from(&b"press-1"[..]);
        let handle = NewBody { body: body_ref(BodyName::Handle, &bytes), bytes };
        let new = NewOperation {
            job_id: JobId::new(format!("work-of-{name}")),
            attempt_id: AttemptId::new(format!("attempt-{name}")),
            kind: "press".to_owned(),
            specialist: "press".to_owned(),
            circle: None,
            handle: Some(handle.body),
            cancelability: Cancelability::NotCancelable("there is no service".to_owned()),
            retry_after: Hint::Absent,
            fail_after: Hint::Absent,
            action_ttl: Hint::Absent,
            deadline_at: None,
            ttl_limit: None,
            external_job_id: None,
            progress_hint: None,
            policy,
            jitter: Jitter(0),
        };
        let accept = OperationCommand::Accept(Box::new(new));
        let bodies = vec![OrderBody { record: id.clone(), body: handle }];
        let order = Order { bodies, ..Order::new(id.clone(), accept, Arc::from("tester")) };
        self.engine.execute(order).await.unwrap();
        id
    }

    /// When work outside is over at the latest.
    pub async fn expires_at(&self, id: &RecordId) -> Timestamp {
        let record = self.store.load(id).await.unwrap().unwrap().record;
        record.as_operation().unwrap_or_else(|| panic!("{record:?}")).expires_at
    }

    fn taking(&self) -> Take {
        Take::by(OwnerId::outside(&self.id), self.clock.now(), Lease::DEFAULT, 10)
    }

    pub async fn take(&self, id: &RecordId) -> Holder {
        let taken = self.store.take(id, self.taking()).await.unwrap();
        Holder { id: id.clone(), claim: taken.claim }
    }

    /// Tries to get hold of what another holds, in every way that there is.
    pub async fn try_to_take(&self, held: &Holder) {
        assert_eq!(self.store.take(&held.id, self.taking()).await, Err(StoreError::ClaimHeld), "{}", self.id);
        let due = self.store.take_due(RecordKind::Job, self.taking()).await.unwrap();
        assert!(due.iter().all(|taken| taken.id != held.id), "{} took what is due: {due:?}", self.id);
    }

    /// The attempt of a job that is held by this node is begun.
    pub async fn dispatch(&self, held: &Holder, number: u32, trigger: Trigger) {
        let dispatch = JobCommand::Dispatch(Dispatch {
            attempt_id: AttemptId::new(format!("{}-{number}", held.id)),
            owner: OwnerId::new(&*self.id),
            trigger,
            holder: JobHolder::Daemon,
        });
        let order = Order::new(held.id.clone(), dispatch, Arc::from("tester"));
        self.engine.execute(order.under(held.claim.fence())).await.unwrap();
    }

    /// A job whose only attempt has failed.
    pub async fn fail(&self, name: &str) -> RecordId {
        let id = self.create(name).await;
        let held = self.take(&id).await;
        self.dispatch(&held, 1, Trigger::Automatic).await;
        let report = Report {
            attempt_id: Some(AttemptId::new(format!("{id}-1"))),
            state: JobStateName::Failed,
            details: Details::default(),
            retryable: Retryable::No,
            jitter: Jitter(0),
            submit: SubmitWord::Unsaid,
            by: Reporter::Daemon,
        };
        let order = Order::new(id.clone(), JobCommand::Report(Box::new(report)), Arc::from("tester"));
        self.engine.execute(order.under(held.claim.fence())).await.unwrap();
        id
    }

    /// Does what time alone brings about.
    pub async fn attend_to_what_is_due(&self) {
        let take = Take::by(OwnerId::new(&*self.id), self.clock.now(), Lease::DEFAULT, 10);
        for taken in self.store.take_due(RecordKind::Job, take).await.unwrap() {
            self.engine.attend(&taken, Arc::from("tester")).await.unwrap();
        }
    }

    pub async fn facts(&self, id: &RecordId) -> Vec<StoredFact> {
        self.store.facts_of(id, 0, 100).await.unwrap()
    }
}

/// Whoever holds a job, and renews its lease as long as it lives.
pub struct Holder {
    pub id: RecordId,
    claim: domain::Claim,
}

impl Holder {
    pub async fn renew(&mut self, node: &Node) {
        let renewed = node.store.renew(&self.id, self.claim.fence(), node.clock.now(), Lease::DEFAULT).await;
        self.claim = renewed.expect("a live holder keeps its lease").claim;
    }
}
