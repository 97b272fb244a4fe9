//! When a job next needs someone.

use std::sync::Arc;

use super::command::JobCommand;
use super::phase::{Ended, Held, Phase};
use super::state::Job;
use crate::attention::{Attention, Holding, Place, Retention};
use crate::time::earliest;
use crate::{Jitter, Timestamp};

impl Job {
    /// What the agenda must know of this job.
    pub fn attention(&self, retention: Retention) -> Attention {
        let attention = self.by_state(retention);
        match attention.holding {
            Holding::Free if self.attempts.is_empty() && !self.state.name().is_terminal() => {
                Attention { holding: Holding::Claimable, ..attention }
            }
            Holding::Free | Holding::Claimable | Holding::LeaseBound => attention,
        }
    }

    fn by_state(&self, retention: Retention) -> Attention {
        let limit_at = earliest(self.expires_at(), self.cancel_limit_at());
        match self.state.phase() {
            // Nobody may take it.
            Phase::Queued { .. } if self.hold().is_some() => Attention::waiting(limit_at),
            Phase::Queued { due_at } => self.queued(due_at, limit_at),
            Phase::Held(Held::Running) if self.resume_pending && self.cancel.is_some() => {
                Attention::waiting(limit_at)
            }
            Phase::Held(Held::Running) if self.resume_pending => self.queued(self.updated_at, limit_at),
            Phase::Held(Held::Running) if self.attempts.is_empty() => Attention::waiting(limit_at),
            Phase::Held(_) => {
                let limit_at = earliest(limit_at, self.attempt_ends_at());
                let place = Some(self.place(self.created_at));
                Attention { holding: Holding::LeaseBound, place, due_at: limit_at, limit_at }
            }
            Phase::Waiting(_) => Attention::waiting(limit_at),
            Phase::Ended(Ended::Completed) => self.kept_for(retention.completed_seconds),
            Phase::Ended(_) => self.kept_for(retention.other_seconds),
        }
    }

    /// What time alone brings about, for whoever took the job because it was due: the order to give, if any.
    pub fn due_command(
        &self,
        retention: Retention,
        jitter: impl FnOnce() -> Jitter,
        now: Timestamp,
    ) -> Option<JobCommand> {
        let jitter = jitter();
        if self.state.name().is_terminal() {
            let kept_until = self.attention(retention).due_at;
            return kept_until.is_some_and(|until| until <= now).then_some(JobCommand::Retire);
        }
        if self.expires_at().is_some_and(|limit| limit <= now) {
            return Some(JobCommand::Expire);
        }
        if self.cancel_limit_at().is_some_and(|limit| limit <= now) {
            return Some(JobCommand::TimeOutCancel);
        }
        match (self.attention(retention).holding, self.last_attempt()) {
            (Holding::LeaseBound, Some(attempt)) if self.attempt_ends_at().is_some_and(|end| end <= now) => {
                Some(JobCommand::TimeOutAttempt { attempt_id: attempt.id.clone(), jitter })
            }
            (Holding::LeaseBound, Some(attempt)) => {
                Some(JobCommand::LoseLease { attempt_id: attempt.id.clone(), jitter, error: None })
            }
            (Holding::LeaseBound, None) | (Holding::Free | Holding::Claimable, _) => None,
        }
    }

    fn queued(&self, ready_at: Timestamp, limit_at: Option<Timestamp>) -> Attention {
        let place = Some(self.place(ready_at));
        Attention { holding: Holding::Free, place, due_at: limit_at, limit_at }
    }

    /// Steps that begin in one commit are created at one time: they queue as they were begun.
    fn place(&self, ready_at: Timestamp) -> Place {
        Place {
            lane: Arc::from(&*self.spec.lane()),
            priority: self.spec.priority,
            sequence: self.created_at.micros()
                + self.spec.step.as_ref().map_or(0, |step| i64::from(step.ordinal)),
            ready_at,
        }
    }

    fn kept_for(&self, seconds: u64) -> Attention {
        let ended_at = self.completed_at.unwrap_or(self.updated_at);
        Attention::waiting(Some(ended_at.plus_seconds(seconds)))
    }
}
