//! Three engines with the same clock and ids: one on the model, one on a file, one on a server.

use std::fmt::Debug;
use std::num::NonZeroU64;
use std::sync::Arc;

use domain::attention::Retention;
use domain::{Fact, Lease, RecordId, RecordKind, Timestamp};
use engine::{Clock, Engine, EngineError, ManualClock, Outcome};
use store::{Checksum, JobQuery, Loaded, MemoryStore, Store, StoreError, StoredFact, Taken};
use store_sql::{
    Durability, PostgresAddress, PostgresLedger, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore,
    open_for_reading, verify,
};
use tempfile::TempDir;
use test_postgres::Schema;

use crate::chance::SeededIds;
use crate::steps::Step;

pub const START: Timestamp = Timestamp::from_seconds(1_800_000_000);
/// So few that histories of a few dozen steps have checkpoints.
const CHECKPOINT_AFTER: NonZeroU64 = NonZeroU64::new(3).unwrap();

/// What one side answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The order was carried out, or it was so already; the position tells which.
    Executed {
        position: Option<u64>,
        record: Arc<domain::Record>,
    },
    Refused(EngineError),
    Taken(Vec<Taken>),
    Done,
    NotTaken(StoreError),
}

#[derive(Debug)]
pub struct Answers {
    pub model: Answer,
    pub sqlite: Answer,
    pub postgres: Answer,
}

pub struct Twins {
    model: Side,
    sqlite: Option<Side>,
    folder: TempDir,
    postgres: Side,
    schema: Schema,
    /// Facts up to here were compared.
    compared: u64,
}

struct Side {
    engine: Engine,
    clock: Arc<ManualClock>,
}

impl Side {
    fn new(store: Arc<dyn Store>, seed: u64) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let ids = Arc::new(SeededIds::new(seed));
        let engine = Engine::new(store, clock.clone(), ids, Retention::DEFAULT);
        Self { engine: engine.checkpointing_after(CHECKPOINT_AFTER), clock }
    }

    async fn take(&self, step: &Step) -> Answer {
        let (store, now) = (self.engine.store(), self.clock.now());
        match step {
            Step::Wait(seconds) => {
                self.clock.advance_seconds(*seconds);
                Answer::Done
            }
            Step::Order(order) => executed(self.engine.execute((**order).clone()).await),
            Step::Attend(taken) => executed(self.engine.attend(taken, Arc::from("worker")).await),
            Step::TakeDue(kind, take) => taken(store.take_due(*kind, take.at(now)).await),
            Step::TakeReady(lane, take) => taken(store.take_ready(*lane, take.at(now)).await),
            Step::Take(id, take) => taken(store.take(id, take.at(now)).await.map(|one| vec![one])),
            Step::Renew(id, fence) => {
                let renewed = store.renew(id, fence.clone(), now, Lease::DEFAULT).await;
                taken(renewed.map(|one| vec![one]))
            }
            Step::HandBack(id, fence, due_at) => match store.hand_back(id, fence.clone(), now, *due_at).await
            {
                Ok(()) => Answer::Done,
                Err(error) => Answer::NotTaken(error),
            },
        }
    }
}

fn executed(outcome: Result<Outcome, EngineError>) -> Answer {
    match outcome {
        Ok(Outcome::Changed { record, position }) => Answer::Executed { position: Some(position), record },
        Ok(Outcome::AlreadySo { record }) => Answer::Executed { position: None, record },
        Err(error) => Answer::Refused(error),
    }
}

fn taken(answer: Result<Vec<Taken>, StoreError>) -> Answer {
    match answer {
        Ok(taken) => Answer::Taken(taken),
        Err(error) => Answer::NotTaken(error),
    }
}

impl Twins {
    pub async fn new(seed: u64) -> Self {
        let folder = TempDir::new().unwrap();
        let schema = Schema::new().await;
        Self {
            model: Side::new(Arc::new(MemoryStore::new()), seed),
            sqlite: Some(Side::new(Arc::new(open(&folder)), seed)),
            postgres: Side::new(Arc::new(open_postgres(&schema).await), seed),
            folder,
            schema,
            compared: 0,
        }
    }

    /// The model, to see what could be ordered next.
    pub fn model(&self) -> &dyn Store {
        self.model.engine.store()
    }

    pub fn now(&self) -> Timestamp {
        self.model.clock.now()
    }

    pub async fn changed_at(&self, id: &RecordId) -> Option<Timestamp> {
        self.model().load(id).await.expect("the model answers").map(|loaded| loaded.record.updated_at())
    }

