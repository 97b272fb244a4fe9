//! Scripted executors: what a node does with a job that it took, under its lease.
//!
//! An executor renews while it works and stops as soon as its claim is lost. What it reports is drawn; a misbehaving
//! one vanishes, renews in the last second, or is done long after its lease.

use domain::job::{
    AfterExternal, CancelAnswer, Details, Dispatch, Holder, Job, JobCommand, JobState, JobStateName, LeftBy,
    Report, Reporter, ResultRefs, Retryable, SubmitWord, Trigger,
};
use domain::operation::{Cancelability, NewOperation};
use domain::policy::Hint;
use domain::{AttemptId, BodyName, Claim, Jitter, JobId, OperationId, Record, RecordId, Refusal};
use engine::{EngineError, Order, OrderBody, Outcome};
use store::{NewBody, StoreError, Taken, body_ref};

use crate::api::{Ask, intruder};
use crate::connector::Connector;
use crate::heap::SECOND;
use crate::invariants::{Effect, Produced};
use crate::node::{Node, job_id};
use crate::script::{Act, Renewal, Script, cancel_answer, renewal_wait};
use crate::world::World;

/// How often a report whose outcome is unknown is given again.
const MAX_REPORTS: usize = 6;

/// A job in the hands of an executor.
pub struct Held {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The claim that it is done under.
    pub claim: Claim,
}

/// Begins an attempt on a job that was taken because it is ready, or goes on with the current one, and does it.
pub async fn run(node: &Node, taken: Taken) {
    if let Some(mut held) = begin(node, taken, Trigger::Automatic).await {
        perform(node, &mut held).await;
    }
}

/// Records the new attempt, or the call of the executor within the current one.
pub async fn begin(node: &Node, taken: Taken, trigger: Trigger) -> Option<Held> {
    let job = job_id(&taken.id)?;
    let resumes = match node.store().load(&taken.id).await {
        Ok(Some(loaded)) => {
            let goes_on = |job: &&Job| job.resume_pending && job.state == JobState::Running;
            let job = loaded.record.as_job().filter(goes_on);
            job.and_then(|job| job.last_attempt()).map(|attempt| attempt.id.clone())
        }
        Ok(None) => return None,
        // Whoever cannot read cannot begin: the record is given back.
        Err(_) => {
            let _ = node.store().hand_back(&taken.id, taken.claim.fence(), node.now(), node.now()).await;
            return None;
        }
    };
    let resumes = resumes.filter(|_| trigger == Trigger::Automatic);
    let is_resumption = resumes.is_some();
    let (attempt, command) = match resumes {
        Some(attempt) => (attempt.clone(), JobCommand::Resume { attempt_id: attempt }),
        None => {
            let attempt = node.ids().attempt_id();
            let owner = taken.claim.owner.clone();
            (
                attempt.clone(),
                JobCommand::Dispatch(Dispatch {
                    attempt_id: attempt,
                    owner,
                    trigger,
                    holder: Holder::Daemon,
                }),
            )
        }
    };
    let order = Order::new(taken.id.clone(), command, node.actor.clone()).under(taken.claim.fence());
    match node.order(order).await {
        // Someone else has resumed it; whoever did may still be at it.
        Ok(Outcome::AlreadySo { .. }) if is_resumption => {
            let _ = node.attend(&taken).await;
            None
        }
        Ok(_) => Some(Held { job, attempt, claim: taken.claim }),
        Err(EngineError::Refused(Refusal::ClaimLost)) => None,
        // It is not for an executor after all; its agenda is brought up to date.
        Err(EngineError::Refused(_)) => {
            let _ = node.attend(&taken).await;
            None
        }
        // Unknown: if it happened, the lease runs out and another attempt follows.
        Err(_) => None,
    }
}

