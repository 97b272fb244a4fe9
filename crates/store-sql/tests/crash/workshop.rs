//! Work through the engine, each step with what its acknowledgement promises.

use std::sync::Arc;

use domain::attention::Retention;
use domain::job::{
    AfterExternal, Details, Dispatch, Holder, JobCommand, JobSpec, JobStateName, LeftBy, NewJob, Report,
    Reporter, ResultRefs, Retryable, SubmitWord, Trigger,
};
use domain::operation::{Cancelability, NewOperation, OperationCommand, Poll, PollAnswer};
use domain::policy::{Hint, KindPolicy};
use domain::{
    AttemptId, BodyName, Command, Digest, Fence, Jitter, JobId, Lease, OperationId, OwnerId, RecordId,
    RetryPolicy, Timestamp,
};
use engine::{Engine, EngineError, Order, OrderBody, OrderKey, Outcome, RandomIds, SystemClock};
use store::{IdempotencyKey, NewBody, Store, Take, body_ref};

use crate::promises::Promise;

const LANE: &str = "render";

/// An engine that works under one name.
#[derive(Clone)]
pub struct Workshop {
    pub engine: Engine,
    owner: OwnerId,
}

impl Workshop {
    pub fn on(store: Arc<dyn Store>, newest_fact: Timestamp) -> Self {
        let clock = Arc::new(SystemClock::starting_at(newest_fact));
        let engine = Engine::new(store, clock, Arc::new(RandomIds), Retention::DEFAULT);
        Self { engine, owner: OwnerId::new("node-1") }
    }

    fn store(&self) -> &dyn Store {
        self.engine.store()
    }

    fn now(&self) -> Timestamp {
        self.engine.clock().now()
    }

    async fn execute(&self, order: Order) -> Result<Vec<Promise>, EngineError> {
        let record = order.record.clone();
        let bodies: Vec<Promise> =
            order.bodies.iter().map(|body| Promise::Body(body.record.clone(), body.body.body)).collect();
        let keys: Vec<Promise> =
            order.keys.iter().map(|key| Promise::Key(record.clone(), key.key.clone())).collect();
        let outcome = self.engine.execute(order).await?;
        assert!(matches!(outcome, Outcome::Changed { .. }), "nothing changed: {outcome:?}");
        let loaded = self.store().load(&record).await?;
        let version = loaded.map(|loaded| Promise::Version(record, loaded.head.version));
        Ok(version.into_iter().chain(bodies).chain(keys).collect())
    }

    /// Creates a job with an input of this size and an idempotency key.
    pub async fn create(&self, input_bytes: usize) -> Result<(JobId, Vec<Promise>), EngineError> {
        let id = self.engine.ids().job_id();
        let input: Arc<[u8]> = id.as_str().bytes().cycle().take(input_bytes).collect();
        let body = body_ref(BodyName::Input, &input);
        let new =
            NewJob { spec: JobSpec::plain(Some(LANE), RetryPolicy::ONCE), due_at: None, bodies: vec![body] };
        let mut order = order(id.clone(), JobCommand::Create(Box::new(new)));
        order.bodies = vec![OrderBody { record: id.clone().into(), body: NewBody { body, bytes: input } }];
        order.keys = vec![OrderKey {
            key: IdempotencyKey {
                principal: "token:ada".to_owned(),
                route: "POST /jobs".to_owned(),
                key: id.as_str().to_owned(),
            },
            request_sha256: Digest([0; 32]),
            render: Arc::new(|record| record.id().as_str().into()),
            keep_until: self.now().plus_seconds(86_400),
        }];
        Ok((id, self.execute(order).await?))
    }

    /// Takes one job from the lane.
    pub async fn claim(&self, id: &JobId) -> Result<(Fence, Vec<Promise>), EngineError> {
        self.take(id, Take::by(self.owner.clone(), self.now(), Lease::DEFAULT, 1)).await
    }

    /// The same as a worker does it that dispatches at once: what is promised holds from the next acknowledgement on.
    pub async fn claim_until_next_commit(&self, id: &JobId) -> Result<(Fence, Vec<Promise>), EngineError> {
        self.take(id, Take::by(self.owner.clone(), self.now(), Lease::DEFAULT, 1).until_next_commit()).await
    }

    /// Takes a job as the worker does that attends to what is due, finds nothing to do, and leaves it ready.
    pub async fn look_at(&self, id: &JobId) -> Result<(), EngineError> {
        let take = Take::by(self.owner.clone(), self.now(), Lease::DEFAULT, 1).until_next_commit();
        let taken = self.store().take(&id.clone().into(), take).await?;
        self.engine.attend(&taken, Arc::from("worker:attend_jobs")).await.map(|_| ())
    }

