//! Dispatch: of many that want a job, one gets it.

use std::sync::Arc;

use domain::job::{Dispatch, JobCommand, JobStateName, Trigger};
use domain::{Jitter, OwnerId};
use engine::{Order, Outcome};
use store::StoreError;
use tokio::task::JoinSet;

use crate::world::{LANE, attempt, create, job, on_every_store};

const DISPATCHERS: usize = 32;

fn dispatch_by(node: usize, trigger: Trigger) -> JobCommand {
    JobCommand::Dispatch(Dispatch {
        attempt_id: domain::AttemptId::new(format!("attempt-of-{node}")),
        owner: OwnerId::new(format!("node-{node}")),
        holder: domain::job::Holder::Daemon,
        trigger,
    })
}

// conforms: R47 R107
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_one_of_many_dispatchers_at_once_gets_a_queued_job_under_a_lease() {
    on_every_store(async |world| {
        for round in 0..5 {
            let id = job(&format!("{round}"));
            world.done(id.clone(), create(|_| {})).await;
            let mut tasks = JoinSet::new();
            for node in 0..DISPATCHERS {
                let (engine, store, id) = (world.engine.clone(), world.store.clone(), id.clone());
                let taker = world.taker(&format!("node-{node}"));
                tasks.spawn(async move {
                    let taken = store.take(&id.clone().into(), taker).await?;
                    let order = Order::new(id, dispatch_by(node, Trigger::Automatic), Arc::from("worker"));
                    let outcome = engine.execute(order.under(taken.claim.fence())).await.unwrap();
                    assert!(matches!(outcome, Outcome::Changed { .. }));
                    Ok::<usize, StoreError>(node)
                });
            }
            let answers = tasks.join_all().await;
            let winners: Vec<usize> = answers.iter().flatten().copied().collect();
            assert_eq!(winners.len(), 1);
            assert!(answers.iter().all(|answer| answer.is_ok() || *answer == Err(StoreError::ClaimHeld)));

            assert_eq!(world.kinds(id.clone()).await, ["job.created", "job.dispatched"]);
            let claim = world.store.load(&id.into()).await.unwrap().unwrap().claim.unwrap();
            assert_eq!(claim.owner, OwnerId::new(format!("node-{}", winners[0])));
            assert_eq!(claim.lease_expires_at, crate::world::at(60));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_one_of_many_runs_at_once_begins_an_attempt() {
    on_every_store(async |world| {
        for round in 0..5 {
            let id = job(&format!("{round}"));
            world.done(id.clone(), create(|_| {})).await;
            let mut tasks = JoinSet::new();
            for node in 0..DISPATCHERS {
                let engine = world.engine.clone();
                let order = Order::new(id.clone(), dispatch_by(node, Trigger::Run), Arc::from("token:ada"));
                tasks.spawn(async move { engine.execute(order).await.map_err(|error| error.code()) });
            }
            let answers = tasks.join_all().await;
            assert_eq!(answers.iter().flatten().count(), 1);
            assert!(
                answers.iter().all(|answer| answer.is_ok() || answer.as_ref().err() == Some(&"not_runnable"))
            );
            assert_eq!(world.kinds(id).await, ["job.created", "job.dispatched"]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dispatchers_that_share_a_lane_begin_one_attempt_per_job() {
    on_every_store(async |world| {
        for number in 0..40 {
            world.done(job(&format!("{number}")), create(|_| {})).await;
        }
        let mut tasks = JoinSet::new();
        for node in 0..8 {
            let (engine, store) = (world.engine.clone(), world.store.clone());
            let taker = world.taker(&format!("node-{node}"));
            tasks.spawn(async move {
                loop {
                    let batch = store.take_ready(LANE.into(), taker.clone()).await.unwrap();
                    if batch.is_empty() {
                        return;
                    }
                    for taken in batch {
                        let dispatch = dispatch_by(node, Trigger::Automatic);
                        let order = Order::new(taken.id.clone(), dispatch, Arc::from("worker"));
                        engine.execute(order.under(taken.claim.fence())).await.unwrap();
                    }
                }
            });
        }
        tasks.join_all().await;
        assert_eq!(world.store.job_counts().await, Ok(vec![(JobStateName::Dispatching, 40)]));
        assert_eq!(world.fact_count().await, 80);
    })
    .await;
}

#[tokio::test]
async fn order_under_a_lost_claim_is_refused_and_writes_nothing() {
    on_every_store(async |world| {
        let (id, lost) = world.dispatched("a").await;
        world.wait(60);
        world.take(id.clone(), "node-b").await;
        let before = world.fact_count().await;
        let late = crate::world::report(1, JobStateName::Completed);
        let order = Order::new(id.clone(), late, Arc::from("worker")).under(lost);
        assert_eq!(world.engine.execute(order).await.unwrap_err().code(), "claim_lost");
        assert_eq!(world.fact_count().await, before);
        assert_eq!(world.state(&id).await, JobStateName::Dispatching);
    })
    .await;
}

#[tokio::test]
async fn only_whoever_has_the_claim_takes_a_job_by_itself_or_says_that_a_lease_is_lost() {
    on_every_store(async |world| {
        let unfenced = |command: JobCommand| Order::new(job("a"), command, Arc::from("tester"));
        world.done(job("a"), create(|_| {})).await;
        let lost = JobCommand::LoseLease { attempt_id: attempt(1), jitter: Jitter(0), error: None };
        for command in [crate::world::dispatch(1, Trigger::Automatic), lost] {
            let refused = world.engine.execute(unfenced(command)).await.unwrap_err();
            assert_eq!(refused.code(), "claim_required");
        }
        assert_eq!(world.kinds(job("a")).await, ["job.created"]);
    })
    .await;
}
