//! One job through the core on an embedded store: accepted, taken, dispatched, completed, each step durable.
//!
//! Run it with `cargo run --release --example first_job`, look with `longhaul export facts`, check with `longhaul verify`.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use domain::attention::Retention;
use domain::job::{
    Details, Dispatch, JobCommand, JobSpec, JobStateName, NewJob, Report, ResultRefs, Retryable, Trigger,
};
use domain::{BodyName, Jitter, Lease, OwnerId, RetryPolicy};
use engine::{Clock, Engine, Ids, Order, OrderBody, RandomIds, SystemClock};
use store::{NewBody, Store, Take, body_ref};
use store_sql::{SqliteOptions, SqliteStore};

const DATA_DIR: &str = "longhaul-data";
const RESULT: &[u8] = br#"{"pages":12}"#;

#[tokio::main]
async fn main() -> Result<()> {
    std::fs::create_dir_all(DATA_DIR)?;
    let store = Arc::new(SqliteStore::open(&SqliteOptions::at(Path::new(DATA_DIR).join("longhaul.sqlite")))?);
    let clock = Arc::new(SystemClock::starting_at(store.newest_fact()));
    let ids = Arc::new(RandomIds);
    let engine = Engine::new(store.clone(), clock.clone(), ids.clone(), Retention::DEFAULT);
    let actor: Arc<str> = Arc::from("example");

    // Accept it. When this returns, it survives a power cut.
    let id = ids.job_id();
    let mut spec = JobSpec::plain(Some("printer"), RetryPolicy::ONCE);
    "print the report".clone_into(&mut spec.title);
    let new = NewJob { spec, due_at: None, bodies: Vec::new() };
    engine.execute(Order::new(id.clone(), JobCommand::Create(Box::new(new)), actor.clone())).await?;

    // Take whatever is ready in the lane: one owner at a time, under a lease.
    let owner = OwnerId::new(format!("example-{}", std::process::id()));
    let take = Take { owner: owner.clone(), now: clock.now(), lease: Lease::DEFAULT, limit: 10 };
    for taken in store.take_ready("printer", take).await? {
        let attempt_id = ids.attempt_id();
        let dispatch =
            Dispatch { attempt_id: attempt_id.clone(), owner: owner.clone(), trigger: Trigger::Automatic };
        let order = Order::new(taken.id.clone(), JobCommand::Dispatch(dispatch), actor.clone());
        engine.execute(order.under(taken.claim.fence())).await?;

        // ... here an executor would work ...
        let data = body_ref(BodyName::Result, RESULT);
        let result =
            ResultRefs { summary: Some("12 pages".to_owned()), data: Some(data), ..Default::default() };
        let report = Report {
            attempt_id: Some(attempt_id),
            state: JobStateName::Completed,
            details: Details { result, ..Details::default() },
            retryable: Retryable::Yes,
            jitter: Jitter::default(),
        };
        let mut order = Order::new(taken.id.clone(), JobCommand::Report(Box::new(report)), actor.clone());
        let body = NewBody { body: data, bytes: Arc::from(RESULT) };
        order.bodies.push(OrderBody { record: taken.id.clone(), body });
        engine.execute(order.under(taken.claim.fence())).await?;
    }

    println!("the ledger of {id}:");
    for fact in store.facts_of(&id.into(), 0, 100).await? {
        println!(
            "  {:>4}  {}  {}",
            fact.position,
            store::fact_kind(&fact.fact),
            store::encode_fact(&fact.fact)
        );
    }
    Ok(())
}
