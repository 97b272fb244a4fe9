//! The same on the level of the store: taken in batches, begun, renewed, started and completed through `execute`, by as many callers.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use domain::job::{
    Caller, Details, Dispatch, Holder, JobCommand, JobSpec, JobStateName, NewJob, Report, Reporter,
    ResultRefs, Retryable, SubmitWord, Trigger,
};
use domain::{BodyName, Command, Jitter, Lease, OwnerId, RetryPolicy};
use engine::{Engine, Order, OrderBody};
use store::{NewBody, Take, Taken, body_ref};
use store_sql::{SqliteOptions, SqliteStore};
use tokio::sync::{Mutex, mpsc};

use super::PULLERS;
use crate::cycle;

const LANE: &str = "print";
const RESULT: &[u8] = br#"{"ok":true}"#;

/// Jobs per second; all were created before.
pub async fn rate(path: &Path, jobs: usize) -> Result<f64> {
    let engine = cycle::engine(Arc::new(SqliteStore::open(&SqliteOptions::at(path))?));
    create(&engine, jobs).await?;
    let lane = spec().lane().into_owned();
    let begin = Instant::now();
    let (give, taken) = mpsc::channel(PULLERS);
    let taken = Arc::new(Mutex::new(taken));
    let pullers: Vec<_> = (0..PULLERS)
        .map(|_| {
            let (engine, taken) = (engine.clone(), taken.clone());
            tokio::spawn(async move {
                loop {
                    let next = taken.lock().await.recv().await;
                    let Some(next) = next else { return anyhow::Ok(()) };
                    finish(&engine, next).await?;
                }
            })
        })
        .collect();
    let mut left = jobs;
    while left > 0 {
        let owners = (0..PULLERS.min(left)).map(|nth| OwnerId::outside(&nth.to_string()));
        let Some(take) = Take::one_each(owners, engine.clock().now(), Lease::DEFAULT) else { break };
        for one in engine.store().take_ready(lane.as_str().into(), take).await? {
            left -= 1;
            give.send(one).await?;
        }
    }
    drop(give);
    for puller in pullers {
        puller.await??;
    }
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = jobs as f64 / begin.elapsed().as_secs_f64();
    Ok(rate)
}

async fn create(engine: &Engine, jobs: usize) -> Result<()> {
    let creators: Vec<_> = (0..PULLERS)
        .map(|nth| {
            let engine = engine.clone();
            let share = jobs / PULLERS + usize::from(nth < jobs % PULLERS);
            tokio::spawn(async move {
                for _ in 0..share {
                    let new = NewJob { spec: spec(), due_at: None, bodies: Vec::new() };
                    let id = engine.ids().job_id();
                    let command = JobCommand::Create(Box::new(new));
                    engine.execute(Order::new(id, command, Arc::from("token:bench"))).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for creator in creators {
        creator.await??;
    }
    Ok(())
}

fn spec() -> JobSpec {
    JobSpec { lane: Some(LANE.to_owned()), ..JobSpec::plain(None, RetryPolicy::ONCE) }
}

async fn finish(engine: &Engine, taken: Taken) -> Result<()> {
    let (id, owner) = (taken.id.clone(), taken.claim.owner.clone());
    let (attempt_id, actor) = (engine.ids().attempt_id(), Arc::<str>::from("peer:bench"));
    let caller = Caller { token: "bench".to_owned(), peer: None };
    let dispatch = Dispatch {
        attempt_id: attempt_id.clone(),
        owner,
        trigger: Trigger::Automatic,
        holder: Holder::Caller(caller.clone()),
    };
    let mut order = Order::new(id.clone(), JobCommand::Dispatch(dispatch), actor.clone());
    order.then = vec![Command::Job(JobCommand::Deliver { attempt_id: attempt_id.clone() })];
    engine.execute(order.under(taken.claim.fence())).await?;
    engine.store().renew(&id, taken.claim.fence(), engine.clock().now(), Lease::DEFAULT).await?;
    let by = Reporter::Caller(caller);
    let heartbeat = JobCommand::Heartbeat { attempt_id: attempt_id.clone(), by: by.clone() };
    engine.execute(Order::new(id.clone(), heartbeat, actor.clone())).await?;
    let data = body_ref(BodyName::Result, RESULT);
    let report = Report {
        attempt_id: Some(attempt_id),
        state: JobStateName::Completed,
        details: Details {
            result: ResultRefs { data: Some(data), ..ResultRefs::default() },
            ..Details::default()
        },
        retryable: Retryable::No,
        jitter: Jitter::default(),
        submit: SubmitWord::Unsaid,
        by,
    };
    let mut order = Order::new(id.clone(), JobCommand::Report(Box::new(report)), actor);
    order.bodies.push(OrderBody { record: id, body: NewBody { body: data, bytes: Arc::from(RESULT) } });
    engine.execute(order).await?;
    Ok(())
}
