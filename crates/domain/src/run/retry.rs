//! Which steps of a run may be tried again: those that failed, as long as the run has not gone on from their failure.

use super::{Run, RunCommand, StepEnd, decide};
use crate::{Decision, JobId, Timestamp};

/// Why no step of a run may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRetry {
    /// No step has failed.
    NothingFailed,
    /// The run was stopped, or has gone on from what failed.
    MovedOn,
}

/// The jobs of the steps that may be tried again.
pub fn retryable_jobs(run: &Run, now: Timestamp) -> Result<Vec<JobId>, NoRetry> {
    let mut has_failed = false;
    let mut jobs = Vec::new();
    for (visit, seen) in run.numbered() {
        match seen.end() {
            Some(StepEnd::Failed { .. } | StepEnd::Cancelled) => has_failed = true,
            Some(StepEnd::Completed { .. } | StepEnd::Skipped) | None => continue,
        }
        let Some(job_id) = seen.job_id().cloned() else { continue };
        let command = RunCommand::ReopenStep { visit, job_id: job_id.clone() };
        if matches!(decide(run, &command, now), Decision::Facts { .. }) {
            jobs.push(job_id);
        }
    }
    match (jobs.is_empty(), has_failed) {
        (false, _) => Ok(jobs),
        (true, true) => Err(NoRetry::MovedOn),
        (true, false) => Err(NoRetry::NothingFailed),
    }
}
