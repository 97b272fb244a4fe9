//! Attempts that someone asked for: run and retry. The claim is taken first, so that exactly one runner gets the job.

use std::sync::Arc;

use domain::job::{Dispatch, Holder, Job, JobCommand, JobState, JobStateName, Trigger};
use domain::record::decide;
use domain::{Command, Decision, JobId, Record, RecordId, Refusal};
use store::{Loaded, StoreError, Take, Taken};
use tokio::sync::oneshot;

use super::Attempts;
use crate::{EngineError, Order, OrderKey};

/// How long the asker waits for the attempt to leave `dispatching`.
const ANSWER_WITHIN_SECONDS: u64 = 10;
/// How often a job that someone else has just taken is looked at again.
const MAX_LOOKS: usize = 8;
/// How long to wait for whoever has just taken it.
const LOOK_AGAIN_AFTER_SECONDS: u64 = 1;

/// Someone asks for an attempt.
#[derive(Clone, Debug)]
pub struct RunOrder {
    /// Who.
    pub actor: Arc<str>,
    /// The idempotency keys that the order uses up.
    pub keys: Vec<OrderKey>,
}

/// Why an attempt begins.
pub(super) enum Origin {
    /// A worker found the job ready.
    Found,
    /// Someone asked, and waits to hear whether it was taken.
    Asked { trigger: Trigger, order: RunOrder, told: oneshot::Sender<Result<Arc<Record>, EngineError>> },
}

impl Attempts {
    /// Runs a job now, whatever its due time. Answers when the attempt has left `dispatching`, or after ten seconds.
    pub async fn run_now(
        self: &Arc<Self>,
        job_id: &JobId,
        trigger: Trigger,
        order: RunOrder,
    ) -> Result<Arc<Record>, EngineError> {
        let (attempts, id) = (self.clone(), RecordId::from(job_id.clone()));
        let (told, answered) = oneshot::channel();
        // Whoever asks may go at any time, as a request does whose client hangs up: a claim that was taken must not be left behind.
        self.spawn.spawn(Box::pin(async move {
            let _ = told.send(attempts.run_asked(id, trigger, order).await);
        }));
        answered.await.unwrap_or(Err(EngineError::Contended))
    }

    async fn run_asked(
        self: Arc<Self>,
        id: RecordId,
        trigger: Trigger,
        order: RunOrder,
    ) -> Result<Arc<Record>, EngineError> {
        if let Some(answered) = self.engine.first_answer(&order.keys).await? {
            return Err(answered);
        }
        if let Some(record) = self.queue_again(&id, trigger, &order).await? {
            return Ok(record);
        }
        let (job, taken) = match self.take_for(&id, trigger).await {
            Ok(taken) => taken,
            Err(error) => return Err(self.engine.first_answer(&order.keys).await?.unwrap_or(error)),
        };
        let mut watched = self.changes.watch(&id);
        let (told, dispatched) = oneshot::channel();
        self.begin(&Arc::from(&*job.spec.lane()), taken, Origin::Asked { trigger, order, told });
        // An attempt that is gone without a word was ended with the process.
        let mut record = dispatched.await.unwrap_or(Err(EngineError::Contended))?;
        let limit = self.timer.now().plus_seconds(ANSWER_WITHIN_SECONDS);
        while is_dispatching(&record) {
            tokio::select! {
                biased;
                newer = watched.next() => record = newer,
                () = self.timer.sleep_until(limit) => break,
            }
        }
        Ok(record)
    }

    /// Work that is pulled goes back to those who pull; none if this node may do it.
    async fn queue_again(
        &self,
        id: &RecordId,
        trigger: Trigger,
        order: &RunOrder,
    ) -> Result<Option<Arc<Record>>, EngineError> {
        let loaded = self.engine.store().load(id).await?.ok_or(Refusal::UnknownRecord)?;
        let Record::Job(job) = &*loaded.record else { return Err(Refusal::WrongRecordKind.into()) };
        if !job.goes_back_to_pullers(trigger) {
            return Ok(None);
        }
        let command = JobCommand::QueueAgain { trigger };
        let mut again = Order::new(id.clone(), command, order.actor.clone());
        again.keys.clone_from(&order.keys);
        Ok(Some(self.engine.execute(again).await?.record().clone()))
    }

    /// Takes the claim of a job that may be run.
    async fn take_for(&self, id: &RecordId, trigger: Trigger) -> Result<(Box<Job>, Taken), EngineError> {
        let store = self.engine.store();
        for _ in 0..MAX_LOOKS {
            let mut watched = self.changes.watch(id);
            let loaded = store.load(id).await?.ok_or(Refusal::UnknownRecord)?;
            let Record::Job(job) = &*loaded.record else { return Err(Refusal::WrongRecordKind.into()) };
            let now = self.timer.now();
            // The rules are asked first: an order that they refuse must not disturb whoever holds the claim.
            if let Decision::Refused { refusal, .. } =
                decide(Some(&loaded.record), id, &self.dispatch_command(trigger), now)
            {
                return Err(refusal.into());
            }
            if let (JobState::Delivered, Some(claim)) = (&job.state, &loaded.claim) {
                // The explicit recovery: whoever has the work and is silent is fenced out.
                match store.hand_back(id, claim.fence(), now, now).await {
                    Ok(()) | Err(StoreError::Fenced) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let take = Take::by(self.owner.clone(), now, self.lease, 1).until_next_commit();
            match store.take(id, take).await {
                Ok(taken) => return Ok((job.clone(), taken)),
                // Whoever claimed it from outside may keep it for long.
                Err(StoreError::ClaimHeld) if is_claimed_outside(&loaded) => {
                    return Err(Refusal::LeaseHeld { state: job.state.name() }.into());
                }
                Err(StoreError::ClaimHeld) => {}
                Err(error) => return Err(error.into()),
            }
            tokio::select! {
                biased;
                _ = watched.next() => {}
                () = self.timer.sleep_until(now.plus_seconds(LOOK_AGAIN_AFTER_SECONDS)) => {}
            }
        }
        Err(EngineError::Contended)
    }

    pub(super) fn dispatch_command(&self, trigger: Trigger) -> Command {
        let attempt_id = self.engine.ids().attempt_id();
        Command::Job(JobCommand::Dispatch(Dispatch {
            attempt_id,
            owner: self.owner.clone(),
            trigger,
            holder: Holder::Daemon,
        }))
    }
}

fn is_claimed_outside(loaded: &Loaded) -> bool {
    loaded.claim.as_ref().is_some_and(|claim| claim.owner.outside_name().is_some())
}

fn is_dispatching(record: &Record) -> bool {
    record.as_job().is_some_and(|job| job.state.name() == JobStateName::Dispatching)
}
