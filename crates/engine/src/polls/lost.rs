//! Work outside that does not outlive its daemon: when it is due it is given up instead of asked about, if that daemon is gone.
//!
//! Nothing looks for such work: it is found when it is due, at the latest after the longest wait between two polls.

use std::sync::Arc;

use domain::operation::{Operation, OperationCommand};
use domain::{Command, RecordId};
use store::Taken;

use super::Polls;
use super::question::ACTOR;
use crate::{EngineError, Order, neighbours};

impl Polls {
    /// Gives it up if it went with the daemon that left it outside; whether it did.
    pub(super) async fn gave_up_lost(
        &self,
        taken: &Taken,
        operation: &Operation,
    ) -> Result<bool, EngineError> {
        if !operation.is_volatile() || operation.ended.is_some() {
            return Ok(false);
        }
        let job = self.engine.store().load(&RecordId::Job(operation.link.job_id.clone())).await?;
        let owner = job.as_ref().and_then(|job| operation.ends_with(job.record.as_job()?));
        if let Some(owner) = owner
            && (*owner == self.owner
                || neighbours::live_as(&self.engine, &self.standing, owner, self.timer.now()).await?)
        {
            return Ok(false);
        }
        let command = Command::Operation(OperationCommand::Lose);
        let order = Order::new(taken.id.clone(), command, Arc::from(ACTOR)).under(taken.claim.fence());
        self.engine.execute(order).await.map(|_| true)
    }
}
