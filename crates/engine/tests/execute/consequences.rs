//! Consequences: an order and all that follows from it are one commit, or nothing.

use std::sync::Arc;

use domain::job::{JobCommand, JobStateName, Report, ResultRefs, Trigger};
use domain::limits::KEPT_EVIDENCE;
use domain::operation::PollAnswer;
use domain::policy::KindPolicy;
use domain::{BodyName, Digest, OperationId, RecordId};
use engine::{EngineError, Order, OrderBody, OrderKey};
use store::{IdempotencyKey, KeptKey, NewBody, body_ref};

use crate::scripted::Scripted;
use crate::world::{World, answers, at, create, defer, dispatch, is_awaiting, job, on_every_store, report};

#[tokio::test]
async fn operation_is_accepted_and_its_job_awaits_it_in_one_commit() {
    let store = Arc::new(Scripted::default());
    let world = World::on(store.clone());
    let (id, _) = world.dispatched("a").await;
    store.commits();
    let operation = OperationId::new("op-a");
    let record = world.done(id.clone(), defer(&id, &operation, |_| {})).await;
    assert!(is_awaiting(&record, &operation));

    let commits = store.commits();
    assert_eq!(commits.len(), 1);
    let changed: Vec<&str> = commits[0].changes.iter().map(|change| change.id.as_str()).collect();
    assert_eq!(changed, ["work-a", "op-a"]);
    assert_eq!(world.kinds(operation).await, ["external_production_dispatched"]);
}

#[tokio::test]
async fn job_does_not_await_an_operation_that_was_not_accepted() {
    on_every_store(async |world| {
        let (id, _) = world.dispatched("a").await;
        let before = world.fact_count().await;
        let operation = OperationId::new("op-a");
        let impossible = KindPolicy { max_attempts: 0, ..KindPolicy::default() };
        let refused = world.refused(id.clone(), defer(&id, &operation, |new| new.policy = impossible)).await;
        assert_eq!(refused, "invalid_policy");
        assert_eq!(world.state(&id).await, JobStateName::Dispatching);
        assert_eq!(world.store.load(&operation.into()).await, Ok(None));
        assert_eq!(world.fact_count().await, before);
    })
    .await;
}

#[tokio::test]
async fn answer_of_the_service_ends_operation_and_job_in_one_commit() {
    let store = Arc::new(Scripted::default());
    let world = World::on(store.clone());
    let (id, operation) = world.deferred("a").await;
    store.commits();
    world.wait(5);
    world.done(operation.clone(), answers(PollAnswer::Completed(ResultRefs::default()))).await;
    assert_eq!(world.state(&id).await, JobStateName::Completed);
    let commits = store.commits();
    assert_eq!(commits.len(), 1);
    assert_eq!(commits[0].changes.len(), 2);
}

#[tokio::test]
async fn neither_ends_when_the_store_does_not_take_the_commit() {
    let store = Arc::new(Scripted::default());
    let world = World::on(store.clone());
    let (id, operation) = world.deferred("a").await;
    let before = world.fact_count().await;
    store.next_commits([crate::scripted::Act::Say(store::StoreError::Full)]);
    let refused = world.refused(operation, answers(PollAnswer::Completed(ResultRefs::default()))).await;
    assert_eq!(refused, "store_full");
    assert_eq!(world.state(&id).await, JobStateName::AwaitingExternal);
    assert_eq!(world.fact_count().await, before);
}

#[tokio::test]
async fn job_that_expires_gives_its_operation_up_in_the_same_step() {
    on_every_store(async |world| {
        let id = job("a");
        world.done(id.clone(), create(|new| new.spec.expires_at = Some(at(30)))).await;
        world.take(id.clone(), "node-a").await;
        world.done(id.clone(), dispatch(1, Trigger::Automatic)).await;
        let operation = OperationId::new("op-a");
        world.done(id.clone(), defer(&id, &operation, |_| {})).await;
        world.wait(30);
        world.done(id.clone(), JobCommand::Expire).await;
        assert_eq!(world.state(&id).await, JobStateName::Expired);
        let kinds = world.kinds(operation.clone()).await;
        assert!(kinds.ends_with(&["operation.expired", "operation.cancel_requested"]), "{kinds:?}");
        let facts = world.store.facts_after(0, 100).await.unwrap();
        assert_eq!(facts.iter().rev().take(3).map(|fact| fact.at).collect::<Vec<_>>(), [at(30); 3]);
    })
    .await;
}

