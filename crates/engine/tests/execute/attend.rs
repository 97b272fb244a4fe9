//! What time alone brings about, for whoever took a record because it was due.

use std::sync::Arc;

use domain::RecordKind;
use domain::attention::Retention;
use domain::job::{JobCommand, JobStateName, ResultRefs, Trigger};
use domain::operation::{OperationStatus, PollAnswer};
use engine::{Engine, Order, Outcome, RandomIds};

use crate::scripted::{Act, Scripted};
use crate::world::{LANE, World, answers, at, create, dispatch, job, on_every_store, report};

/// Node b takes the one job that is due and attends to it.
async fn attend(world: &World, kind: RecordKind) -> Outcome {
    let taken = world.take_due(kind, "node-b").await;
    world.engine.attend(&taken, Arc::from("worker:attend")).await.unwrap()
}

#[tokio::test]
async fn job_whose_time_has_come_gets_its_place_in_the_lane() {
    on_every_store(async |world| {
        world.done(job("a"), create(|new| new.due_at = Some(at(30)))).await;
        assert!(world.store.take_ready(LANE.into(), world.taker("node-a")).await.unwrap().is_empty());
        world.wait(30);
        assert!(matches!(attend(&world, RecordKind::Job).await, Outcome::AlreadySo { .. }));
        assert_eq!(world.kinds(job("a")).await, ["job.created"]);
        assert_eq!(world.store.earliest_due(RecordKind::Job).await, Ok(None));
        let ready = world.store.take_ready(LANE.into(), world.taker("node-a")).await.unwrap();
        assert_eq!(ready.len(), 1);
        assert_eq!(ready[0].claim.claim_version, 1);
    })
    .await;
}

#[tokio::test]
async fn job_past_its_deadline_expires_although_it_is_held() {
    on_every_store(async |world| {
        world.done(job("a"), create(|new| new.spec.deadline_at = Some(at(30)))).await;
        let held = world.take(job("a"), "node-a").await;
        world.done(job("a"), dispatch(1, Trigger::Automatic)).await;
        world.wait(30);
        attend(&world, RecordKind::Job).await;
        assert_eq!(world.state(&job("a")).await, JobStateName::Expired);
        let late = engine::Order::new(job("a"), report(1, JobStateName::Completed), Arc::from("node-a"));
        let refused = world.engine.execute(late.under(held.claim.fence())).await.unwrap_err();
        assert_eq!(refused.code(), "terminal");
    })
    .await;
}

#[tokio::test]
async fn job_whose_lease_ended_is_queued_again_and_unavailable_when_no_attempt_is_left() {
    on_every_store(async |world| {
        world.dispatched("a").await;
        world.wait(60);
        attend(&world, RecordKind::Job).await;
        assert_eq!(world.state(&job("a")).await, JobStateName::Queued);
        // The wait before the second attempt, then the promotion to the lane.
        world.wait(10);
        attend(&world, RecordKind::Job).await;
        assert_eq!(world.store.take_ready(LANE.into(), world.taker("node-a")).await.unwrap().len(), 1);
        world.done(job("a"), dispatch(2, Trigger::Automatic)).await;
        world.wait(60);
        attend(&world, RecordKind::Job).await;
        assert_eq!(world.state(&job("a")).await, JobStateName::Unavailable);
        assert_eq!(
            world.kinds(job("a")).await,
            ["job.created", "job.dispatched", "job.requeued", "job.dispatched", "job.became_unavailable"]
        );
    })
    .await;
}

#[tokio::test]
async fn lease_that_was_renewed_is_not_lost() {
    on_every_store(async |world| {
        let (id, fence) = world.dispatched("a").await;
        world.wait(40);
        world.store.renew(&id.clone().into(), fence, at(40), domain::Lease::DEFAULT).await.unwrap();
        world.wait(59);
        assert!(world.store.take_due(RecordKind::Job, world.taker("node-b")).await.unwrap().is_empty());
        world.wait(1);
        attend(&world, RecordKind::Job).await;
        assert_eq!(world.state(&id).await, JobStateName::Queued);
    })
    .await;
}

#[tokio::test]
async fn cancel_that_nobody_confirmed_is_over_at_its_limit() {
    on_every_store(async |world| {
        let (id, fence) = world.dispatched("a").await;
        world.done(id.clone(), JobCommand::RequestCancel { by: None, reason: "no".to_owned() }).await;
        world.wait(20);
        world.store.renew(&id.clone().into(), fence, at(20), domain::Lease::DEFAULT).await.unwrap();
        world.wait(10);
        attend(&world, RecordKind::Job).await;
        assert_eq!(world.state(&id).await, JobStateName::Cancelled);
    })
    .await;
}

