//! A job that was handed out and whose stored input is damaged: it fails, because no other worker would get the input whole.

use std::sync::Arc;

use domain::RecordId;
use domain::job::{Details, Holder, JobCommand, JobStateName, Report, Reporter, Retryable, SubmitWord};

use super::attempt::job;
use super::{Handed, Pulls};
use crate::kept::Kept;
use crate::{EngineError, Failure, Order};

/// The reason of a failed attempt whose input cannot be read as it was given.
pub(crate) const BODY_DAMAGED: &str = "body_damaged";

impl Pulls {
    /// Ends the attempt that was just begun, with the reason, and without another one.
    pub async fn fail_damaged(&self, handed: &Handed, damage: &str) -> Result<(), EngineError> {
        let id: RecordId = handed.record.id();
        // Only its holder ends an attempt: it is ended in the name of the one who would have got it.
        let by = match job(&handed.record)?.last_attempt().map(|attempt| &attempt.holder) {
            Some(Holder::Caller(caller)) => Reporter::Caller(caller.clone()),
            Some(Holder::Bearer | Holder::Daemon) | None => Reporter::Daemon,
        };
        let mut kept = Kept::of(id.clone());
        let result = kept.failure(Failure::permanent(BODY_DAMAGED, damage));
        let report = Report {
            attempt_id: Some(handed.attempt_id.clone()),
            state: JobStateName::Failed,
            details: Details { result, ..Details::because(BODY_DAMAGED) },
            retryable: Retryable::No,
            jitter: self.engine.ids().jitter(),
            submit: SubmitWord::Unsaid,
            by,
        };
        let command = JobCommand::Report(Box::new(report));
        let mut order =
            Order::new(id, command, Arc::from("worker:hand_out_jobs")).under(handed.claim.fence());
        order.bodies = kept.into_bodies();
        self.engine.execute(order).await.map(|_| ())
    }
}
