//! Clients and people: they create work, change their minds, answer questions, and say things twice.
//!
//! They look at the records directly; what they want done goes to a node like any other message.

use std::sync::Arc;

use domain::job::{Holder, Job, JobSpec, JobState, JobStateName, NewJob, Reporter, Retryable, Trigger};
use domain::{BodyName, JobId, Record, RetryPolicy};
use store::{IdempotencyKey, NewBody, body_ref};

use crate::api::{Ask, Creation, Reported, Say, ask, intruder};
use crate::heap::SECOND;
use crate::invariants::{Effect, Produced};
use crate::rng::Rng;
use crate::setting::{MAX_ATTEMPTS, MAX_BACKOFF_SECONDS};
use crate::world::{Sim, World};

/// How often a client asks again when it does not know what came of a create.
const MAX_ASKS: usize = 40;
/// How often people look around after the calm, in microseconds.
const LOOK_EVERY: i64 = 4 * SECOND;

/// Starts the clients of a run: each piece of work at its own time, and the people who steer it.
pub fn start(sim: &Sim) {
    let creations = sim.with(|world| {
        let jobs = world.setting.jobs;
        let mut creations = Vec::new();
        for number in 0..jobs {
            draw_creations(world, number, &mut creations);
        }
        world.busy_clients = creations.len();
        creations
    });
    for (after, creation) in creations {
        sim.spawn(None, submit(sim.clone(), after, creation));
    }
    sim.spawn(None, steer(sim.clone()));
}

/// One piece of work, and sometimes the same or another one under the same key, at once or later.
fn draw_creations(world: &mut World, number: u32, creations: &mut Vec<(i64, Arc<Creation>)>) {
    let last = world.setting.calm_at - 20 * SECOND;
    let after = world.rng.within(0, last);
    let first = Arc::new(draw_creation(world, number, after, Variant::First));
    if first.key.is_some() {
        if world.rng.chance(200) {
            creations.push((after + world.rng.within(0, SECOND), first.clone()));
        }
        if world.rng.chance(150) {
            creations.push((world.rng.within(after, last + SECOND), first.clone()));
        }
        if world.rng.chance(100) {
            let mut other = draw_creation(world, number, after, Variant::Other);
            other.key.clone_from(&first.key);
            creations.push((world.rng.within(after, last + SECOND), Arc::new(other)));
        }
    }
    creations.push((after, first));
}

/// Whether it is the first request under its key, or another one.
#[derive(Clone, Copy, Debug)]
enum Variant {
    First,
    Other,
}

fn draw_creation(world: &mut World, number: u32, after: i64, variant: Variant) -> Creation {
    let at = world.store_time().plus_micros(after);
    let rng = &mut world.rng;
    let executor = rng.pick(&[
        Some("builtin"),
        Some("builtin"),
        Some("outside"),
        Some("outside"),
        Some("outside"),
        Some("peer"),
        Some("peer"),
        None,
    ]);
    let retry = if executor.is_none() {
        RetryPolicy::ONCE
    } else {
        let max_attempts =
            if executor == Some("peer") && rng.chance(600) { 1 } else { rng.count(1, MAX_ATTEMPTS) };
        RetryPolicy {
            max_attempts,
            backoff_seconds: rng.count(1, 10),
            max_backoff_seconds: MAX_BACKOFF_SECONDS,
        }
    };
    let mut spec = JobSpec::plain(executor, retry);
    spec.priority = rng.pick(&[0, 0, 0, 5]);
    // Where the store's time jumps, some are over before they are sent.
    let within = |rng: &mut Rng, seconds| at.plus_seconds(rng.below(seconds) + 1);
    spec.deadline_at = rng.chance(300).then(|| within(rng, 240));
    spec.expires_at = rng.chance(150).then(|| within(rng, 400));
    let due_at = rng.chance(150).then(|| within(rng, 60));
    let bytes: Arc<[u8]> =
        Arc::from(format!("{{\"job\":{number},\"variant\":\"{variant:?}\"}}").into_bytes());
    let body = body_ref(BodyName::Request, &bytes);
    let key = rng.chance(850).then(|| IdempotencyKey {
        principal: "client".to_owned(),
        route: "POST /jobs".to_owned(),
        key: format!("key-{number}"),
    });
    Creation { key, new: NewJob { spec, due_at, bodies: vec![body] }, body: NewBody { body, bytes } }
}

/// Asks until it knows. Without a key nobody may ask twice.
async fn submit(sim: Sim, after: i64, creation: Arc<Creation>) {
    sim.sleep(after).await;
    for _ in 0..MAX_ASKS {
        match ask(&sim, Ask::Create(creation.clone())).await {
            Some(Say::Created | Say::No) => break,
            _ if creation.key.is_none() => break,
            Some(_) | None => sim.doze(SECOND / 2, 5 * SECOND).await,
        }
    }
    sim.with(|world| world.busy_clients -= 1);
}