#[tokio::test]
async fn operation_past_its_life_expires_and_its_job_with_it() {
    on_every_store(async |world| {
        let (id, operation) = world.deferred("a").await;
        world.wait(900);
        attend(&world, RecordKind::Operation).await;
        assert_eq!(world.state(&id).await, JobStateName::Expired);
        let kinds = world.kinds(operation).await;
        assert!(kinds.ends_with(&["operation.expired", "operation.cancel_requested"]), "{kinds:?}");
    })
    .await;
}

#[tokio::test]
async fn poll_that_is_due_is_left_to_the_poller() {
    on_every_store(async |world| {
        let (_, operation) = world.deferred("a").await;
        world.wait(5);
        let outcome = attend(&world, RecordKind::Operation).await;
        assert!(matches!(outcome, Outcome::AlreadySo { .. }));
        assert_eq!(world.kinds(operation).await.len(), 1);
        // It was handed back with the time at which it was due: the poller finds it.
        assert_eq!(world.store.earliest_due(RecordKind::Operation).await, Ok(Some(at(5))));
    })
    .await;
}

#[tokio::test]
async fn record_that_was_kept_long_enough_is_retired_with_all_that_it_had() {
    on_every_store(async |world| {
        let (id, operation) = world.deferred("a").await;
        world.wait(5);
        world.done(operation.clone(), answers(PollAnswer::Completed(ResultRefs::default()))).await;
        let domain::Record::Operation(ended) = &*world.record(operation.clone()).await else {
            unreachable!()
        };
        assert_eq!(ended.status(), OperationStatus::Completed);
        world.wait(7 * 86_400);
        attend(&world, RecordKind::Job).await;
        assert_eq!(world.store.load(&id.into()).await, Ok(None));
        world.wait(23 * 86_400);
        attend(&world, RecordKind::Operation).await;
        assert_eq!(world.store.load(&operation.into()).await, Ok(None));
        assert_eq!(world.fact_count().await, 0);
        for kind in RecordKind::ALL {
            assert_eq!(world.store.earliest_due(kind).await, Ok(None));
        }
    })
    .await;
}

#[tokio::test]
async fn attending_to_a_record_that_another_took_meanwhile_is_refused() {
    on_every_store(async |world| {
        world.dispatched("a").await;
        world.wait(60);
        let slow = world.take_due(RecordKind::Job, "node-b").await;
        world.wait(60);
        let quick = world.take_due(RecordKind::Job, "node-c").await;
        let refused = world.engine.attend(&slow, Arc::from("node-b")).await.unwrap_err();
        assert_eq!(refused.code(), "claim_lost");
        assert_eq!(world.kinds(job("a")).await.len(), 2);
        world.engine.attend(&quick, Arc::from("node-c")).await.unwrap();
        assert_eq!(world.kinds(job("a")).await.last(), Some(&"job.requeued"));
    })
    .await;
}

#[tokio::test]
async fn job_that_runs_again_while_it_is_about_to_be_retired_is_kept() {
    let store = Arc::new(Scripted::default());
    let world = World::on(store.clone());
    world.done(job("a"), create(|new| new.spec.retry.max_attempts = 1)).await;
    world.take(job("a"), "node-a").await;
    world.done(job("a"), dispatch(1, Trigger::Automatic)).await;
    world.done(job("a"), report(1, JobStateName::Failed)).await;
    world.wait(30 * 86_400);
    let taken = world.take_due(RecordKind::Job, "node-b").await;

    let beside =
        Engine::new(store.inner.clone(), world.clock.clone(), Arc::new(RandomIds), Retention::DEFAULT);
    let order = |command: JobCommand| Order::new(job("a"), command, Arc::from("tester"));
    let again = vec![order(dispatch(2, Trigger::Run)), order(report(2, JobStateName::Failed))];
    store.next_commits([Act::LetFirst(beside, again)]);
    let outcome = world.engine.attend(&taken, Arc::from("worker:attend")).await.unwrap();
    assert!(matches!(outcome, Outcome::AlreadySo { .. }), "{outcome:?}");
    assert_eq!(world.state(&job("a")).await, JobStateName::Failed);
}
