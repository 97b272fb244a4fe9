//! Our states in Ductile's words: one table each for jobs and for runs. `skipped` is no status of a job here: what is skipped has none.

use domain::job::{Ended, Job, Phase};
use domain::run::{Run, RunState};

/// Where a job is.
pub(super) fn of_job(job: &Job) -> &'static str {
    match job.state.phase() {
        Phase::Queued { .. } => "queued",
        Phase::Held(_) | Phase::Waiting(_) => "running",
        Phase::Ended(Ended::Completed) => "succeeded",
        Phase::Ended(Ended::Failed) if job.ran_out_of_time() => "timed_out",
        Phase::Ended(Ended::Failed) => "failed",
        Phase::Ended(Ended::Expired) => "timed_out",
        Phase::Ended(Ended::Cancelled | Ended::Unavailable { .. }) => "dead",
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

#[cfg(test)]
mod tests {
    use domain::job::{Details, JobFact, JobSpec, NewJob, apply};
    use domain::{JobId, RetryPolicy, Timestamp};

    use super::*;

    #[test]
    fn job_that_ran_out_of_its_time_is_told_apart_from_one_that_failed() {
        let spec = JobSpec::plain(Some("press"), RetryPolicy::ONCE);
        let new = NewJob { spec, due_at: None, bodies: Vec::new() };
        let after = |fact: Option<JobFact>| {
            let mut job = Job::new(JobId::new("work-1"), &new, Timestamp::from_seconds(1));
            if let Some(fact) = &fact {
                apply(&mut job, fact, Timestamp::from_seconds(2)).unwrap();
            }
            of_job(&job)
        };
        assert_eq!(after(None), "queued");
        assert_eq!(after(Some(JobFact::Started(Details::default()))), "running");
        assert_eq!(after(Some(JobFact::Completed(Details::default()))), "succeeded");
        for (reason, status) in [
            ("timed_out", "timed_out"),
            ("timeout", "timed_out"),
            ("attempt_timed_out", "timed_out"),
            ("plugin_error", "failed"),
        ] {
            assert_eq!(after(Some(JobFact::Failed(Details::because(reason)))), status, "{reason}");
        }
    }
}
