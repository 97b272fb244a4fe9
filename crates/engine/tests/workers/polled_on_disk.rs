//! What a poll hands over with a result, on both databases: whole with the end, and once when a process dies before it could be written.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::event::{NewEvent, Origin};
use domain::run::RunState;
use domain::{BodyName, EventId, Record, RecordKind, Timestamp};
use engine::{
    Daemon, DaemonSettings, Executors, Ids, ManualClock, Output, Polled, Produced, RandomIds, StateChange,
    StateUpdate,
};
use pipelines::Router;
use pipelines::{Routes, parse};
use serde_json::json;
use store::{RecordQuery, Store, body_ref};
use store_sql::{PostgresAddress, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use test_postgres::Schema;

use crate::given::routed::{Seen, done, emitting, noting};
use crate::given::{in_a_process_that_dies, settings};
use crate::specialist::{Answer, Scripted};

const PIPELINES: &str = "
pipelines:
- { name: main, on: go, steps: [{ id: press, uses: press }, { id: each, uses: worker }] }
";

fn process(store: Arc<dyn Store>, clock: &Arc<ManualClock>, press: &Arc<Scripted>, seen: &Seen) -> Daemon {
    let mut executors = Executors::default();
    for (name, executor) in [press.named("press"), noting("worker", seen, |_| done())] {
        executors.register(&name, executor);
    }
    let loaded = parse(&[("test.yaml", PIPELINES)]);
    assert!(loaded.mistakes.is_empty(), "{:?}", loaded.mistakes);
    let router = Router::new(executors.clone(), Routes::new(loaded.pipelines));
    let settings = DaemonSettings { preparation: Some(Arc::new(router)), ..settings() };
    Daemon::start(store, clock.clone(), Arc::new(RandomIds), executors, settings)
}

fn two_events() -> Polled {
    let Produced::Completed(output) = emitting(&[("made", json!({ "n": 1 })), ("made", json!({ "n": 2 }))])
    else {
        unreachable!("it is completed")
    };
    let change = StateChange::Merge(serde_json::from_str(r#"{"pages":12}"#).expect("it is an object"));
    let state = StateUpdate { plugin: "press".to_owned(), change, facts: Vec::new() };
    Polled::Completed(Output { state: Some(state), ..output })
}

/// Moves the clock until this holds, woken by every commit.
async fn until<F: Future<Output = bool>>(daemon: &Daemon, clock: &ManualClock, holds: impl Fn() -> F) {
    let mut ledger = daemon.ledger();
    for _ in 0..200 {
        ledger.borrow_and_update();
        if holds().await {
            return;
        }
        if tokio::time::timeout(Duration::from_millis(200), ledger.changed()).await.is_err() {
            clock.advance_seconds(1);
        }
    }
    panic!("it does not come about");
}

/// Where a process finds what another one left.
enum Database {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Database {
    async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(path) => {
                Arc::new(SqliteStore::open(&SqliteOptions::at(path.clone())).expect("it opens"))
            }
            Self::Postgres(address) => {
                let address = PostgresAddress::parse(address).expect("it is an address");
                Arc::new(PostgresStore::open(&PostgresOptions::at(address)).await.expect("it opens"))
            }
        }
    }
}

async fn handed_over_once(database: Database) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_700_000_000)));
    let seen = Seen::default();
    in_a_process_that_dies(async {
        let press = Scripted::deferring([Answer::Hangs]);
        let daemon = process(database.open().await, &clock, &press, &seen);
        let payload = b"{}".to_vec();
        let new = NewEvent::new("go", body_ref(BodyName::Payload, &payload), Origin::Published { by: None });
        let id = EventId::new(format!("event-{:032x}", RandomIds.next()));
        let order = Router::publishing(&id, new, payload, Arc::from("test"));
        daemon.engine().execute(order).await.expect("it is accepted");
        until(&daemon, &clock, async || press.times("poll") == 1).await;
    });
    // The claim of the dead process ends with its lease.
    clock.advance_seconds(60);
    let store = database.open().await;
    assert!(store.plugin_state("press").await.expect("it can be read").is_none());
    let second = Scripted::deferring([Answer::Says(two_events())]);
    let daemon = process(store.clone(), &clock, &second, &seen);
    let worked = || seen.lock().expect("no holder of the lock panics").len();
    until(&daemon, &clock, async || worked() == 2).await;
    let of_kind =
        |kind| RecordQuery { kind, name: None, status: None, circle: None, after: None, limit: 100 };
    let over = async || {
        let page = store.records(of_kind(RecordKind::Run)).await.expect("it can be read");
        page.records
            .iter()
            .all(|record| matches!(&**record, Record::Run(run) if run.state() == RunState::Completed))
    };
    until(&daemon, &clock, over).await;
    daemon.stop().await;
    assert_eq!((second.times("poll"), worked()), (1, 2));
    let events = store.records(of_kind(RecordKind::Event)).await.expect("it can be read").records;
    let made =
        events.iter().filter(|record| matches!(&***record, Record::Event(one) if one.said.kind == "made"));
    assert_eq!(made.count(), 2);
    let state = store.plugin_state("press").await.expect("it can be read").expect("it remembers");
    assert_eq!((&*state.state, state.version), (r#"{"pages":12}"#, 1));
}

// conforms: L96
#[tokio::test]
async fn poll_hands_over_once_on_sqlite_after_a_process_died() {
    let folder = tempfile::tempdir().unwrap();
    handed_over_once(Database::Sqlite(folder.path().join("longhaul.sqlite"))).await;
}

// conforms: L96
#[tokio::test]
async fn poll_hands_over_once_on_postgresql_after_a_process_died() {
    let schema = Schema::new().await;
    handed_over_once(Database::Postgres(schema.address.clone())).await;
}
