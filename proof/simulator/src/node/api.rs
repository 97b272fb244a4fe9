//! What clients and peers may ask of a node, and how the node answers: thin handlers over the engine.

use std::sync::Arc;

use domain::job::{
    Caller, CancelAnswer, CancelRecipient, CancelTry, Dispatch, Holder, JobCommand, JobStateName, NewJob,
    Reporter, Retryable, Trigger,
};
use domain::operation::PollAnswer;
use domain::{
    AttemptId, BodyName, Claim, Digest, EventId, Fence, JobId, OperationId, OwnerId, Record, RecordId,
    Refusal, RunId,
};
use engine::{EngineError, Evidence, Order, OrderBody, OrderKey};
use store::{IdempotencyKey, KeptKey, NewBody, StoreError, body_ref};

use crate::counters::Sometimes;
use crate::executor::{self, reported};
use crate::heap::{Event, SECOND};
use crate::node::{Node, PEER_LANE};
use crate::poller;
use crate::routed::{self, Publication};
use crate::world::{Filled, Sim};

/// How long a client waits for an answer.
const PATIENCE: i64 = 20 * SECOND;

/// A request.
#[derive(Clone)]
pub enum Ask {
    /// New work.
    Create(Arc<Creation>),
    /// Something has happened that pipelines may listen to.
    Publish(Arc<Publication>),
    /// Stop a run.
    CancelRun(RunId),
    /// Stop a job.
    Cancel(JobId),
    /// Run a job now, or try it again.
    Run(JobId, Trigger),
    /// An answer for a waiting job.
    Answer(JobId),
    /// Where a job is.
    Report(Reported),
    /// A peer takes one job.
    Pull(OwnerId),
    /// Somebody claims one event of those that are left to claimants.
    ClaimEvent(OwnerId),
    /// The holder of a claim settles its event.
    SettleEvent(EventId, Fence),
    /// A peer is alive.
    Heartbeat(JobId, AttemptId, Fence),
    /// A peer answers a cancel.
    CancelAnswer(JobId, AttemptId, CancelAnswer),
    /// A service calls back.
    CallBack(OperationId, PollAnswer),
    /// Delete a job's bodies.
    Purge(JobId),
    /// A worker that is mistaken about the time says that a job's time, or its cancel's, is over.
    TimeOver(JobId),
}

/// New work, as its client names it.
pub struct Creation {
    /// The key, if the client gives one.
    pub key: Option<IdempotencyKey>,
    /// What is asked for.
    pub new: NewJob,
    /// The request body.
    pub body: NewBody,
}

/// A report on a job.
#[derive(Clone)]
pub struct Reported {
    /// The job.
    pub job: JobId,
    /// The attempt; none for unmanaged work.
    pub attempt: Option<AttemptId>,
    /// The state.
    pub state: JobStateName,
    /// The result.
    pub result: Option<NewBody>,
    /// Whether a failure may be tried again.
    pub retryable: Retryable,
    /// Who reports.
    pub by: Reporter,
}

/// The peers, who pull under one name.
pub fn peers() -> Caller {
    Caller { token: "peers".to_owned(), peer: None }
}

/// Someone who has seen the id of an attempt that was handed to others.
pub fn intruder() -> Reporter {
    Reporter::Caller(Caller { token: "intruder".to_owned(), peer: None })
}

/// An answer.
#[derive(Clone)]
pub enum Say {
    /// Accepted as this job.
    Created,
    /// This job is the peer's.
    Pulled(JobId, AttemptId, Claim),
    /// The event is theirs, under this claim.
    Claimed(EventId, Claim),
    /// The lease goes on; whether a cancel is pending.
    Beat(Claim, bool),
    /// Done, or so already.
    Done,
    /// No, and nothing happened.
    No,
    /// Perhaps.
    Unknown,
}

/// Asks some node, and waits for its answer for a while.
pub async fn ask(sim: &Sim, ask: Ask) -> Option<Say> {
    let slot = sim.with(|world| {
        let slot = world.open_slot();
        world.send(ask, Some(slot));
        world.heap.after(PATIENCE, Event::Wake(slot));
        slot
    });
    match sim.wait(slot).await {
        Filled::Said(say) => Some(say),
        Filled::Time | Filled::Answer(_) => None,
    }
}

