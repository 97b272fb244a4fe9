//! When a job next needs someone.

use std::sync::Arc;

use super::state::{Job, JobState};
use crate::Timestamp;
use crate::attention::{Attention, Holding, Place, Retention};
use crate::time::earliest;

impl Job {
    /// What the agenda must know of this job.
    pub fn attention(&self, retention: Retention) -> Attention {
        let limit_at = earliest(self.expires_at(), self.cancel.as_ref().map(|cancel| cancel.limit_at));
        match self.state {
            JobState::Queued { due_at } => self.queued(due_at, limit_at),
            JobState::Running if self.resume_pending => self.queued(self.updated_at, limit_at),
            JobState::Running if self.attempts.is_empty() => Attention::waiting(limit_at),
            JobState::Dispatching | JobState::Delivered | JobState::Running => {
                Attention { holding: Holding::LeaseBound, place: None, due_at: limit_at, limit_at }
            }
            JobState::AwaitingInput | JobState::AwaitingExternal { .. } | JobState::Blocked => {
                Attention::waiting(limit_at)
            }
            JobState::Completed => self.kept_for(retention.completed_seconds),
            JobState::Failed | JobState::Cancelled | JobState::Expired | JobState::Unavailable { .. } => {
                self.kept_for(retention.other_seconds)
            }
        }
    }

    fn queued(&self, ready_at: Timestamp, limit_at: Option<Timestamp>) -> Attention {
        let place = Place {
            lane: Arc::from(self.spec.lane()),
            priority: self.spec.priority,
            sequence: self.created_at.micros(),
            ready_at,
        };
        Attention { holding: Holding::Free, place: Some(place), due_at: limit_at, limit_at }
    }

    fn kept_for(&self, seconds: u64) -> Attention {
        let ended_at = self.completed_at.unwrap_or(self.updated_at);
        Attention::waiting(Some(ended_at.plus_seconds(seconds)))
    }
}
