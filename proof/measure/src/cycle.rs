//! Our side: jobs created, claimed and completed through `execute`, each step durable before the next.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use domain::attention::Retention;
use domain::job::{
    Details, Dispatch, Holder, JobCommand, JobSpec, JobStateName, NewJob, Report, Reporter, ResultRefs,
    Retryable, SubmitWord, Trigger,
};
use domain::{BodyName, Jitter, JobId, Lease, OwnerId, RecordId, RetryPolicy, Timestamp};
use engine::{Engine, Order, OrderBody, RandomIds, SystemClock};
use store::{NewBody, Store, Take, Taken, body_ref};
use store_sql::{SqliteOptions, SqliteStore};
use tokio::sync::{Mutex, mpsc};

use crate::work::per_second;

/// The lane of the bench's executor.
pub const EXECUTOR: &str = "noop";
/// What a no-op job is given.
pub const INPUT: &[u8] = br#"{"url":"https://example.org/a/b/c","width":1280,"height":720,"format":"png"}"#;
/// What it comes to.
pub const RESULT: &[u8] = br#"{"ok":true,"path":"out/0001.png"}"#;
const TAKE_BATCH: usize = 256;

/// What a run came to.
pub struct Cycle {
    /// How fast it was.
    pub jobs_per_second: f64,
    /// What one durable transaction held.
    pub requests_per_batch: f64,
}

/// Runs this many jobs with this many callers on a new file.
pub async fn run(path: &Path, callers: usize, jobs: usize) -> Result<Cycle> {
    let store = Arc::new(SqliteStore::open(&SqliteOptions::at(path))?);
    let (batches, requests) = (store.figures().batches(), store.figures().requests());
    let jobs_per_second = on(store.clone(), callers, jobs).await?;
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let requests_per_batch =
        (store.figures().requests() - requests) as f64 / (store.figures().batches() - batches).max(1) as f64;
    Ok(Cycle { jobs_per_second, requests_per_batch })
}

/// When a run is over.
#[derive(Clone, Copy)]
pub enum Until {
    /// After so many jobs.
    Jobs(usize),
    /// When a caller is done with a job and it is later than this.
    Time(Instant),
}

impl Until {
    /// Whether a caller goes on that has done so many.
    fn goes_on(self, caller: usize, callers: usize, done: usize) -> bool {
        match self {
            Self::Jobs(jobs) => done < jobs / callers + usize::from(caller < jobs % callers),
            Self::Time(until) => Instant::now() < until,
        }
    }
}

/// What a run on a store came to.
pub struct Ran {
    /// From the first create to the last end.
    pub time: Duration,
    /// How long each job took, in seconds.
    pub each: Vec<f64>,
}

/// Runs this many jobs with this many callers on a store; jobs per second.
pub async fn on(store: Arc<dyn Store>, callers: usize, jobs: usize) -> Result<f64> {
    Ok(per_second(jobs, until(store, callers, Until::Jobs(jobs)).await?.time))
}

/// Runs jobs with this many callers on a store; each caller has one job at a time.
pub async fn until(store: Arc<dyn Store>, callers: usize, until: Until) -> Result<Ran> {
    let engine = engine(store);
    let owner = OwnerId::new("node-bench-boot-1");
    let begin = Instant::now();
    // A dispatcher takes what is ready in batches, as the daemon does, and hands it to whoever is free.
    let (give, taken) = mpsc::channel(TAKE_BATCH);
    let (created, mut wake) = mpsc::unbounded_channel::<()>();
    let taken = Arc::new(Mutex::new(taken));
    let dispatcher = tokio::spawn({
        let (engine, owner) = (engine.clone(), owner.clone());
        async move {
            while wake.recv().await.is_some() {
                // Before the look and not after it: what is created meanwhile must wake again.
                while wake.try_recv().is_ok() {}
                loop {
                    let take = take(&owner, engine.clock().now(), TAKE_BATCH);
                    let batch = engine.store().take_ready(EXECUTOR.into(), take).await?;
                    let full = batch.len() == TAKE_BATCH;
                    for one in batch {
                        give.send(one).await?;
                    }
                    if !full {
                        break;
                    }
                }
            }
            anyhow::Ok(())
        }
    });
    let mut tasks = Vec::new();
    for caller in 0..callers {
        let (engine, owner, created, taken) = (engine.clone(), owner.clone(), created.clone(), taken.clone());
        tasks.push(tokio::spawn(async move {
            let mut each = Vec::new();
            while until.goes_on(caller, callers, each.len()) {
                let began = Instant::now();
                create(&engine).await?;
                created.send(())?;
                let one = taken.lock().await.recv().await.expect("as many are taken as are created");
                finish(&engine, &owner, one).await?;
                each.push(began.elapsed().as_secs_f64());
            }
            anyhow::Ok(each)
        }));
    }
    drop(created);
    let mut each = Vec::new();
    for task in tasks {
        each.extend(task.await??);
    }
    let time = begin.elapsed();
    dispatcher.await??;
    Ok(Ran { time, each })
}

