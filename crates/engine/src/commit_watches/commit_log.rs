//! Commits in the log: a job that ended without success at `info`, every changed record at `debug`. Ids and codes alone: texts may be private.

use domain::Record;
use domain::job::{Job, JobStateName};
use store::{Commit, Committed};

use crate::CommitWatch;

/// Writes commits to the log.
pub(crate) struct CommitLog;

impl CommitWatch for CommitLog {
    fn committed(&self, commit: &Commit, committed: Committed) {
        for change in &commit.changes {
            let facts = change.facts.len();
            tracing::debug!(record = %change.id, facts, position = committed.position, actor = %commit.actor, "committed");
            if let Record::Job(job) = &*change.record
                && facts > 0
                && let Some(state) = unsuccessful_end(job, commit)
            {
                let (executor, reason) = (job.spec.executor.as_deref(), job.state_reason.as_deref());
                tracing::info!(
                    job = %job.id,
                    executor = executor.unwrap_or("none"),
                    attempts = job.attempt_count,
                    reason = reason.unwrap_or("none"),
                    "job {state}"
                );
            }
        }
    }
}

/// The state in which this commit ended the job, if that is no success.
fn unsuccessful_end(job: &Job, commit: &Commit) -> Option<&'static str> {
    let state = job.state.name();
    let is_unsuccessful =
        matches!(state, JobStateName::Failed | JobStateName::Unavailable | JobStateName::Expired);
    let ended_now = job.completed_at.is_some_and(|ended_at| ended_at >= commit.at);
    (is_unsuccessful && ended_now).then(|| state.as_str())
}