#[tokio::test]
async fn stale_report_is_refused_and_kept_as_evidence_up_to_a_limit() {
    on_every_store(async |world| {
        let (id, _) = world.dispatched("a").await;
        world.done(id.clone(), report(1, JobStateName::Failed)).await;
        world.wait(10);
        world.done(id.clone(), dispatch(2, Trigger::Automatic)).await;
        for kept in 1..=KEPT_EVIDENCE {
            assert_eq!(world.refused(id.clone(), report(1, JobStateName::Completed)).await, "stale_attempt");
            assert_eq!(world.kinds(id.clone()).await.len(), 4 + kept);
        }
        assert_eq!(world.kinds(id.clone()).await.last(), Some(&"job.stale_report_kept"));
        // Beyond the limit, and from an attempt that never was this job's, nothing is kept.
        for number in [1, 7] {
            let late = report(number, JobStateName::Completed);
            assert_eq!(world.refused(id.clone(), late).await, "stale_attempt");
            assert_eq!(world.kinds(id.clone()).await.len(), 4 + KEPT_EVIDENCE);
        }
        assert_eq!(world.state(&id).await, JobStateName::Dispatching);
    })
    .await;
}

#[tokio::test]
async fn refused_order_without_evidence_leaves_nothing() {
    on_every_store(async |world| {
        let (id, _) = world.dispatched("a").await;
        let before = world.fact_count().await;
        assert_eq!(world.refused(id.clone(), JobCommand::Purge).await, "not_terminal");
        assert_eq!(world.refused(id.clone(), create(|_| {})).await, "already_exists");
        assert_eq!(world.refused(job("missing"), JobCommand::Purge).await, "unknown_record");
        let for_a_job = RecordId::Operation(OperationId::new("op-a"));
        assert_eq!(world.refused(for_a_job, create(|_| {})).await, "wrong_record_kind");
        assert_eq!(world.fact_count().await, before);
    })
    .await;
}

#[tokio::test]
async fn what_comes_with_an_order_is_written_with_it() {
    on_every_store(async |world| {
        let (id, _) = world.dispatched("a").await;
        let data = body_ref(BodyName::Result, b"{\"pages\":12}");
        let ended = KeptKey {
            key: IdempotencyKey {
                principal: "token:ada".to_owned(),
                route: "PATCH".to_owned(),
                key: "k".to_owned(),
            },
            request_sha256: Digest([1; 32]),
            record: id.clone().into(),
            answer: Arc::from(&b"done"[..]),
            keep_until: at(86_400),
        };
        let JobCommand::Report(mut ending) = report(1, JobStateName::Completed) else { unreachable!() };
        ending.details.result.data = Some(data);
        let order = |report: Box<Report>| {
            let mut order = Order::new(id.clone(), JobCommand::Report(report), Arc::from("worker:render"));
            order.causation_id = Some(Arc::from("event-1"));
            order.correlation_id = Some(Arc::from("order-1"));
            let body = NewBody { body: data, bytes: Arc::from(&b"{\"pages\":12}"[..]) };
            order.bodies = vec![OrderBody { record: id.clone().into(), body }];
            order.keys = vec![OrderKey {
                key: ended.key.clone(),
                request_sha256: ended.request_sha256,
                keep_until: ended.keep_until,
                render: Arc::new(|_| b"done".to_vec()),
            }];
            order
        };
        world.engine.execute(order(ending.clone())).await.unwrap();

        let fact = world.store.facts_of(&id.clone().into(), 2, 1).await.unwrap().remove(0);
        assert_eq!(&*fact.actor, "worker:render");
        assert_eq!(fact.causation_id.as_deref(), Some("event-1"));
        assert_eq!(fact.correlation_id.as_deref(), Some("order-1"));
        let record = RecordId::from(id.clone());
        assert_eq!(world.store.body(&record, data).await.unwrap().unwrap(), b"{\"pages\":12}");
        assert_eq!(world.store.key(&ended.key).await, Ok(Some(ended.clone())));

        // The key is used up: another order under it is told what was answered.
        let mut another = order(ending);
        (another.record, another.command) = (job("b").into(), create(|_| {}).into());
        another.bodies.clear();
        let refused = world.engine.execute(another).await.unwrap_err();
        assert_eq!(refused, EngineError::KeyTaken(Box::new(ended.clone())));
        assert_eq!(world.store.load(&job("b").into()).await, Ok(None));

        world.done(id.clone(), JobCommand::Purge).await;
        assert_eq!(world.store.body(&record, data).await, Ok(None));
    })
    .await;
}