/// Does the work of one call of the executor.
pub async fn perform(node: &Node, held: &mut Held) {
    let id: RecordId = held.job.clone().into();
    let lane = node.sim.with(|world| {
        let job = world.check.record(&id).and_then(Record::as_job);
        job.map(|job| job.spec.lane().into_owned()).unwrap_or_default()
    });
    let script = node.sim.with(|world| Script::draw(world, &lane));
    if script.says_started {
        let beat = JobCommand::Heartbeat { attempt_id: held.attempt.clone(), by: Reporter::Daemon };
        if let Err(EngineError::Refused(_)) = node.order(held.order(node, beat)).await {
            return;
        }
    }
    if node.sim.with(|world| world.rng.chance(INTRUSIONS)) {
        let forged =
            reported(Some(held.attempt.clone()), JobStateName::Completed, None, Retryable::No, intruder());
        let _ = node.order(Order::new(held.job.clone(), forged, node.actor.clone())).await;
    }
    if work(node, held, &id, &script).await.is_ok() {
        finish(node, held, script.act).await;
    }
}

/// How many of a thousand attempts someone else tries to end.
pub const INTRUSIONS: u32 = 50;

/// The claim is lost: whoever holds it now decides.
struct Lost;

/// Works and renews. Stops at once when the claim is lost, or when a cancel was carried out.
async fn work(node: &Node, held: &mut Held, id: &RecordId, script: &Script) -> Result<(), Lost> {
    let mut left = script.work;
    while left > 0 {
        let wait = node.sim.with(|world| renewal_wait(world, script.renewal, &held.claim)).min(left);
        node.sim.sleep(wait).await;
        left -= wait;
        if left == 0 || script.renewal == Renewal::Forgotten {
            continue;
        }
        match node.renew(id, held.claim.fence()).await {
            Ok(claim) => held.claim = claim,
            Err(StoreError::Fenced | StoreError::UnknownRecord | StoreError::ClaimHeld) => return Err(Lost),
            // Perhaps it was renewed and perhaps not: the old fence will tell.
            Err(_) => {}
        }
        if node.sim.with(|world| world.rng.chance(500)) {
            answer_cancel(node, held, id).await?;
        }
    }
    Ok(())
}

/// Looks whether someone wants the work to stop.
async fn answer_cancel(node: &Node, held: &Held, id: &RecordId) -> Result<(), Lost> {
    let Ok(Some(loaded)) = node.store().load(id).await else { return Ok(()) };
    let Record::Job(job) = &*loaded.record else { return Ok(()) };
    if job.cancel.is_none() {
        return Ok(());
    }
    let answer = node.sim.with(|world| cancel_answer(&mut world.rng));
    let stops = answer == CancelAnswer::Cancelled;
    let command = JobCommand::RecordCancelAnswer { attempt_id: held.attempt.clone(), answer, release: None };
    let told = node.order(held.order(node, command)).await;
    if stops || matches!(told, Err(EngineError::Refused(_))) { Err(Lost) } else { Ok(()) }
}

/// Reports how it went, until the answer is known or it makes no sense any more.
async fn finish(node: &Node, held: &Held, act: Act) {
    let Some(mut order) = node.sim.with(|world| closing_order(world, node, held, act)) else { return };
    for _ in 0..MAX_REPORTS {
        match node.order(order.clone()).await {
            Err(EngineError::Refused(Refusal::DeadlineElapsed)) => {
                order = held.order(node, report(&held.attempt, JobStateName::Failed, None, Retryable::No));
            }
            Ok(_) | Err(EngineError::Refused(_) | EngineError::KeyTaken(_)) => return,
            Err(EngineError::Contended | EngineError::TooManyConsequences | EngineError::Store(_)) => {
                node.sim.doze(SECOND / 10, 5 * SECOND).await;
            }
        }
    }
}

fn closing_order(world: &mut World, node: &Node, held: &Held, act: Act) -> Option<Order> {
    let plain = |state, retryable| held.order(node, report(&held.attempt, state, None, retryable));
    Some(match act {
        Act::Complete => {
            let effect =
                Effect { job: held.job.clone(), attempt: Some(held.attempt.clone()), operation: None };
            let Produced(body) = world.check.produce(effect);
            let command = report(&held.attempt, JobStateName::Completed, Some(&body), Retryable::No);
            let mut order = held.order(node, command);
            order.bodies.push(OrderBody { record: held.job.clone().into(), body });
            order
        }
        Act::Fail(retryable) => plain(JobStateName::Failed, retryable),
        Act::AwaitInput => plain(JobStateName::AwaitingInput, Retryable::No),
        Act::Block => plain(JobStateName::Blocked, Retryable::No),
        Act::Unavailable => plain(JobStateName::Unavailable, Retryable::No),
        Act::Defer(then) => defer(world, node, held, then),
        Act::Vanish => return None,
    })
}

