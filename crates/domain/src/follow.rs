//! What follows from a change of one record for the records that are linked to it, in the same commit, whoever caused the change.
//!
//! The planner asks after every decision, also after those that follow themselves, until nothing more follows: an end reaches the parent, and
//! the end of the parent its own. Pure. What needs bodies or configuration is prepared before the commit (`engine/src/preparation.rs`), and what a
//! command hands on to another record (`Decision::then`) is part of its decision.

use crate::ask::{Ask, AskChange, CloseReason, Closing, DEFAULT_TTL_SECONDS, correlation_id};
use crate::job::{Job, JobFact, JobState};
use crate::planted::{Bug, planted};
use crate::record::Record;
use crate::run::{Left, RunCommand, StepEnd, StepLink};
use crate::{Command, Consequence, Digest, Fact, Timestamp};

/// What has to be known of a record from before its change.
#[derive(Clone, Debug)]
pub struct Before {
    /// The state of a job that is a step.
    step: Option<JobState>,
}

impl Before {
    /// Of a record as it stands; none if there is no record yet.
    pub fn of(record: Option<&Record>) -> Self {
        let step = record.and_then(Record::as_job).filter(|job| job.spec.step.is_some());
        Self { step: step.map(|job| job.state.clone()) }
    }
}

/// What follows from a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeEffects {
    /// What the parent is told.
    pub consequence: Option<Consequence>,
    /// The asks that are opened and closed with it.
    pub asks: Vec<AskChange>,
}

/// What follows from these facts, which made this of the record.
pub fn follow(before: &Before, after: &Record, facts: &[Fact], now: Timestamp) -> ChangeEffects {
    let Some(job) = after.as_job() else { return ChangeEffects::default() };
    let facts = facts.iter().filter_map(Fact::as_job);
    ChangeEffects { consequence: parent_told(before, job), asks: asks_changed(job, facts, now) }
}

fn parent_told(before: &Before, job: &Job) -> Option<Consequence> {
    let step = job.spec.step.as_ref()?;
    let command = command_for_run(before.step.as_ref()?, job, step)?;
    Some(Consequence { record: step.run_id.clone().into(), command: Command::from(command) })
}

/// What the run is told of a job that is one of its steps: that it has ended, or that it is done again after all.
fn command_for_run(before: &JobState, job: &Job, step: &StepLink) -> Option<RunCommand> {
    if job.state == *before || planted(Bug::StepEndNotTold) {
        return None;
    }
    let (visit, job_id) = (step.visit, job.id.clone());
    match step_end(job) {
        Some(end) => Some(RunCommand::EndStep { visit, job_id, end }),
        None if before.name().is_terminal() => Some(RunCommand::ReopenStep { visit, job_id }),
        None => None,
    }
}

/// How a step has ended, if it has.
fn step_end(job: &Job) -> Option<StepEnd> {
    Some(match job.state {
        JobState::Completed => StepEnd::Completed { emitted: job.result.emitted, left: Left::by(job) },
        JobState::Failed | JobState::Expired | JobState::Unavailable { .. } => {
            let code = job.state_reason.clone().unwrap_or_else(|| job.state.name().as_str().to_owned());
            StepEnd::Failed { code }
        }
        JobState::Cancelled => StepEnd::Cancelled,
        JobState::Queued { .. }
        | JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => return None,
    })
}

/// The asks that go with what has happened to a job: one is opened when it is delivered to its peer, and closed with that attempt.
fn asks_changed<'a>(job: &Job, facts: impl Iterator<Item = &'a JobFact>, at: Timestamp) -> Vec<AskChange> {
    let Some(attempt) = job.last_attempt() else { return Vec::new() };
    let (Some(to_peer), Some(id)) = (&job.spec.assigned_peer_id, correlation_id(job, attempt)) else {
        return Vec::new();
    };
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "what neither opens nor ends an attempt changes no ask"
    )]
    let change = |fact: &JobFact| match fact {
        JobFact::Delivered => Some(AskChange::Opened(Box::new(Ask {
            id: id.clone(),
            circle: job.spec.circle.clone(),
            from_peer: job.spec.created_by_peer_id.clone(),
            to_peer: to_peer.clone(),
            text: format!("{} is yours: report under the attempt_id that it shows you", job.id),
            job_id: Some(job.id.clone()),
            reply_to: None,
            asked_by: "longhaul".to_owned(),
            request_sha256: Digest([0; 32]),
            created_at: at,
            expires_at: at.plus_seconds(DEFAULT_TTL_SECONDS),
            closed: None,
        }))),
        // Another attempt goes on with it: what the one before was told is over.
        JobFact::Dispatched { .. } => {
            let before = job.attempts.len().checked_sub(2).and_then(|place| job.attempts.get(place))?;
            correlation_id(job, before).map(|id| over(id, at))
        }
        fact if fact.ends_attempt() => Some(over(id.clone(), at)),
        _ => None,
    };
    facts.filter_map(change).collect()
}

fn over(id: String, at: Timestamp) -> AskChange {
    let closing = Closing { at, reason: CloseReason::FireCompleted, message: None, by: None };
    AskChange::Closed { id, closing }
}

#[cfg(test)]
mod tests;
