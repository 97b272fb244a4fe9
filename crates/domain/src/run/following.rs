//! What the end of a job means for the run that it is a step of: told in the same commit, whoever ended the job and however.

use super::command::{RunCommand, StepEnd};
use super::files::Left;
use crate::job::{self, Job, JobFact, JobState};
use crate::planted::{Bug, planted};
use crate::{Decision, Timestamp};

/// The decision on a job, with what follows from it for its run.
pub(crate) fn following(job: &Job, decision: Decision<JobFact>, now: Timestamp) -> Decision<JobFact> {
    if planted(Bug::StepEndNotTold) {
        return decision;
    }
    let (Some(step), Decision::Facts { facts, .. }) = (&job.spec.step, &decision) else { return decision };
    let mut after = job.clone();
    if facts.iter().any(|fact| job::apply(&mut after, fact, now).is_err()) {
        return decision;
    }
    if after.state == job.state {
        return decision;
    }
    let was_over = job.state.name().is_terminal();
    let command = match step_end(&after) {
        Some(end) => RunCommand::EndStep { visit: step.visit, job_id: job.id.clone(), end },
        None if was_over => RunCommand::ReopenStep { visit: step.visit, job_id: job.id.clone() },
        None => return decision,
    };
    let run_id = step.run_id.clone();
    decision.then(run_id, command)
}

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
