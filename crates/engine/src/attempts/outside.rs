//! What an attempt leaves outside: the intent before it gives work to a service, and the operation that follows the work there.

use std::sync::Arc;

use domain::job::{Intent, Job, JobCommand, JobState, JobStateName, LeftBy, Reporter, SubmitWord};
use domain::operation::NewOperation;
use domain::policy::{Hint, KindPolicy, UnknownPolicy};
use domain::{AttemptId, BodyName, OperationId, Record};
use store::sha256;

use super::run::Attempt;
use super::{Attempts, replace};
use crate::hint_text::hint_text;
use crate::kept::Kept;
use crate::{Deferral, EngineError, Intended, Modes, Order, OrderBody, Stop};

impl Attempt {
    /// Writes down what is about to be given to a service. While that cannot be written, it must not be given.
    pub(super) async fn intend(
        &mut self,
        job: &Job,
        attempt_id: &AttemptId,
        asked: crate::Intent,
    ) -> Result<Intended, Stop> {
        let kind = job.spec.executor.clone().unwrap_or_default();
        let again = job.intent.is_some();
        let key =
            job.intent.as_ref().map_or_else(|| call_id(job, attempt_id), |open| open.operation_id.clone());
        let intent = Intent {
            operation_id: key.clone(),
            specialist: self.attempts.specialist(job, &kind),
            kind,
            request: asked.request_sha256,
            resubmit: asked.resubmit,
            not_cancelable: self.attempts.not_cancelable_because(job),
        };
        let command = JobCommand::IntendSubmit { attempt_id: attempt_id.clone(), intent: Box::new(intent) };
        match self.attempts.engine.execute(self.order(command)).await {
            Ok(_) => {
                let intended = Intended { key, again };
                self.intended = Some(intended.clone());
                Ok(intended)
            }
            Err(error) => {
                tracing::info!(record = %self.id, code = error.code(), "nothing given to the service: {error}");
                let stop = why_not(&error);
                // The cancel may not have reached this attempt yet, or was asked for on another node.
                self.stopper.send_if_modified(|current| replace(current, stop));
                Err(stop)
            }
        }
    }

    /// What the executor's word on how it ended says of what was asked of a service. A failure says nothing of what an earlier attempt
    /// asked, whose answer nobody has seen.
    pub(super) fn submit_word(&self, state: JobStateName) -> SubmitWord {
        match &self.intended {
            Some(Intended { again: false, .. }) => SubmitWord::Settled,
            Some(Intended { again: true, .. }) if state == JobStateName::Completed => SubmitWord::Settled,
            Some(Intended { again: true, .. }) | None => SubmitWord::Unsaid,
        }
    }

    /// The order that leaves the work outside, under an operation of its own, in the commit in which the job begins to wait.
    pub(super) fn deferring(&self, job: &Job, attempt_id: &AttemptId, deferral: Deferral) -> Order {
        let operation_id =
            self.intended.as_ref().map_or_else(|| call_id(job, attempt_id), |intended| intended.key.clone());
        let kind = job.spec.executor.clone().unwrap_or_default();
        let (command, bodies) =
            self.attempts.leaving(job, attempt_id, operation_id, kind, deferral, LeftBy::Executor);
        Order { bodies, ..self.order(command) }
    }

    /// The operation is written down; its service may have called before.
    pub(super) async fn look_for_callback(&self) -> Result<(), EngineError> {
        let Some(loaded) = self.attempts.engine.store().load(&self.id).await? else { return Ok(()) };
        if let Record::Job(job) = &*loaded.record
            && let JobState::AwaitingExternal { operation, .. } = &job.state
        {
            self.attempts.wakes.may_be_called_back(operation.clone());
        }
        Ok(())
    }
}

impl Attempts {
    /// The order of whoever pulled a job and has begun work outside, of which an executor of this node knows how it goes: from now
    /// on it is asked here. The same work again is the same operation.
    pub fn leaving_to(
        &self,
        job: &Job,
        attempt_id: &AttemptId,
        executor: &str,
        deferral: Deferral,
        actor: Arc<str>,
        by: Reporter,
    ) -> Order {
        let operation_id = left_id(attempt_id, &deferral.handle);
        let kind = executor.to_owned();
        let (command, bodies) = self.leaving(job, attempt_id, operation_id, kind, deferral, LeftBy::Doer(by));
        Order { bodies, ..Order::new(job.id.clone(), command, actor) }
    }

