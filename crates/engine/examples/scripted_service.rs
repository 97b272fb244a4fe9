//! How to test what comes of work outside without a service: the scripted specialist, a store in memory, and a clock that is moved by hand.
//!
//! `cargo run -p engine --example scripted_service` walks through a service that first says how far it is, then panics, then is done.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::attention::Retention;
use domain::job::{JobCommand, JobSpec, NewJob};
use domain::policy::{Hint, HostPolicy};
use domain::{JobId, Lease, Record, Timestamp};
use engine::testing::{Answer, Scripted, running};
use engine::{
    Daemon, DaemonSettings, Dispatching, Executors, Ids, ManualClock, Order, Output, Polled, RandomIds,
    Standing,
};
use store::{MemoryStore, Store};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let done = Output { data: Some(b"{\"pages\":12}".to_vec()), ..Output::default() };
    let press = Scripted::deferring([
        Answer::Says(running(Hint::Seconds(10), Some("page 1"))),
        Answer::Raises,
        Answer::Says(Polled::Completed(done)),
    ]);
    let (store, clock) =
        (Arc::new(MemoryStore::new()), ManualClock::at(Timestamp::from_seconds(1_700_000_000)));
    let clock = Arc::new(clock);
    let mut executors = Executors::default();
    let (name, executor) = press.named("press");
    executors.register(&name, executor);
    let settings = DaemonSettings {
        preparation: None,
        owner: RandomIds.owner_id("example"),
        lease: Lease::DEFAULT,
        retention: Retention::DEFAULT,
        lane_limits: BTreeMap::new(),
        policy: HostPolicy::default(),
        grace_seconds: 0,
        dispatching: Dispatching::On,
        standing: Standing::alone(),
    };
    let daemon = Daemon::start(store.clone(), clock.clone(), Arc::new(RandomIds), executors, settings);

    let id = RandomIds.job_id();
    let spec = JobSpec::plain(Some("press"), Executors::DEFAULT_RETRY);
    let new = NewJob { spec, due_at: None, bodies: Vec::new() };
    let create = JobCommand::Create(Box::new(new));
    daemon
        .engine()
        .execute(Order::new(id.clone(), create, Arc::from("example")))
        .await
        .expect("it is accepted");

    while !is_over(&*store, &id).await {
        // Lets everything that can go on go on; then time passes.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        clock.advance_seconds(1);
    }
    daemon.stop().await;
    for asked in press.asked() {
        println!("{asked}");
    }
    assert_eq!((press.times("produce"), press.times("poll press-7")), (1, 3));
}

async fn is_over(store: &dyn Store, id: &JobId) -> bool {
    let loaded = store.load(&id.clone().into()).await.expect("it can be read");
    matches!(loaded.as_ref().map(|loaded| &*loaded.record), Some(Record::Job(job)) if job.state.name().is_terminal())
}
