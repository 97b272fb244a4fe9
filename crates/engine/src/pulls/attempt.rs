//! An attempt that someone outside makes: it begins when the job is handed out, and lives as long as its doer is heard of.

use std::sync::Arc;

use domain::attention::{Holding, Retention};
use domain::job::{Dispatch, Job, JobCommand, Trigger};
use domain::record::decide;
use domain::{AttemptId, Claim, Command, Decision, JobId, Record, RecordId, Refusal};
use store::{StoreError, Taken};
use tokio::sync::oneshot;

use super::{Puller, Pulls};
use crate::{EngineError, Order};

/// How often a claim that has changed under a heartbeat is looked at again.
const MAX_LOOKS: usize = 4;

/// A job that was handed out.
#[derive(Clone, Debug)]
pub struct Handed {
    /// The job, delivered, or going on with what it waited for.
    pub record: Arc<Record>,
    /// The attempt: the fence of every report.
    pub attempt_id: AttemptId,
    /// The claim.
    pub claim: Claim,
}

/// What a heartbeat brings back.
#[derive(Clone, Debug)]
pub struct Beat {
    /// The job as it is.
    pub record: Arc<Record>,
    /// The claim; none while the job waits for someone else, and nobody need be heard of.
    pub claim: Option<Claim>,
}

impl Pulls {
    /// Waits for a job and begins an attempt. Whoever stops waiting before that gets nothing.
    pub async fn pull(self: &Arc<Self>, puller: Puller) -> Result<Handed, EngineError> {
        loop {
            let taken = self.take(puller.owner.clone(), puller.lanes.clone()).await?;
            if let Some(handed) = self.handed(&puller, taken).await? {
                return Ok(handed);
            }
        }
    }

    /// Begins an attempt of a job that is there now.
    pub async fn pull_now(self: &Arc<Self>, puller: Puller) -> Result<Option<Handed>, EngineError> {
        while let Some(taken) = self.take_now(&puller.owner, &puller.lanes).await? {
            if let Some(handed) = self.handed(&puller, taken).await? {
                return Ok(Some(handed));
            }
        }
        Ok(None)
    }

    /// Begins the attempt; none if something came in between, a cancel for one.
    async fn handed(self: &Arc<Self>, puller: &Puller, taken: Taken) -> Result<Option<Handed>, EngineError> {
        let (told, handed) = oneshot::channel();
        let (pulls, by) = (self.clone(), puller.clone());
        // To its end, even if the puller hangs up meanwhile: the record must say whether there is an attempt.
        self.spawn.spawn(Box::pin(async move { pulls.begin(&by, taken, told).await }));
        match handed.await {
            Ok(Ok(handed)) => Ok(Some(handed)),
            Ok(Err(EngineError::Refused(refusal))) => {
                tracing::debug!(code = refusal.code(), "not handed out: {refusal}");
                Ok(None)
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(EngineError::Contended),
        }
    }

    async fn begin(&self, puller: &Puller, taken: Taken, told: oneshot::Sender<Result<Handed, EngineError>>) {
        if told.is_closed() {
            return self.hand_back(&taken).await;
        }
        let begun = self.dispatch(puller, &taken).await;
        if begun.is_err() {
            self.hand_back(&taken).await;
        }
        let _ = told.send(begun);
    }

    async fn dispatch(&self, puller: &Puller, taken: &Taken) -> Result<Handed, EngineError> {
        let attempt_id = self.engine.ids().attempt_id();
        let dispatch = Dispatch {
            attempt_id: attempt_id.clone(),
            owner: puller.owner.clone(),
            trigger: Trigger::Automatic,
        };
        let mut order = Order::new(taken.id.clone(), JobCommand::Dispatch(dispatch), puller.actor.clone())
            .under(taken.claim.fence());
        order.then = vec![Command::Job(JobCommand::Deliver { attempt_id: attempt_id.clone() })];
        let claim = taken.claim.clone();
        match self.engine.execute(order).await {
            Ok(outcome) => Ok(Handed { record: outcome.record().clone(), attempt_id, claim }),
            Err(EngineError::Refused(Refusal::LeaseHeld { .. })) => self.resume(puller, taken).await,
            Err(error) => Err(error),
        }
    }

    /// What it waited for has come: the same attempt goes on, whoever does it now.
    async fn resume(&self, puller: &Puller, taken: &Taken) -> Result<Handed, EngineError> {
        let loaded = self.engine.store().load(&taken.id).await?.ok_or(Refusal::UnknownRecord)?;
        let attempt = job(&loaded.record)?.last_attempt().ok_or(Refusal::StaleAttempt)?;
        let attempt_id = attempt.id.clone();
        let command = JobCommand::Resume { attempt_id: attempt_id.clone() };
        let order = Order::new(taken.id.clone(), command, puller.actor.clone()).under(taken.claim.fence());
        let outcome = self.engine.execute(order).await?;
        Ok(Handed { record: outcome.record().clone(), attempt_id, claim: taken.claim.clone() })
    }

    /// The doer of the current attempt is alive: its lease is renewed, and delivered work has started.
    pub async fn heartbeat(
        &self,
        job_id: &JobId,
        attempt_id: &AttemptId,
        actor: &Arc<str>,
    ) -> Result<Beat, EngineError> {
        let id = RecordId::from(job_id.clone());
        let command = Command::Job(JobCommand::Heartbeat { attempt_id: attempt_id.clone() });
        for _ in 0..MAX_LOOKS {
            let loaded = self.engine.store().load(&id).await?.ok_or(Refusal::UnknownRecord)?;
            let now = self.engine.clock().now();
            let record = match decide(Some(&loaded.record), &id, &command, now) {
                Decision::Refused { refusal, .. } => return Err(refusal.into()),
                Decision::Nothing => loaded.record,
                Decision::Facts { .. } => {
                    let order = Order::new(id.clone(), command.clone(), actor.clone());
                    self.engine.execute(order).await?.record().clone()
                }
            };
            let held = job(&record)?.attention(Retention::DEFAULT).holding;
            let (Holding::LeaseBound, Some(claim)) = (held, loaded.claim) else {
                return Ok(Beat { record, claim: None });
            };
            match self.engine.store().renew(&id, claim.fence(), now, self.lease).await {
                Ok(renewed) => return Ok(Beat { record, claim: Some(renewed.claim) }),
                // Someone has just written or taken it: the record says what that means.
                Err(StoreError::Fenced) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(EngineError::Contended)
    }
}

fn job(record: &Record) -> Result<&Job, EngineError> {
    match record {
        Record::Job(job) => Ok(job),
        Record::Operation(_) => Err(Refusal::WrongRecordKind.into()),
    }
}
