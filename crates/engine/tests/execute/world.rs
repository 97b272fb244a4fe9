//! An engine on a store with a clock that the test moves, and short words for orders.

use std::num::NonZeroU64;
use std::sync::Arc;

use domain::attention::Retention;
use domain::job::{
    AfterExternal, Details, Dispatch, Holder, JobCommand, JobSpec, JobState, JobStateName, NewJob, Report,
    Reporter, Retryable, SubmitWord, Trigger,
};
use domain::operation::{Cancelability, NewOperation, OperationCommand, Poll, PollAnswer};
use domain::policy::{Hint, KindPolicy};
use domain::{
    AttemptId, BodyName, Command, Fence, Jitter, JobId, Lease, OperationId, OwnerId, Record, RecordId,
    RecordKind, RetryPolicy, Timestamp,
};
use engine::{Engine, EngineError, ManualClock, Order, Outcome, RandomIds};
use store::{MemoryStore, Store, Take, Taken, body_ref, fact_kind};
use store_sql::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

pub const START: Timestamp = Timestamp::from_seconds(1_800_000_000);
pub const LANE: &str = "render";

pub fn at(seconds: u64) -> Timestamp {
    START.plus_seconds(seconds)
}

pub struct World {
    pub engine: Engine,
    pub store: Arc<dyn Store>,
    pub clock: Arc<ManualClock>,
    _folder: Option<TempDir>,
}

/// Runs a test on each store; the name of the last one printed is the store that it failed on.
pub async fn on_every_store(test: impl AsyncFn(World)) {
    println!("on the memory store:");
    test(World::on(Arc::new(MemoryStore::new()))).await;
    println!("on the SQLite store:");
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&SqliteOptions::at(folder.path().join("longhaul.sqlite"))).unwrap();
    test(World { _folder: Some(folder), ..World::on(Arc::new(store)) }).await;
}

impl World {
    pub fn on(store: Arc<dyn Store>) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let engine = Engine::new(store.clone(), clock.clone(), Arc::new(RandomIds), Retention::DEFAULT);
        Self { engine, store, clock, _folder: None }
    }

    /// The same world, whose open records write a checkpoint after so many facts.
    pub fn checkpointing_after(mut self, facts: u64) -> Self {
        self.engine = self.engine.checkpointing_after(NonZeroU64::new(facts).unwrap());
        self
    }

    pub async fn execute(
        &self,
        record: impl Into<RecordId>,
        command: impl Into<Command>,
    ) -> Result<Outcome, EngineError> {
        let order = Order::new(record, command, Arc::from("tester"));
        self.engine.execute(self.under_claim(order).await).await
    }

    /// An order that only the holder of the claim may give is given in the holder's name.
    async fn under_claim(&self, order: Order) -> Order {
        let needed = matches!(&order.command, Command::Job(command) if command.needs_claim());
        let loaded = self.store.load(&order.record).await.unwrap().filter(|_| needed);
        match loaded.and_then(|loaded| loaded.claim) {
            Some(claim) => order.under(claim.fence()),
            None => order,
        }
    }

    /// Gives an order that is carried out.
    pub async fn done(&self, record: impl Into<RecordId>, command: impl Into<Command>) -> Arc<Record> {
        match self.execute(record, command).await.unwrap() {
            Outcome::Changed { record, .. } => record,
            Outcome::AlreadySo { record } => panic!("nothing changed: {record:?}"),
        }
    }

    /// Gives an order that is refused, and says with which code.
    pub async fn refused(&self, record: impl Into<RecordId>, command: impl Into<Command>) -> &'static str {
        self.execute(record, command).await.unwrap_err().code()
    }

    pub fn wait(&self, seconds: u32) {
        self.clock.advance_seconds(seconds);
    }

    pub async fn state(&self, job: &JobId) -> JobStateName {
        let record = self.record(job.clone()).await;
        record.as_job().unwrap_or_else(|| panic!("{record:?} is no job")).state.name()
    }

    pub async fn record(&self, id: impl Into<RecordId>) -> Arc<Record> {
        self.store.load(&id.into()).await.unwrap().unwrap().record
    }

    /// The kinds of a record's facts, without their version.
    pub async fn kinds(&self, id: impl Into<RecordId>) -> Vec<&'static str> {
        let facts = self.store.facts_of(&id.into(), 0, 1_000).await.unwrap();
        facts.iter().map(|fact| fact_kind(&fact.fact).trim_end_matches("/1")).collect()
    }

    /// How many facts there are in all.
    pub async fn fact_count(&self) -> usize {
        self.store.facts_after(0, 1_000).await.unwrap().len()
    }

    pub async fn take(&self, id: impl Into<RecordId>, owner: &str) -> Taken {
        self.store.take(&id.into(), self.taker(owner)).await.unwrap()
    }

    /// Takes the one record of a kind that is due.
    pub async fn take_due(&self, kind: RecordKind, owner: &str) -> Taken {
        let mut due = self.store.take_due(kind, self.taker(owner)).await.unwrap();
        assert_eq!(due.len(), 1, "{due:?}");
        due.remove(0)
    }

    pub fn taker(&self, owner: &str) -> Take {
        let now = engine::Clock::now(&*self.clock);
        Take::by(OwnerId::new(owner), now, Lease::DEFAULT, 10)
    }

    /// A job that was created, taken and dispatched by node a, with the fence of its claim.
    pub async fn dispatched(&self, name: &str) -> (JobId, Fence) {
        let id = job(name);
        self.done(id.clone(), create(|_| {})).await;
        let fence = self.take(id.clone(), "node-a").await.claim.fence();
        let order = Order::new(id.clone(), dispatch(1, Trigger::Automatic), Arc::from("tester"));
        self.engine.execute(order.under(fence.clone())).await.unwrap();
        (id, fence)
    }

    /// A job that awaits work outside.
    pub async fn deferred(&self, name: &str) -> (JobId, OperationId) {
        let (id, _) = self.dispatched(name).await;
        let operation = OperationId::new(format!("op-{name}"));
        self.done(id.clone(), defer(&id, &operation, |_| {})).await;
        (id, operation)
    }
}

