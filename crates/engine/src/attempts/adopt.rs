//! A lease that ended while its attempt was alive: the clock has jumped, or the machine has slept. Whoever attends to the record in the
//! same process leaves it to the attempt, which goes on under the claim that was taken meanwhile.

use domain::{AttemptId, JobId, Record};

use super::Attempts;
use super::run::Attempt;
use crate::locked::Locked;

impl Attempts {
    /// Whether an attempt of this job is alive in this process and keeps its job, whatever became of its lease. Where others could
    /// take over, it does not.
    pub(crate) fn keeps(&self, job_id: &JobId) -> bool {
        !self.standing.is_shared() && self.running.locked().by_job.contains_key(job_id)
    }
}

impl Attempt {
    /// Goes on under the record's claim if that is this process's own and the attempt is still the current one.
    pub(super) async fn adopt(&mut self, attempt_id: &AttemptId) -> bool {
        let Ok(Some(loaded)) = self.attempts.engine.store().load(&self.id).await else { return false };
        let Record::Job(job) = &*loaded.record else { return false };
        let is_current =
            job.last_attempt().is_some_and(|attempt| attempt.id == *attempt_id && attempt.end.is_none());
        let claim =
            loaded.claim.filter(|claim| claim.owner == self.attempts.owner && claim.fence() != self.fence);
        let (true, Some(claim)) = (is_current, claim) else { return false };
        self.fence = claim.fence();
        self.renew_at = self.attempts.timer.now();
        true
    }
}
