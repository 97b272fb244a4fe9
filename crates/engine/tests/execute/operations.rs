//! The view of work outside, beside the facts that it is folded from, read back from each store.

use std::sync::Arc;

use domain::job::{JobStateName, ResultRefs, Retryable};
use domain::operation::{
    Operation, OperationCommand, OperationFact, OperationStatus, Poll, PollAnswer, PollError, PollFailure,
    PollHints, ReportedStatus,
};
use domain::policy::Hint;
use domain::{BodyName, Fact, Jitter, OperationId, Timestamp};
use engine::{Order, OrderBody};
use store::{NewBody, StoredFact, body_ref};

use crate::world::{World, answers, defer, on_every_store, report};

async fn view(world: &World, id: &OperationId) -> Operation {
    let record = world.record(id.clone()).await;
    record.as_operation().unwrap_or_else(|| panic!("{record:?} is no operation")).clone()
}

async fn ledger(world: &World, id: &OperationId) -> Vec<StoredFact> {
    world.store.facts_of(&id.clone().into(), 0, 100).await.unwrap()
}

/// The time of the newest fact that fits.
fn newest(facts: &[StoredFact], fits: impl Fn(&OperationFact) -> bool) -> Option<Timestamp> {
    let fits = |fact: &&StoredFact| matches!(&fact.fact, Fact::Operation(fact) if fits(fact));
    facts.iter().rfind(fits).map(|fact| fact.at)
}

fn hinting(progress_hint: Option<&str>, retry_after: Hint) -> OperationCommand {
    let progress_hint = progress_hint.map(str::to_owned);
    let hints = PollHints { retry_after, progress_hint, ..PollHints::default() };
    answers(PollAnswer::Open(ReportedStatus::Running, hints))
}

fn poll_raises() -> OperationCommand {
    let error =
        PollError { code: "connect_failed".to_owned(), message: String::new(), ..PollError::default() };
    OperationCommand::RecordPoll(Box::new(Poll {
        answer: PollAnswer::NotNow { error, retry_after: domain::policy::Hint::Absent },
        jitter: Jitter(0),
    }))
}

fn fails() -> PollAnswer {
    PollAnswer::Failed(PollFailure {
        failure_detail: "out of paper".to_owned(),
        error_code: Some("no_paper".to_owned()),
        result: ResultRefs::default(),
        retryable: Retryable::No,
    })
}

// conforms: L38 L39 L71
#[tokio::test]
async fn times_of_the_view_are_those_of_the_facts() {
    on_every_store(async |world| {
        world.wait(3);
        let (_, id) = world.deferred("a").await;
        let dispatched = newest(&ledger(&world, &id).await, |f| matches!(f, OperationFact::Dispatched(_)));
        for step in [hinting(None, Hint::Absent), poll_raises(), hinting(None, Hint::Absent)] {
            world.wait(5);
            world.done(id.clone(), step).await;
            let (view, facts) = (view(&world, &id).await, ledger(&world, &id).await);
            assert_eq!(Some(view.dispatched_at), dispatched);
            assert_eq!(view.last_polled_at, newest(&facts, |f| matches!(f, OperationFact::Polled(_))));
        }
        world.wait(5);
        world.done(id.clone(), answers(PollAnswer::Completed(ResultRefs::default()))).await;
        let (view, facts) = (view(&world, &id).await, ledger(&world, &id).await);
        assert_eq!(view.last_polled_at, newest(&facts, |f| matches!(f, OperationFact::Resolved(_))));
        assert_eq!(Some(view.dispatched_at), dispatched);
    })
    .await;
}

