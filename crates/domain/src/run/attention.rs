//! When a run next needs someone: to prepare what waits, to go on with a cancel, and to be forgotten.

use super::command::RunCommand;
use super::fact::RunEnd;
use super::state::Run;
use crate::attention::{Attention, Retention};
use crate::{Jitter, Timestamp};

impl Run {
    /// What the agenda must know of this run. While its jobs are at work it needs nobody.
    pub fn attention(&self, retention: Retention) -> Attention {
        match self.forgotten_at(retention) {
            Some(at) => Attention::waiting(Some(at)),
            None => {
                let is_due = self.waiting().next().is_some() || self.not_yet_cancelled().next().is_some();
                let due_at = is_due.then_some(self.updated_at);
                Attention { due_at, ..Attention::waiting(None) }
            }
        }
    }

    /// What time alone brings about; what waits in it is prepared by whoever advances runs.
    pub fn due_command(
        &self,
        retention: Retention,
        _: impl FnOnce() -> Jitter,
        now: Timestamp,
    ) -> Option<RunCommand> {
        if self.not_yet_cancelled().next().is_some() {
            return Some(RunCommand::ContinueCancel);
        }
        self.forgotten_at(retention).is_some_and(|at| at <= now).then_some(RunCommand::Retire)
    }

    fn forgotten_at(&self, retention: Retention) -> Option<Timestamp> {
        let seconds = match self.end? {
            RunEnd::Completed => retention.completed_seconds,
            RunEnd::Failed | RunEnd::Cancelled => retention.other_seconds,
        };
        self.ended_at.map(|at| at.plus_seconds(seconds))
    }
}