    pub async fn take(&self, step: &Step) -> Answers {
        Answers {
            model: self.model.take(step).await,
            sqlite: self.sqlite().take(step).await,
            postgres: self.postgres.take(step).await,
        }
    }

    /// Everything that all of them show, but for facts that were compared before.
    pub async fn compare(&mut self, known: &[RecordId]) -> Result<(), String> {
        let model = self.model.engine.store();
        let last = facts(model, self.compared).await.last().map(|fact| fact.position);
        for (name, side) in [("SQLite", self.sqlite()), ("PostgreSQL", &self.postgres)] {
            same(model, side.engine.store(), known, self.compared)
                .await
                .map_err(|difference| format!("{name}: {difference}"))?;
        }
        self.compared = last.unwrap_or(self.compared);
        Ok(())
    }

    /// Closes the stores and opens them again: what they hold is the whole truth, and in itself consistent.
    pub async fn reopen_and_compare(&mut self, known: &[RecordId]) -> Result<(), String> {
        self.sqlite = None;
        let verified = {
            let reader = open_for_reading(&self.folder.path().join("longhaul.sqlite")).unwrap();
            verify(&reader).unwrap()
        };
        equal("verify", &[][..], &verified.differences[..])?;
        self.sqlite = Some(Side::new(Arc::new(open(&self.folder)), 0));
        let address = PostgresAddress::parse(&self.schema.address).unwrap();
        let verified = PostgresLedger::open(&address).await.unwrap().verify().await.unwrap();
        equal("verify on PostgreSQL", &[][..], &verified.differences[..])?;
        self.postgres = Side::new(Arc::new(open_postgres(&self.schema).await), 0);
        self.compared = 0;
        self.compare(known).await
    }

    fn sqlite(&self) -> &Side {
        self.sqlite.as_ref().expect("it is closed only while it is opened again")
    }
}

/// Nothing here is about power loss, so no commit waits for the disk.
fn open(folder: &TempDir) -> SqliteStore {
    let path = folder.path().join("longhaul.sqlite");
    SqliteStore::open(&SqliteOptions { durability: Durability::Relaxed, ..SqliteOptions::at(path) }).unwrap()
}

async fn open_postgres(schema: &Schema) -> PostgresStore {
    let unsynced = format!("{}%20-c%20synchronous_commit%3Doff", schema.address);
    let address = PostgresAddress::parse(&unsynced).unwrap();
    PostgresStore::open(&PostgresOptions::at(address)).await.unwrap()
}

async fn same(model: &dyn Store, other: &dyn Store, known: &[RecordId], compared: u64) -> Result<(), String> {
    for id in known {
        equal(id.as_str(), loaded(model, id).await, loaded(other, id).await)?;
    }
    equal("facts", facts(model, compared).await, facts(other, compared).await)?;
    let all = || JobQuery { limit: 1_000, ..JobQuery::default() };
    equal("jobs", model.jobs(all()).await, other.jobs(all()).await)?;
    equal("counts", model.job_counts().await, other.job_counts().await)?;
    equal("open", model.open_jobs("press").await, other.open_jobs("press").await)?;
    equal("orphans", model.orphans(None, 1_000).await, other.orphans(None, 1_000).await)?;
    for kind in RecordKind::ALL {
        equal(kind.as_str(), model.earliest_due(kind).await, other.earliest_due(kind).await)?;
    }
    Ok(())
}

async fn loaded(store: &dyn Store, id: &RecordId) -> Result<Option<Loaded>, StoreError> {
    let mut loaded = store.load(id).await?;
    if let Some(loaded) = &mut loaded {
        // The model keeps no checksums.
        loaded.head.checksum = Checksum::default();
    }
    Ok(loaded)
}

async fn facts(store: &dyn Store, after: u64) -> Vec<StoredFact> {
    let facts = store.facts_after(after, 1_000).await.unwrap();
    facts.into_iter().map(without_checksums).collect()
}

fn without_checksums(mut stored: StoredFact) -> StoredFact {
    stored.checksum = Checksum::default();
    if let Fact::Checkpointed { checkpointed } = &mut stored.fact {
        checkpointed.previous = Checksum::default();
    }
    stored
}

fn equal<T: Debug + PartialEq>(what: &str, model: T, other: T) -> Result<(), String> {
    if model == other {
        return Ok(());
    }
    Err(format!("{what} differ\nmodel: {model:?}\n here: {other:?}"))
}