// conforms: L36 L40 L42
#[tokio::test]
async fn end_is_set_once_and_says_why_only_when_it_failed() {
    on_every_store(async |world| {
        for (name, first, detail) in [
            ("good", PollAnswer::Completed(ResultRefs::default()), None),
            ("bad", fails(), Some("out of paper")),
        ] {
            let (_, id) = world.deferred(name).await;
            world.wait(5);
            let open = view(&world, &id).await;
            assert_eq!((open.completed_at(), open.failure_detail()), (None, None));
            assert_eq!(open.status(), OperationStatus::Pending);
            world.done(id.clone(), answers(first)).await;
            let resolved = newest(&ledger(&world, &id).await, |f| matches!(f, OperationFact::Resolved(_)));
            for late in [fails(), PollAnswer::Completed(ResultRefs::default()), PollAnswer::TimedOut] {
                world.wait(5);
                world.execute(id.clone(), answers(late)).await.unwrap();
                let ended = view(&world, &id).await;
                assert_eq!(ended.completed_at(), resolved);
                assert_eq!(ended.failure_detail(), detail);
                let status = detail.map_or(OperationStatus::Completed, |_| OperationStatus::Failed);
                assert_eq!(ended.status(), status);
            }
        }
    })
    .await;
}

// conforms: L43
#[tokio::test]
async fn interval_and_hint_are_those_of_the_newest_fact_that_carries_them() {
    on_every_store(async |world| {
        let (_, id) = world.deferred("a").await;
        for (step, hint, interval) in [
            (hinting(Some("page 1"), Hint::Absent), "page 1", 5),
            (hinting(None, Hint::Seconds(30)), "page 1", 30),
            (poll_raises(), "page 1", 30),
            (hinting(Some("page 2"), Hint::Absent), "page 2", 30),
            (hinting(None, Hint::Absent), "page 2", 30),
        ] {
            world.wait(5);
            world.done(id.clone(), step).await;
            let view = view(&world, &id).await;
            assert_eq!((view.progress_hint.as_deref(), view.interval_seconds), (Some(hint), interval));
        }
    })
    .await;
}

// conforms: L37
#[tokio::test]
async fn where_a_job_is_stands_on_the_job_and_ends_with_its_operation_in_one_position() {
    on_every_store(async |world| {
        for (name, answer, state) in [
            ("good", PollAnswer::Completed(ResultRefs::default()), JobStateName::Completed),
            ("bad", fails(), JobStateName::Failed),
        ] {
            let (job, id) = world.deferred(name).await;
            assert_eq!(world.state(&job).await, JobStateName::AwaitingExternal);
            world.wait(5);
            world.done(id.clone(), answers(answer)).await;
            assert_eq!(world.state(&job).await, state);
            let last: Vec<_> =
                world.store.facts_after(0, 100).await.unwrap().into_iter().rev().take(2).collect();
            assert_eq!(last[0].position, last[1].position + 1);
            // What the operation hears later does not move the job.
            world.execute(id, answers(fails())).await.unwrap();
            assert_eq!(world.state(&job).await, state);
        }
    })
    .await;
}

#[tokio::test]
async fn handle_that_comes_after_the_job_moved_on_is_kept_as_an_orphan() {
    on_every_store(async |world| {
        let (id, _) = world.dispatched("a").await;
        let operation = OperationId::new("op-a");
        world.done(id.clone(), report(1, JobStateName::Failed)).await;
        assert_eq!(world.state(&id).await, JobStateName::Queued);

        let mut late = Order::new(id.clone(), defer(&id, &operation, |_| {}), Arc::from("tester"));
        let handle = body_ref(BodyName::Handle, b"render-7");
        let body = NewBody { body: handle, bytes: Arc::from(&b"render-7"[..]) };
        late.bodies = vec![OrderBody { record: operation.clone().into(), body }];
        for _ in 0..2 {
            assert_eq!(world.engine.execute(late.clone()).await.unwrap_err().code(), "stale_attempt");
        }

        let orphan = view(&world, &operation).await;
        assert_eq!(orphan.status(), OperationStatus::Expired);
        assert_eq!(orphan.link.job_id, id);
        let kept = world.store.body(&operation.clone().into(), handle).await;
        assert_eq!(kept, Ok(Some(b"render-7".to_vec())));
        assert_eq!(ledger(&world, &operation).await.len(), 2);
        assert_eq!(world.state(&id).await, JobStateName::Queued);
    })
    .await;
}
