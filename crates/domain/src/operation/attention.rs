//! When an operation next needs someone: to be polled, to be cancelled, to be given up, to be forgotten.

use super::command::OperationCommand;
use super::state::Operation;
use crate::attention::{Attention, Retention};
use crate::time::earliest;
use crate::{Jitter, Timestamp};

impl Operation {
    /// What the agenda must know of this operation.
    pub fn attention(&self, retention: Retention) -> Attention {
        let cancel_at = self.cancel.as_ref().and_then(|cancel| cancel.next_try_at);
        if let Some(ended) = &self.ended {
            let forgotten_at = ended.at.plus_seconds(retention.other_seconds);
            // What may still run outside is asked to stop, and asked about, even after the host has given it up.
            let asked_at = earliest(cancel_at.filter(|_| self.orphan().is_some()), self.late_poll_at());
            return Attention {
                due_at: earliest(Some(forgotten_at), asked_at),
                ..Attention::waiting(Some(forgotten_at))
            };
        }
        let due_at = earliest(Some(self.next_poll_at.min(self.expires_at)), cancel_at);
        Attention { due_at, ..Attention::waiting(Some(self.expires_at)) }
    }

    /// What time alone brings about; a poll that is due is the poller's to make.
    pub fn due_command(
        &self,
        retention: Retention,
        _: impl FnOnce() -> Jitter,
        now: Timestamp,
    ) -> Option<OperationCommand> {
        match &self.ended {
            Some(ended) if ended.at.plus_seconds(retention.other_seconds) <= now => {
                Some(OperationCommand::Retire)
            }
            None if self.expires_at <= now => Some(OperationCommand::Expire),
            Some(_) | None => None,
        }
    }
}
