//! Checkpoints of open records: how many facts are kept of what is polled again and again, and when none is written.

use domain::job::{JobStateName, ResultRefs};
use domain::operation::{OperationCommand, PollAnswer, PollHints, ReportedStatus};
use domain::{OperationId, Record};

use crate::world::{World, answers, defer, job, on_every_store};

const CHECKPOINTED: &str = "operation.checkpointed";
const POLLED: &str = "external_production_polled";
const RESOLVED: &str = "external_production_resolved";

/// An answer that the work goes on, another one each time.
fn goes_on(number: u32) -> OperationCommand {
    let progress_hint = Some(format!("page {number}"));
    answers(PollAnswer::Open(ReportedStatus::Running, PollHints { progress_hint, ..PollHints::default() }))
}

fn ends() -> OperationCommand {
    answers(PollAnswer::Completed(ResultRefs::default()))
}

async fn poll(world: &World, id: &OperationId, polls: u32) {
    for number in 1..=polls {
        world.wait(5);
        world.done(id.clone(), goes_on(number)).await;
    }
}

#[tokio::test]
async fn operation_that_is_polled_often_keeps_few_facts_and_ends() {
    const AFTER: u64 = 8;
    on_every_store(async |world| {
        let world = world.checkpointing_after(AFTER);
        let (job, id) = world.deferred("a").await;
        let mut most = 0;
        for _ in 0..100 {
            poll(&world, &id, 1).await;
            let facts = world.store.facts_of(&id.clone().into(), 0, 1_000).await.unwrap();
            most = most.max(facts.len());
        }
        assert_eq!(u64::try_from(most).unwrap(), AFTER);
        let record = world.record(id.clone()).await;
        let operation = record.as_operation().unwrap();
        assert_eq!((operation.polls, operation.progress_hint.as_deref()), (100, Some("page 1")));
        world.wait(5);
        world.done(id.clone(), ends()).await;
        assert_eq!(world.state(&job).await, JobStateName::Completed);
        let kinds = world.kinds(id.clone()).await;
        assert_eq!((kinds[0], kinds.last().copied()), (CHECKPOINTED, Some(RESOLVED)));
        assert!(!world.kinds(job).await.iter().any(|kind| kind.ends_with(".checkpointed")));
        let record = world.record(id).await;
        assert!(matches!(&*record, Record::Operation(operation) if operation.polls == 100));
    })
    .await;
}

#[tokio::test]
async fn checkpoint_comes_first_in_the_commit_that_reaches_the_number() {
    on_every_store(async |world| {
        let world = world.checkpointing_after(4);
        let (_, id) = world.deferred("a").await;
        poll(&world, &id, 2).await;
        assert_eq!(world.kinds(id.clone()).await, ["external_production_dispatched", POLLED, POLLED]);
        poll(&world, &id, 1).await;
        let facts = world.store.facts_of(&id.clone().into(), 0, 10).await.unwrap();
        assert_eq!(facts.iter().map(|fact| fact.version).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(world.kinds(id.clone()).await, [CHECKPOINTED, POLLED]);
        poll(&world, &id, 2).await;
        assert_eq!(world.kinds(id.clone()).await, [CHECKPOINTED, POLLED, POLLED, POLLED]);
        poll(&world, &id, 1).await;
        assert_eq!(world.kinds(id).await, [CHECKPOINTED, POLLED]);
    })
    .await;
}

#[tokio::test]
async fn record_that_ends_where_a_checkpoint_would_be_due_has_none() {
    on_every_store(async |world| {
        let world = world.checkpointing_after(4);
        let (_, id) = world.deferred("a").await;
        poll(&world, &id, 2).await;
        world.wait(5);
        world.done(id.clone(), ends()).await;
        let first = "external_production_dispatched";
        assert_eq!(world.kinds(id.clone()).await, [first, POLLED, POLLED, RESOLVED]);
    })
    .await;
}

#[tokio::test]
async fn new_operation_has_no_checkpoint_and_nor_has_its_job() {
    on_every_store(async |world| {
        let world = world.checkpointing_after(1);
        let (id, _) = world.dispatched("a").await;
        let operation = OperationId::new("op-a");
        world.done(id.clone(), defer(&id, &operation, |_| {})).await;
        assert_eq!(world.kinds(operation.clone()).await, ["external_production_dispatched"]);
        poll(&world, &operation, 3).await;
        assert_eq!(world.kinds(operation).await, [CHECKPOINTED, POLLED]);
        assert_eq!(world.kinds(job("a")).await.len(), 3);
    })
    .await;
}
