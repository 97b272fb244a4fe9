//! An attempt that someone outside makes: it begins when the job is handed out, and lives as long as its doer is heard of.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::attention::{Holding, Retention};
use domain::job::{
    CancelRecipient, CancelRequest, CancelTry, Dispatch, Holder, Job, JobCommand, JobState, Reporter, Trigger,
};
use domain::record::decide;
use domain::{AttemptId, Claim, Command, Decision, JobId, OwnerId, Record, RecordId, Refusal};
use store::{StoreError, Take, Taken};
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
    /// Waits for a job and begins an attempt; none if enough time has passed before that, or if the puller may not have it any more
    /// when it comes. Whoever stops waiting gets nothing.
    pub async fn pull<A: Future<Output = bool>>(
        self: &Arc<Self>,
        puller: Puller,
        enough: impl Future<Output = ()>,
        still_admitted: impl Fn() -> A,
    ) -> Result<Option<Handed>, EngineError> {
        tokio::pin!(enough);
        loop {
            // Once something was taken no time is too short for it: the attempt would be lost.
            let taken = tokio::select! {
                taken = self.take(puller.owner.clone(), puller.lanes.clone()) => taken?,
                () = &mut enough => return Ok(None),
            };
            let held = self.held(taken);
            if !still_admitted().await {
                return Ok(None);
            }
            if let Some(handed) = self.handed(&puller, held.keep()).await? {
                return Ok(Some(handed));
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
            holder: Holder::Caller(puller.caller.clone()),
        };
        let mut order = Order::new(taken.id.clone(), JobCommand::Dispatch(dispatch), puller.actor.clone())
            .under(taken.claim.fence());
        order.then = vec![Command::Job(JobCommand::Deliver { attempt_id: attempt_id.clone() })];
        let record = self.engine.execute(order).await?.record().clone();
        self.handed.fetch_add(1, Ordering::Relaxed);
        Ok(Handed { record, attempt_id, claim: taken.claim.clone() })
    }

    /// The doer of the current attempt is alive: its lease is renewed, and delivered work has started. Of a cancel it hears with the
    /// answer, and the record says so before it is given.
    pub async fn heartbeat(
        &self,
        job_id: &JobId,
        attempt_id: &AttemptId,
        actor: &Arc<str>,
        by: Reporter,
    ) -> Result<Beat, EngineError> {
        let beat = self.beat(job_id, attempt_id, actor, by).await?;
        if job(&beat.record)?.cancel.as_ref().is_none_or(CancelRequest::was_sent) {
            return Ok(beat);
        }
        let tried = CancelTry::sent_to(CancelRecipient::Worker);
        let command = JobCommand::RecordCancelTry { attempt_id: attempt_id.clone(), tried };
        match self.engine.execute(Order::new(job_id.clone(), command, actor.clone())).await {
            Ok(outcome) => Ok(Beat { record: outcome.record().clone(), ..beat }),
            // A worker that must stop hears so all the same.
            Err(error) => {
                tracing::warn!(record = %job_id, code = error.code(), "told cancel not written down: {error}");
                Ok(beat)
            }
        }
    }

    async fn beat(
        &self,
        job_id: &JobId,
        attempt_id: &AttemptId,
        actor: &Arc<str>,
        by: Reporter,
    ) -> Result<Beat, EngineError> {
        let id = RecordId::from(job_id.clone());
        let command = Command::Job(JobCommand::Heartbeat { attempt_id: attempt_id.clone(), by });
        for _ in 0..MAX_LOOKS {
            let loaded = self.engine.store().load(&id).await?.ok_or(Refusal::UnknownRecord)?;
            let now = self.engine.clock().now();
            let decision = decide(Some(&loaded.record), &id, &command, now);
            if let Decision::Refused { refusal, .. } = decision {
                return Err(refusal.into());
            }
            let held = job(&loaded.record)?.attention(Retention::DEFAULT).holding;
            let (Holding::LeaseBound, Some(claim)) = (held, loaded.claim) else {
                return Ok(Beat { record: loaded.record, claim: None });
            };
            let renewed = match self.prolong(&id, job(&loaded.record)?, &claim).await {
                Ok(renewed) => renewed,
                // Someone has just written or taken it: the record says what that means.
                Err(EngineError::Store(StoreError::Fenced | StoreError::ClaimHeld)) => continue,
                Err(error) => return Err(error),
            };
            let record = match decision {
                Decision::Facts { .. } => {
                    let order = Order::new(id.clone(), command, actor.clone());
                    self.engine.execute(order).await?.record().clone()
                }
                Decision::Nothing | Decision::Refused { .. } => loaded.record,
            };
            return Ok(Beat { record, claim: Some(renewed) });
        }
        Err(EngineError::Contended)
    }

    /// Renews the claim of a doer from outside. What a node has handed over becomes the doer's own; what a node does itself it
    /// renews itself, and what another has found to be late is not for others to prolong.
    async fn prolong(&self, id: &RecordId, job: &Job, claim: &Claim) -> Result<Claim, EngineError> {
        if claim.owner.outside_name().is_some() {
            return Ok(self.renew(id, claim.fence(), self.lease).await?);
        }
        let attempt = job.last_attempt().filter(|attempt| attempt.owner == claim.owner);
        let attempt = attempt.ok_or(Refusal::ClaimLost)?;
        if job.state != JobState::Delivered {
            return Ok(claim.clone());
        }
        let (store, now) = (self.engine.store(), self.engine.clock().now());
        store.hand_back(id, claim.fence(), now, self.lease.expires_at(now)).await?;
        // Claims are shown to others: the name does not tell the attempt's id.
        let owner = OwnerId::outside(&format!("{}.{}", job.id, attempt.number));
        let taken = store.take(id, Take::by(owner, now, self.lease, 1)).await?;
        self.attend_to_end_of(&taken);
        Ok(taken.claim)
    }
}

pub(super) fn job(record: &Record) -> Result<&Job, EngineError> {
    record.as_job().ok_or_else(|| Refusal::WrongRecordKind.into())
}