/// Handles one message.
pub async fn handle(node: &Node, ask: Ask) -> Say {
    match ask {
        Ask::Create(creation) => create(node, &creation).await,
        Ask::Publish(publication) => routed::publish(node, &publication).await,
        Ask::CancelRun(run) => routed::cancel_run(node, run).await,
        Ask::Cancel(job) => {
            let reason = "not needed".to_owned();
            let command = if node.sim.with(|world| world.rng.chance(300)) {
                JobCommand::CancelOrRefuse { by: None, reason }
            } else {
                JobCommand::RequestCancel { by: None, reason }
            };
            give(node, job, command).await
        }
        Ask::Run(job, trigger) => run(node, job, trigger).await,
        Ask::Answer(job) => answer(node, job).await,
        Ask::Report(report) => take_report(node, report).await,
        Ask::Pull(owner) => pull(node, owner).await,
        Ask::ClaimEvent(owner) => routed::claim(node, owner).await,
        Ask::SettleEvent(event, fence) => routed::settle(node, event, fence).await,
        Ask::Heartbeat(job, attempt, fence) => heartbeat(node, job, attempt, fence).await,
        Ask::CancelAnswer(job, attempt_id, answer) => {
            give(node, job, JobCommand::RecordCancelAnswer { attempt_id, answer, release: None }).await
        }
        Ask::CallBack(operation, answer) => {
            poller::call_back(node, operation, answer).await;
            Say::Done
        }
        Ask::Purge(job) => give(node, job, JobCommand::Purge).await,
        Ask::TimeOver(job) => {
            give(node, job.clone(), JobCommand::TimeOutCancel).await;
            give(node, job, JobCommand::Expire).await
        }
    }
}

async fn create(node: &Node, creation: &Creation) -> Say {
    if let Some(key) = &creation.key {
        match node.store().key(key).await {
            Ok(Some(kept)) => return replay(node, creation, &kept),
            Ok(None) => {}
            Err(_) => return Say::Unknown,
        }
    }
    let job = node.ids().job_id();
    let command = JobCommand::Create(Box::new(creation.new.clone()));
    let mut order = Order::new(job.clone(), command, node.actor.clone());
    order.bodies.push(OrderBody { record: job.clone().into(), body: creation.body.clone() });
    order.keys.extend(creation.key.clone().map(|key| OrderKey {
        key,
        request_sha256: creation.digest(),
        keep_until: node.now().plus_seconds(86_400),
        render: Arc::new(|record| record.id().as_str().into()),
    }));
    match node.order(order).await {
        Ok(_) => {
            acknowledge(node, creation, job.into());
            Say::Created
        }
        Err(EngineError::KeyTaken(kept)) => replay(node, creation, &kept),
        Err(error) => no_or_unknown(&error),
    }
}

/// The same request gets the same answer; another request under the same key gets none.
fn replay(node: &Node, creation: &Creation, kept: &KeptKey) -> Say {
    if kept.request_sha256 != creation.digest() {
        node.sim.with(|world| world.counters.saw(Sometimes::KeyReusedForAnother));
        return Say::No;
    }
    node.sim.with(|world| world.counters.saw(Sometimes::KeyReplayed));
    acknowledge(node, creation, kept.record.clone());
    Say::Created
}

fn acknowledge(node: &Node, creation: &Creation, record: RecordId) {
    let Some(key) = &creation.key else { return };
    node.sim.with(|world| {
        let held =
            world.store.inspect(|tables| world.check.acknowledge(tables, key, record, creation.body.body));
        world.require(held);
    });
}

/// A new attempt on demand: under a claim of this node, which then does the work.
async fn run(node: &Node, job: JobId, trigger: Trigger) -> Say {
    let id: RecordId = job.into();
    let Some(slot) = node.slot() else { return Say::No };
    node.will_attend();
    let taken = match node.store().take(&id, node.take(1)).await {
        Ok(taken) => taken,
        Err(StoreError::ClaimHeld | StoreError::UnknownRecord) => return Say::No,
        Err(_) => return Say::Unknown,
    };
    let Some(mut held) = executor::begin(node, taken, trigger).await else { return Say::No };
    let unassigned = node.sim.with(|world| {
        let job = world.check.record(&id).and_then(Record::as_job);
        job.is_some_and(|job| job.spec.executor.is_none())
    });
    if unassigned {
        let command = executor::report(&held.attempt, JobStateName::Unavailable, None, Retryable::No);
        let order = Order::new(id, command, node.actor.clone()).under(held.claim.fence());
        return node.order(order).await.map_or_else(|error| no_or_unknown(&error), |_| Say::Done);
    }
    let worker = node.clone();
    node.spawn(async move {
        executor::perform(&worker, &mut held).await;
        drop(slot);
    });
    Say::Done
}

async fn answer(node: &Node, job: JobId) -> Say {
    let bytes: Arc<[u8]> = Arc::from(&b"{\"answer\":42}"[..]);
    let body = body_ref(BodyName::Answer, &bytes);
    let mut order = Order::new(job.clone(), JobCommand::Answer { answer: body }, node.actor.clone());
    order.bodies.push(OrderBody { record: job.into(), body: NewBody { body, bytes } });
    settle(node, order).await
}