/// The work goes on outside. The operation's id follows from the attempt, so that a repeat is the same operation.
fn defer(world: &mut World, node: &Node, held: &Held, then: AfterExternal) -> Order {
    let job = world.check.record(&held.job.clone().into());
    let call = job.map_or(0, |job| job.updated_at().micros());
    let text = held.attempt.as_str().trim_start_matches("attempt-");
    let operation_id = OperationId::new(format!("op-{text}-{call:x}"));
    // The same id is the same work outside: a service that has it already goes on with it.
    let connector = match world.connectors.remove(&operation_id) {
        Some(connector) => connector,
        None => begin_outside(world, &held.job, &held.attempt, &operation_id),
    };
    let handle: std::sync::Arc<[u8]> = std::sync::Arc::from(operation_id.as_str().as_bytes());
    let operation = NewOperation {
        job_id: held.job.clone(),
        attempt_id: held.attempt.clone(),
        kind: "outside".to_owned(),
        specialist: "scripted".to_owned(),
        circle: None,
        handle: Some(body_ref(BodyName::Handle, &handle)),
        cancelability: if world.rng.chance(700) {
            Cancelability::Cancelable
        } else {
            Cancelability::NotCancelable("it has no cancel".to_owned())
        },
        retry_after: connector.hint(&mut world.rng),
        fail_after: if world.rng.chance(200) { connector.hint(&mut world.rng) } else { Hint::Absent },
        action_ttl: Hint::Absent,
        deadline_at: None,
        progress_hint: None,
        policy: world.setting.policy(),
        jitter: Jitter(0),
        ttl_limit: None,
        external_job_id: None,
    };
    let body = NewBody { body: body_ref(BodyName::Handle, &handle), bytes: handle };
    world.connectors.insert(operation_id.clone(), connector);
    let command = JobCommand::Defer {
        attempt_id: held.attempt.clone(),
        operation_id: operation_id.clone(),
        operation: Box::new(operation),
        then,
        left_by: LeftBy::Executor,
    };
    let mut order = held.order(node, command);
    order.bodies.push(OrderBody { record: operation_id.into(), body });
    order
}

/// A service takes the work.
pub(crate) fn begin_outside(
    world: &mut World,
    job: &JobId,
    attempt: &AttemptId,
    operation_id: &OperationId,
) -> Connector {
    let effect =
        Effect { job: job.clone(), attempt: Some(attempt.clone()), operation: Some(operation_id.clone()) };
    let connector = Connector::draw(world, effect);
    for after in connector.callbacks(world.heap.now(), &mut world.rng) {
        let answer = connector.end(&mut world.rng);
        world.send_later(Ask::CallBack(operation_id.clone(), answer), after);
    }
    connector
}

impl Held {
    /// An order under the claim that the executor has.
    fn order(&self, node: &Node, command: JobCommand) -> Order {
        Order::new(self.job.clone(), command, node.actor.clone()).under(self.claim.fence())
    }
}

/// A report of an attempt.
pub fn report(
    attempt: &AttemptId,
    state: JobStateName,
    result: Option<&NewBody>,
    retryable: Retryable,
) -> JobCommand {
    reported(Some(attempt.clone()), state, result, retryable, Reporter::Daemon)
}

/// A report of an attempt, or of the doer of unmanaged work.
pub fn reported(
    attempt_id: Option<AttemptId>,
    state: JobStateName,
    result: Option<&NewBody>,
    retryable: Retryable,
    by: Reporter,
) -> JobCommand {
    let result = ResultRefs { data: result.map(|body| body.body), ..ResultRefs::default() };
    let details = Details { result, ..Details::default() };
    JobCommand::Report(Box::new(Report {
        attempt_id,
        state,
        details,
        retryable,
        jitter: Jitter(9_000),
        submit: SubmitWord::Unsaid,
        by,
    }))
}