    /// What leaves the work outside, and the bodies that go with it.
    fn leaving(
        &self,
        job: &Job,
        attempt_id: &AttemptId,
        operation_id: OperationId,
        kind: String,
        deferral: Deferral,
        left_by: LeftBy,
    ) -> (JobCommand, Vec<OrderBody>) {
        let mut kept = Kept::of(operation_id.clone());
        let circle = job.spec.circle.as_deref();
        let executor = self.executors.find(circle, &kind);
        let modes = executor.map_or_else(Modes::default, |executor| executor.modes);
        let (granted, ttl_limit) = self.policy.for_job(circle, &kind, job.life());
        let unknown_policy = if job.spec.allow_restart_recovery {
            UnknownPolicy::RetryUntilExpiry
        } else {
            granted.unknown_policy
        };
        let operation = NewOperation {
            job_id: job.id.clone(),
            attempt_id: attempt_id.clone(),
            handle: Some(kept.keep(BodyName::Handle, deferral.handle)),
            cancelability: deferral.cancelability,
            retry_after: or_else(deferral.retry_after, modes.retry_after),
            fail_after: deferral.fail_after,
            action_ttl: or_else(deferral.action_ttl, modes.max_ttl),
            deadline_at: None,
            progress_hint: deferral.progress_hint.as_deref().map(hint_text),
            policy: KindPolicy { unknown_policy, ..granted },
            ttl_limit: Some(ttl_limit),
            external_job_id: deferral.external_job_id,
            specialist: self.specialist(job, &kind),
            circle: job.spec.circle.clone(),
            kind,
            jitter: self.engine.ids().jitter(),
        };
        let command = JobCommand::Defer {
            attempt_id: attempt_id.clone(),
            operation_id,
            operation: Box::new(operation),
            then: deferral.then,
            left_by,
        };
        (command, kept.into_bodies())
    }

    /// Why what a job gives to its service could not be stopped there, if it could not.
    fn not_cancelable_because(&self, job: &Job) -> Option<String> {
        let (circle, kind) = (job.spec.circle.as_deref(), job.spec.executor.as_deref()?);
        let executor = self.executors.find(circle, kind);
        executor
            .and_then(|executor| executor.specialist.not_cancelable_because())
            .or_else(|| self.policy.for_kind_in(circle, kind).not_cancelable_because().map(str::to_owned))
    }

    fn specialist(&self, job: &Job, kind: &str) -> String {
        let executor = self.executors.find(job.spec.circle.as_deref(), kind);
        executor.map_or_else(String::new, |one| one.specialist.name().into_owned())
    }
}

/// What the attempt is told when its intent was not written down.
fn why_not(error: &EngineError) -> Stop {
    match error {
        EngineError::Refused(domain::Refusal::CancelPending) => Stop::Cancelled,
        EngineError::Refused(_)
        | EngineError::KeyTaken(_)
        | EngineError::Contended
        | EngineError::TooManyConsequences
        | EngineError::Store(_) => Stop::LeaseLost,
    }
}

/// What the service said, else what its executor says of all such work.
fn or_else(said: Hint, usual: Hint) -> Hint {
    match said {
        Hint::Absent => usual,
        Hint::Seconds(_) | Hint::Invalid => said,
    }
}

/// The id of the operation that whoever pulled a job has begun.
fn left_id(attempt_id: &AttemptId, handle: &[u8]) -> OperationId {
    operation_id(&format!("{attempt_id}/left/{}", sha256(handle)))
}

/// The id of the operation that one call of the executor may leave behind: a repeat of the call is the same operation. A later attempt
/// that goes on from an open intent goes on with that one's.
fn call_id(job: &Job, attempt_id: &AttemptId) -> OperationId {
    let call = format!("{attempt_id}/{}", job.updated_at.micros());
    operation_id(&call)
}

fn operation_id(call: &str) -> OperationId {
    let digest = sha256(call.as_bytes()).to_string();
    OperationId::new(format!("op-{}", &digest[..32]))
}