async fn take_report(node: &Node, report: Reported) -> Say {
    let attempt = report.attempt.clone();
    let command = reported(report.attempt, report.state, report.result.as_ref(), report.retryable, report.by);
    let mut order = Order::new(report.job.clone(), command, node.actor.clone());
    let record: RecordId = report.job.clone().into();
    order.bodies.extend(report.result.map(|body| OrderBody { record, body }));
    let (answer, evidence) = node.order_with_evidence(order).await;
    if let (Err(EngineError::Refused(Refusal::StaleAttempt | Refusal::Terminal { .. })), Some(attempt)) =
        (&answer, &attempt)
    {
        note_stale(node, &report.job, attempt, evidence);
    }
    answer.map_or_else(|error| no_or_unknown(&error), |_| Say::Done)
}

/// A stale report that left no evidence is counted, as the server does it.
fn note_stale(node: &Node, id: &JobId, attempt: &AttemptId, evidence: Evidence) {
    let counts = node.sim.with(|world| {
        let Some(Record::Job(job)) = world.check.record(&id.clone().into()) else { return false };
        let counts = job.counts_stale_report(attempt);
        if job.attempts.iter().any(|one| one.id == *attempt) {
            world.check.refused_as_stale(id.clone().into(), evidence);
        }
        counts && evidence == Evidence::None
    });
    if counts {
        node.stale_reports.note(id);
    }
}

/// A peer pulls: the claim is its own, taken in its name.
async fn pull(node: &Node, owner: OwnerId) -> Say {
    node.will_attend();
    let Ok(taken) = node.store().take_ready(PEER_LANE.into(), node.take_for(owner.clone(), 1)).await else {
        return Say::Unknown;
    };
    let Some(taken) = taken.into_iter().next() else { return Say::No };
    let RecordId::Job(job) = taken.id.clone() else { return Say::No };
    let resumed = node.sim.with(|world| match world.check.record(&taken.id) {
        Some(Record::Job(job)) if job.resume_pending => job.last_attempt().map(|attempt| attempt.id.clone()),
        Some(_) | None => None,
    });
    let attempt_id = resumed.clone().unwrap_or_else(|| node.ids().attempt_id());
    let under = |command| Order::new(job.clone(), command, node.actor.clone()).under(taken.claim.fence());
    let begin = match resumed {
        Some(attempt_id) => JobCommand::Resume { attempt_id },
        None => {
            let attempt_id = attempt_id.clone();
            JobCommand::Dispatch(Dispatch {
                attempt_id,
                owner,
                trigger: Trigger::Automatic,
                holder: Holder::Caller(peers()),
            })
        }
    };
    if let Err(error) = node.order(under(begin)).await {
        if matches!(error, EngineError::Refused(_)) {
            let _ = node.attend(&taken).await;
        }
        return no_or_unknown(&error);
    }
    // The peer has it once it is told; if this fails, its first heartbeat says so.
    let _ = node.order(under(JobCommand::Deliver { attempt_id: attempt_id.clone() })).await;
    Say::Pulled(job, attempt_id, taken.claim)
}

async fn heartbeat(node: &Node, job: JobId, attempt_id: AttemptId, fence: Fence) -> Say {
    let id: RecordId = job.clone().into();
    let beat = JobCommand::Heartbeat { attempt_id: attempt_id.clone(), by: Reporter::Caller(peers()) };
    let order = Order::new(job.clone(), beat, node.actor.clone());
    let cancels = match node.order(order).await {
        Ok(outcome) => matches!(&**outcome.record(), Record::Job(job) if job.cancel.is_some()),
        Err(error) => return no_or_unknown(&error),
    };
    if cancels {
        // The answer tells the peer.
        node.sim.with(|world| world.check.sends_cancel(id.clone()));
        let tried = CancelTry::sent_to(CancelRecipient::Worker);
        give(node, job, JobCommand::RecordCancelTry { attempt_id, tried }).await;
    }
    match node.renew(&id, fence).await {
        Ok(claim) => Say::Beat(claim, cancels),
        Err(StoreError::Fenced) => Say::No,
        Err(_) => Say::Unknown,
    }
}

async fn give(node: &Node, job: JobId, command: JobCommand) -> Say {
    settle(node, Order::new(job, command, node.actor.clone())).await
}

async fn settle(node: &Node, order: Order) -> Say {
    node.order(order).await.map_or_else(|error| no_or_unknown(&error), |_| Say::Done)
}

/// What the giver of an order that failed is told.
pub fn no_or_unknown(error: &EngineError) -> Say {
    match error {
        EngineError::Refused(_) | EngineError::KeyTaken(_) => Say::No,
        EngineError::Contended | EngineError::TooManyConsequences | EngineError::Store(_) => Say::Unknown,
    }
}

impl Creation {
    fn digest(&self) -> Digest {
        self.body.body.sha256
    }
}