    async fn take(&self, id: &JobId, take: Take) -> Result<(Fence, Vec<Promise>), EngineError> {
        let taken = self.store().take(&id.clone().into(), take).await?;
        let promise = Promise::Claim(taken.id, taken.claim.claim_version);
        Ok((taken.claim.fence(), vec![promise]))
    }

    pub async fn dispatch(&self, id: &JobId, fence: &Fence) -> Result<Vec<Promise>, EngineError> {
        let attempt_id = attempt_of(id);
        let dispatch = Dispatch {
            attempt_id,
            owner: self.owner.clone(),
            trigger: Trigger::Automatic,
            holder: Holder::Daemon,
        };
        self.execute(order(id.clone(), JobCommand::Dispatch(dispatch)).under(fence.clone())).await
    }

    pub async fn complete(&self, id: &JobId, fence: &Fence) -> Result<Vec<Promise>, EngineError> {
        let result: Arc<[u8]> = Arc::from(format!("{{\"of\":\"{id}\"}}").as_bytes());
        let data = body_ref(BodyName::Result, &result);
        let details = Details {
            result: ResultRefs { data: Some(data), ..ResultRefs::default() },
            ..Details::default()
        };
        let report = Report {
            attempt_id: Some(attempt_of(id)),
            state: JobStateName::Completed,
            details,
            retryable: Retryable::No,
            jitter: Jitter(0),
            submit: SubmitWord::Unsaid,
            by: Reporter::Daemon,
        };
        let mut order = order(id.clone(), JobCommand::Report(Box::new(report))).under(fence.clone());
        let body = NewBody { body: data, bytes: result };
        order.bodies = vec![OrderBody { record: id.clone().into(), body }];
        self.execute(order).await
    }

    /// Leaves the job outside, under an operation.
    pub async fn defer(&self, id: &JobId, fence: &Fence) -> Result<Vec<Promise>, EngineError> {
        let operation_id = operation_of(id);
        let operation = NewOperation {
            job_id: id.clone(),
            attempt_id: attempt_of(id),
            kind: "render".to_owned(),
            specialist: "farm".to_owned(),
            circle: None,
            handle: Some(body_ref(BodyName::Handle, b"handle")),
            cancelability: Cancelability::Cancelable,
            retry_after: Hint::Absent,
            fail_after: Hint::Absent,
            action_ttl: Hint::Absent,
            deadline_at: None,
            progress_hint: None,
            policy: KindPolicy::default(),
            jitter: Jitter(0),
            ttl_limit: None,
            external_job_id: None,
        };
        let defer = JobCommand::Defer {
            attempt_id: attempt_of(id),
            operation_id: operation_id.clone(),
            operation: Box::new(operation),
            then: AfterExternal::Finish,
            left_by: LeftBy::Executor,
        };
        let mut order = order(id.clone(), defer).under(fence.clone());
        let body = NewBody { body: body_ref(BodyName::Handle, b"handle"), bytes: Arc::from(&b"handle"[..]) };
        order.bodies = vec![OrderBody { record: operation_id.clone().into(), body }];
        let mut promises = self.execute(order).await?;
        promises.push(Promise::Version(operation_id.into(), 1));
        Ok(promises)
    }

    /// The service has finished: operation and job end together.
    pub async fn resolve(&self, id: &JobId) -> Result<Vec<Promise>, EngineError> {
        let answer = PollAnswer::Completed(ResultRefs::default());
        let poll = OperationCommand::RecordPoll(Box::new(Poll { answer, jitter: Jitter(0) }));
        let mut promises = self.execute(order(operation_of(id), poll)).await?;
        promises.push(Promise::Version(id.clone().into(), 4));
        Ok(promises)
    }

    pub async fn retire(&self, id: &JobId) -> Result<Vec<Promise>, EngineError> {
        self.execute(order(id.clone(), JobCommand::Retire)).await?;
        Ok(vec![Promise::Gone(id.clone().into())])
    }

    /// A job from its creation to its end, in four steps; each is told as soon as it is acknowledged.
    pub async fn whole_job(&self, mut acknowledged: impl FnMut(Vec<Promise>)) -> Result<(), EngineError> {
        let (id, promises) = self.create(300).await?;
        acknowledged(promises);
        let (fence, promises) = self.claim(&id).await?;
        acknowledged(promises);
        acknowledged(self.dispatch(&id, &fence).await?);
        acknowledged(self.complete(&id, &fence).await?);
        Ok(())
    }
}

fn order(id: impl Into<RecordId>, command: impl Into<Command>) -> Order {
    Order::new(id, command, Arc::from("tester"))
}

fn attempt_of(id: &JobId) -> AttemptId {
    AttemptId::new(id.as_str().replace("work-", "attempt-"))
}

fn operation_of(id: &JobId) -> OperationId {
    OperationId::new(id.as_str().replace("work-", "op-"))
}