/// People steer: wildly while things go wrong, sensibly afterwards.
async fn steer(sim: Sim) {
    while !sim.with(|world| world.is_calm()) {
        sim.doze(SECOND / 10, 4 * SECOND).await;
        if let Some(wish) = sim.with(wild_wish) {
            sim.with(|world| world.send(wish, None));
        }
    }
    loop {
        for wish in sim.with(sensible_wishes) {
            sim.with(|world| world.send(wish, None));
        }
        sim.sleep(LOOK_EVERY).await;
    }
}

/// Something that someone may want of a job, right or wrong.
fn wild_wish(world: &mut World) -> Option<Ask> {
    let jobs = world.check.records().filter_map(Record::as_job).count();
    if jobs == 0 {
        return None;
    }
    let chosen = world.rng.index(jobs);
    let job = world.check.records().filter_map(Record::as_job).nth(chosen)?.clone();
    let id = job.id.clone();
    Some(match world.rng.below(22) {
        0..=2 => Ask::Cancel(id),
        3..=4 => Ask::Run(id, Trigger::Run),
        5..=7 => Ask::Run(id, Trigger::Retry),
        8..=10 => Ask::Answer(id),
        11 => Ask::Purge(id),
        20 => Ask::TimeOver(id),
        21 => Ask::Run(id, Trigger::Automatic),
        12..=15 if job.attempts.is_empty() => {
            let state = world.rng.pick(&[
                JobStateName::Running,
                JobStateName::Running,
                JobStateName::AwaitingInput,
                JobStateName::Blocked,
                JobStateName::Completed,
                JobStateName::Failed,
                JobStateName::Expired,
            ]);
            report_as(world, &job, None, state)
        }
        12..=19 => {
            // A copy of a report long past, or of one that comes at the same time as the executor's own.
            let attempt = world.rng.index(job.attempts.len().max(1));
            let attempt = job.attempts.get(attempt).map(|attempt| attempt.id.clone());
            let state = world.rng.pick(&[
                JobStateName::Completed,
                JobStateName::Completed,
                JobStateName::Failed,
                JobStateName::Running,
                JobStateName::Cancelled,
            ]);
            report_as(world, &job, attempt, state)
        }
        _ => return None,
    })
}

/// What brings waiting and unmanaged work to its end.
fn sensible_wishes(world: &mut World) -> Vec<Ask> {
    let open: Vec<Job> = world
        .check
        .records()
        .filter_map(Record::as_job)
        .filter(|job| !job.state.name().is_terminal())
        .cloned()
        .collect();
    open.iter().filter_map(|job| sensible_wish(world, job)).collect()
}

fn sensible_wish(world: &mut World, job: &Job) -> Option<Ask> {
    let managed = !job.attempts.is_empty();
    let nobodys = job.spec.executor.is_none();
    match &job.state {
        JobState::AwaitingInput | JobState::Blocked if managed && !nobodys => {
            Some(Ask::Answer(job.id.clone()))
        }
        JobState::Queued { .. } | JobState::AwaitingInput | JobState::Blocked | JobState::Running
            if !managed && nobodys =>
        {
            Some(report_as(world, job, None, JobStateName::Completed))
        }
        JobState::Queued { .. } | JobState::AwaitingInput | JobState::Blocked if nobodys => {
            Some(Ask::Cancel(job.id.clone()))
        }
        JobState::Running if !managed => Some(report_as(world, job, None, JobStateName::Completed)),
        JobState::AwaitingInput | JobState::Blocked => Some(Ask::Cancel(job.id.clone())),
        JobState::Running if job.resume_pending && nobodys => Some(Ask::Cancel(job.id.clone())),
        JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingExternal { .. }
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Expired
        | JobState::Unavailable { .. } => None,
    }
}

/// A report on a job, with a result if it says that it is done.
pub fn report_as(
    world: &mut World,
    job: &Job,
    attempt: Option<domain::AttemptId>,
    state: JobStateName,
) -> Ask {
    let result = (state == JobStateName::Completed).then(|| produce(world, &job.id, attempt.clone()));
    let by = reporter_of(job, attempt.as_ref());
    Ask::Report(Reported { job: job.id.clone(), attempt, state, result, retryable: Retryable::Yes, by })
}

/// Whoever an attempt was handed to; work without one is reported on by any client.
fn reporter_of(job: &Job, attempt: Option<&domain::AttemptId>) -> Reporter {
    match job.attempts.iter().find(|one| Some(&one.id) == attempt).map(|one| &one.holder) {
        Some(Holder::Caller(caller)) => Reporter::Caller(caller.clone()),
        Some(Holder::Daemon | Holder::Bearer) => Reporter::Daemon,
        None => intruder(),
    }
}

/// The result of an attempt, made outside.
pub fn produce(world: &mut World, job: &JobId, attempt: Option<domain::AttemptId>) -> NewBody {
    let Produced(body) = world.check.produce(Effect { job: job.clone(), attempt, operation: None });
    body
}
