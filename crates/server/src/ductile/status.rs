//! Our states in Ductile's words: one table each for jobs and for runs. `skipped` is no status of a job here: what is skipped has none.

use domain::job::{Job, JobState};
use domain::run::{Run, RunState};

/// Where a job is.
pub(super) fn of_job(job: &Job) -> &'static str {
    match job.state {
        JobState::Queued { .. } => "queued",
        JobState::Dispatching
        | JobState::Delivered
        | JobState::Running
        | JobState::AwaitingInput
        | JobState::AwaitingExternal { .. }
        | JobState::Blocked => "running",
        JobState::Completed => "succeeded",
        JobState::Failed if job.ran_out_of_time() => "timed_out",
        JobState::Failed => "failed",
        JobState::Expired => "timed_out",
        JobState::Cancelled | JobState::Unavailable { .. } => "dead",
    }
}

/// Where a run is.
pub(super) fn of_run(run: &Run) -> &'static str {
    match run.state() {
        RunState::Running | RunState::Cancelling => "running",
        RunState::Completed => "succeeded",
        RunState::Failed => "failed",
        RunState::Cancelled => "dead",
    }
}
