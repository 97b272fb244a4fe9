//! Idempotency keys and time limits through the engine, over the memory store.

use std::sync::Arc;

use domain::attention::Retention;
use domain::job::{
    Details, Dispatch, Holder, JobCommand, JobSpec, JobStateName, NewJob, Report, Reporter, Retryable,
    SubmitWord, Trigger,
};
use domain::{Digest, Jitter, JobId, Lease, OwnerId, RecordKind, RetryPolicy, Timestamp};
use engine::{Clock, Engine, EngineError, Ids, ManualClock, Order, OrderKey, Outcome, RandomIds};
use store::{IdempotencyKey, MemoryStore, Store, Take};

struct Given {
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    engine: Engine,
}

fn given() -> Given {
    let store = Arc::new(MemoryStore::new());
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_700_000_000)));
    let engine = Engine::new(store.clone(), clock.clone(), Arc::new(RandomIds), Retention::DEFAULT);
    Given { store, clock, engine }
}

impl Given {
    async fn create(&self, deadline_in: Option<u64>) -> JobId {
        let id = RandomIds.job_id();
        let mut spec = JobSpec::plain(Some("printer"), RetryPolicy::ONCE);
        spec.deadline_at = deadline_in.map(|seconds| self.clock.now().plus_seconds(seconds));
        let new = NewJob { spec, due_at: None, bodies: Vec::new() };
        self.order(&id, JobCommand::Create(Box::new(new)), None).await.expect("it is accepted");
        id
    }

    async fn order(
        &self,
        id: &JobId,
        command: JobCommand,
        key: Option<&str>,
    ) -> Result<Outcome, EngineError> {
        let mut order = Order::new(id.clone(), command, Arc::from("test"));
        order.keys.extend(key.map(|key| OrderKey {
            key: IdempotencyKey {
                principal: "test".to_owned(),
                route: "jobs".to_owned(),
                key: key.to_owned(),
            },
            request_sha256: Digest([1; 32]),
            render: Arc::new(|_| b"the first answer".to_vec()),
            keep_until: self.clock.now().plus_seconds(86_400),
        }));
        self.engine.execute(order).await
    }

    fn take(&self, owner: &str) -> Take {
        Take::by(OwnerId::new(owner), self.clock.now(), Lease::DEFAULT, 10)
    }
}

fn dispatch() -> JobCommand {
    let attempt_id = RandomIds.attempt_id();
    JobCommand::Dispatch(Dispatch {
        attempt_id,
        owner: OwnerId::new("a"),
        trigger: Trigger::Run,
        holder: Holder::Daemon,
    })
}

#[tokio::test]
async fn a_repeated_order_gets_its_first_answer_although_it_would_be_refused_by_now() {
    let given = given();
    let id = given.create(None).await;
    given.order(&id, dispatch(), Some("run-1")).await.expect("it may run");
    let again = given.order(&id, dispatch(), Some("run-1")).await.unwrap_err();
    let EngineError::KeyTaken(kept) = again else { panic!("{again}") };
    assert_eq!(&*kept.answer, b"the first answer");
}

#[tokio::test]
async fn an_order_that_changed_nothing_does_not_bite_when_it_comes_again() {
    let given = given();
    let id = given.create(None).await;
    given.order(&id, cancel(), None).await.expect("it is cancelled");
    given.order(&id, JobCommand::Purge, None).await.expect("it is purged");
    let second = given.order(&id, JobCommand::Purge, Some("purge-1")).await.expect("it is so already");
    assert!(matches!(second, Outcome::AlreadySo { .. }));
    let again = given.order(&id, JobCommand::Purge, Some("purge-1")).await.unwrap_err();
    assert_eq!(again.code(), "idempotency_key_taken");
}

#[tokio::test]
async fn a_refused_report_leaves_evidence_and_its_key_unused() {
    let given = given();
    let id = given.create(None).await;
    let JobCommand::Dispatch(first) = dispatch() else { unreachable!() };
    given.order(&id, JobCommand::Dispatch(first.clone()), None).await.expect("it may run");
    given.order(&id, report(&first, JobStateName::Failed), None).await.expect("it failed");
    given.order(&id, dispatch(), None).await.expect("it may run again");
    for _ in 0..2 {
        let late = given.order(&id, report(&first, JobStateName::Completed), Some("late")).await.unwrap_err();
        assert_eq!(late.code(), "stale_attempt");
    }
}

#[tokio::test]
async fn an_owner_that_stays_alive_does_not_push_a_passed_deadline_away() {
    let given = given();
    let id = given.create(Some(30)).await;
    let taken = given.store.take(&id.clone().into(), given.take("a")).await.expect("it is free");
    given.order(&id, dispatch(), None).await.expect("it may run");
    given.clock.advance_seconds(31);
    let now = given.clock.now();
    given
        .store
        .renew(&id.clone().into(), taken.claim.fence(), now, Lease::DEFAULT)
        .await
        .expect("it is alive");
    let due = given.store.take_due(RecordKind::Job, given.take("b")).await.expect("the store answers");
    assert_eq!(due.len(), 1, "the deadline is due although the owner has just renewed");
}

#[tokio::test]
async fn a_claim_that_was_released_cannot_be_renewed() {
    let given = given();
    let id = given.create(None).await;
    let taken = given.store.take(&id.clone().into(), given.take("a")).await.expect("it is free");
    given.order(&id, cancel(), None).await.expect("it is cancelled");
    let renewed = given.store.renew(&id.into(), taken.claim.fence(), given.clock.now(), Lease::DEFAULT).await;
    assert_eq!(renewed.unwrap_err().code(), "claim_lost");
}

#[tokio::test]
async fn whoever_looks_at_a_stale_job_may_put_it_right() {
    let given = given();
    let id = given.create(None).await;
    given.store.take(&id.clone().into(), given.take("a")).await.expect("it is free");
    given.order(&id, dispatch(), None).await.expect("it may run");
    given.clock.advance_seconds(60);
    let taken = given.store.take(&id.into(), given.take("reader")).await.expect("the lease has ended");
    let outcome = given.engine.attend(&taken, Arc::from("reader")).await.expect("it is put right");
    let domain::Record::Job(job) = &**outcome.record() else { panic!("it is a job") };
    assert_eq!(job.state.name(), JobStateName::Unavailable);
}

fn cancel() -> JobCommand {
    JobCommand::RequestCancel { by: None, reason: "enough".to_owned() }
}

fn report(attempt: &Dispatch, state: JobStateName) -> JobCommand {
    JobCommand::Report(Box::new(Report {
        attempt_id: Some(attempt.attempt_id.clone()),
        state,
        details: Details::default(),
        retryable: Retryable::No,
        jitter: Jitter::default(),
        submit: SubmitWord::Unsaid,
        by: Reporter::Daemon,
    }))
}