pub fn job(name: &str) -> JobId {
    JobId::new(format!("work-{name}"))
}

pub fn attempt(number: u32) -> AttemptId {
    AttemptId::new(format!("attempt-{number}"))
}

pub fn create(change: impl FnOnce(&mut NewJob)) -> JobCommand {
    let retry = RetryPolicy { max_attempts: 2, backoff_seconds: 10, max_backoff_seconds: 60 };
    let mut new = NewJob { spec: JobSpec::plain(Some(LANE), retry), due_at: None, bodies: Vec::new() };
    change(&mut new);
    JobCommand::Create(Box::new(new))
}

pub fn dispatch(number: u32, trigger: Trigger) -> JobCommand {
    JobCommand::Dispatch(Dispatch {
        attempt_id: attempt(number),
        owner: OwnerId::new("node-a"),
        trigger,
        holder: Holder::Daemon,
    })
}

pub fn report(number: u32, state: JobStateName) -> JobCommand {
    JobCommand::Report(Box::new(Report {
        attempt_id: Some(attempt(number)),
        state,
        details: Details::default(),
        retryable: Retryable::Yes,
        jitter: Jitter(0),
        submit: SubmitWord::Unsaid,
        by: Reporter::Daemon,
    }))
}

pub fn defer(job: &JobId, operation: &OperationId, change: impl FnOnce(&mut NewOperation)) -> JobCommand {
    let mut new = NewOperation {
        job_id: job.clone(),
        attempt_id: attempt(1),
        kind: "render".to_owned(),
        specialist: "render-farm".to_owned(),
        circle: None,
        handle: Some(body_ref(BodyName::Handle, b"render-7")),
        cancelability: Cancelability::Cancelable,
        retry_after: Hint::Absent,
        fail_after: Hint::Absent,
        action_ttl: Hint::Absent,
        deadline_at: None,
        progress_hint: None,
        policy: KindPolicy::default(),
        jitter: Jitter(0),
        ttl_limit: None,
        external_job_id: None,
    };
    change(&mut new);
    JobCommand::Defer {
        attempt_id: attempt(1),
        operation_id: operation.clone(),
        operation: Box::new(new),
        then: AfterExternal::Finish,
        left_by: domain::job::LeftBy::Executor,
    }
}

pub fn answers(answer: PollAnswer) -> OperationCommand {
    OperationCommand::RecordPoll(Box::new(Poll { answer, jitter: Jitter(0) }))
}

pub fn is_awaiting(record: &Record, operation: &OperationId) -> bool {
    matches!(record, Record::Job(job)
        if matches!(&job.state, JobState::AwaitingExternal { operation: awaited, .. } if awaited == operation))
}