/// An engine on this store.
pub fn engine(store: Arc<dyn Store>) -> Engine {
    let clock = Arc::new(SystemClock::starting_at(Timestamp::default()));
    Engine::new(store, clock, Arc::new(RandomIds), Retention::DEFAULT)
}

/// Creates one no-op job.
pub async fn create(engine: &Engine) -> Result<JobId> {
    create_for(engine, EXECUTOR, INPUT).await
}

/// Creates this many jobs with this many callers.
pub async fn create_many(
    engine: &Engine,
    callers: usize,
    jobs: usize,
    executor: &'static str,
    input: &'static [u8],
) -> Result<()> {
    let mut tasks = Vec::new();
    for caller in 0..callers {
        let share = jobs / callers + usize::from(caller < jobs % callers);
        let engine = engine.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..share {
                create_for(&engine, executor, input).await?;
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn create_for(engine: &Engine, executor: &str, bytes: &[u8]) -> Result<JobId> {
    let id = engine.ids().job_id();
    let input = body_ref(BodyName::Input, bytes);
    let retry = RetryPolicy { max_attempts: 3, backoff_seconds: 1, max_backoff_seconds: 60 };
    let mut spec = JobSpec::plain(Some(executor), retry);
    "render the cover".clone_into(&mut spec.title);
    let new = NewJob { spec, due_at: None, bodies: vec![input] };
    let mut order = Order::new(id.clone(), JobCommand::Create(Box::new(new)), Arc::from("token:bench"));
    order.bodies.push(body(&id, input, bytes));
    engine.execute(order).await?;
    Ok(id)
}

async fn finish(engine: &Engine, owner: &OwnerId, taken: Taken) -> Result<()> {
    let attempt_id = engine.ids().attempt_id();
    let dispatch = Dispatch {
        attempt_id: attempt_id.clone(),
        owner: owner.clone(),
        trigger: Trigger::Automatic,
        holder: Holder::Daemon,
    };
    let actor: Arc<str> = Arc::from("worker:dispatch");
    let order = Order::new(taken.id.clone(), JobCommand::Dispatch(dispatch), actor.clone());
    engine.execute(order.under(taken.claim.fence())).await?;
    let RecordId::Job(id) = &taken.id else { unreachable!("only jobs are ready") };
    let data = body_ref(BodyName::Result, RESULT);
    let details =
        Details { result: ResultRefs { data: Some(data), ..ResultRefs::default() }, ..Details::default() };
    let report = Report {
        attempt_id: Some(attempt_id),
        state: JobStateName::Completed,
        details,
        retryable: Retryable::Yes,
        jitter: Jitter::default(),
        submit: SubmitWord::Unsaid,
        by: Reporter::Daemon,
    };
    let mut order = Order::new(taken.id.clone(), JobCommand::Report(Box::new(report)), actor);
    order.bodies.push(body(id, data, RESULT));
    engine.execute(order.under(taken.claim.fence())).await?;
    Ok(())
}

fn body(id: &JobId, body: domain::BodyRef, bytes: &[u8]) -> OrderBody {
    OrderBody { record: id.clone().into(), body: NewBody { body, bytes: Arc::from(bytes) } }
}

fn take(owner: &OwnerId, now: Timestamp, limit: usize) -> Take {
    Take::by(owner.clone(), now, Lease::DEFAULT, limit)
}
