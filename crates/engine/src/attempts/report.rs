//! The end of an attempt, in one commit with its bodies. A result is not thrown away because the store cannot take it just now.

use domain::job::{AttemptLimit, CancelAnswer, Details, Job, JobCommand, JobStateName, Retryable};
use domain::limit::{LimitValue, NamedLimit};
use domain::{AttemptId, BodyName, Command, Refusal, Timestamp};
use store::StoreError;

use super::run::Attempt;
use crate::kept::Kept;
use crate::pulls::BODY_DAMAGED;
use crate::{EngineError, Failure, Order, Produced, Stop, WorkResult};

/// How long to wait before a report is given again.
const AGAIN_AFTER_SECONDS: u64 = 1;
/// How often what a result starts is looked at anew because somebody else was first.
pub(crate) const MAX_AGAIN: u32 = 8;

impl Attempt {
    /// Reports what came of the attempt, again and again while the store is busy, full or away and the lease is ours.
    pub(super) async fn report(
        &mut self,
        job: &Job,
        attempt_id: &AttemptId,
        produced: Produced,
    ) -> Result<(), EngineError> {
        let deferred = matches!(produced, Produced::Deferred(_));
        let mut followed = match &produced {
            Produced::Completed(output) => Some(output.work_result()),
            Produced::Failed(_)
            | Produced::Unavailable(_)
            | Produced::Delivered
            | Produced::AwaitingInput { .. }
            | Produced::Deferred(_)
            | Produced::SubmitUnknown(_)
            | Produced::Stopped
            | Produced::StoppedWith(_)
            | Produced::Unexpected(_) => None,
        };
        let Some(mut order) = self.closing_order(job, attempt_id, produced) else {
            // Nobody may say how it ended: the next owner decides by the lost lease.
            self.hand_back().await;
            if matches!(*self.stopper.borrow(), Stop::Reported | Stop::LeaseLost) {
                self.record_release(attempt_id).await;
            }
            return Ok(());
        };
        let mut refused = false;
        let mut again = 0;
        loop {
            match self.execute_with(job, attempt_id, followed.as_ref(), &order).await {
                Ok(()) => return Ok(()),
                Err(error) if may_pass(&error) => {
                    tracing::warn!(record = %self.id, code = error.code(), "report not written down yet: {error}");
                }
                // Taken from a live attempt by its own process: see `adopt.rs`.
                Err(EngineError::Refused(Refusal::ClaimLost)) if self.adopt(attempt_id).await => {
                    order.fence = Some(self.fence.clone());
                    continue;
                }
                // What it starts under a key was started by somebody else a moment ago: looked at again, it is a duplicate.
                Err(EngineError::Refused(Refusal::AlreadyExists)) if again < MAX_AGAIN => {
                    again += 1;
                    continue;
                }
                // The record must say why there is no result.
                Err(error) if !refused && (is_about_the_report(&error) || is_damage(&error)) => {
                    refused = true;
                    followed = None;
                    // What was left outside goes on there: only the orphan ledger can say so.
                    self.intended = self.intended.take().filter(|_| !deferred);
                    let reason = if is_damage(&error) { BODY_DAMAGED } else { "report_refused" };
                    let failure = refused_report(reason, &error);
                    let failed = self.closing_order(job, attempt_id, Produced::Failed(failure));
                    order = failed.expect("a failure is always reported");
                    continue;
                }
                Err(error) => {
                    if matches!(error, EngineError::Refused(_)) {
                        self.record_release(attempt_id).await;
                    }
                    return Err(error);
                }
            }
            let now = self.attempts.timer.now();
            self.attempts.timer.sleep_until(now.plus_seconds(AGAIN_AFTER_SECONDS)).await;
            if self.renew_at <= self.attempts.timer.now() && !self.renew().await {
                return Ok(());
            }
            order.fence = Some(self.fence.clone());
        }
    }

    /// Others have ended the attempt while its executor was at work: what became of that is written down when it is seen.
    async fn record_release(&self, attempt_id: &AttemptId) {
        let Some(release) = self.release else { return };
        let command = JobCommand::RecordRelease { attempt_id: attempt_id.clone(), release };
        // Not under the claim: it ended with the attempt.
        let order = Order { fence: None, ..self.order(command) };
        if let Err(error) = self.attempts.engine.execute(order).await {
            tracing::warn!(record = %self.id, code = error.code(), "release of an executor not written down: {error}");
        }
    }

    /// Ends the attempt, and in the same commit what follows from a result: events, and the next steps of a run.
    async fn execute_with(
        &self,
        job: &Job,
        attempt_id: &AttemptId,
        followed: Option<&WorkResult>,
        order: &Order,
    ) -> Result<(), EngineError> {
        let engine = &self.attempts.engine;
        let mut order = order.clone();
        if let Some(result) = followed {
            let fail = |command: &mut Command, failure, kept: &mut Kept| {
                let details = self.failed(failure, kept);
                *command = self.report_of(attempt_id, JobStateName::Failed, details, Retryable::No).into();
            };
            order = engine.with_follow_ups(job, result, order, fail).await?;
        }
        match &job.spec.step {
            Some(step) => engine.report_to(step.run_id.clone().into(), order).await,
            None => engine.execute(order).await.map(|_| ()),
        }
    }

    /// The order that ends the attempt; none if nobody may say how it ended.
    fn closing_order(&mut self, job: &Job, attempt_id: &AttemptId, produced: Produced) -> Option<Order> {
        let stop = *self.stopper.borrow();
        let mut kept = Kept::of(self.id.clone());
        let mut plugin_state = None;
        let command = match produced {
            Produced::Completed(mut output) => {
                plugin_state = output.state.take();
                let (result, release) = (kept.output(output), self.release);
                let details = Details { result, release, ..Details::default() };
                self.report_of(attempt_id, JobStateName::Completed, details, Retryable::Yes)
            }
            Produced::Failed(failure) => {
                let retryable = self.retryable(job, &failure);
                let details = self.failed(failure, &mut kept);
                self.report_of(attempt_id, JobStateName::Failed, details, retryable)
            }
            Produced::Unavailable(failure) => {
                let details = self.failed(failure, &mut kept);
                self.report_of(attempt_id, JobStateName::Unavailable, details, Retryable::No)
            }
            Produced::Delivered => JobCommand::Deliver { attempt_id: attempt_id.clone() },
            Produced::AwaitingInput { question } => {
                let question = kept.keep(BodyName::Question, question);
                let (question, release) = (Some(question), self.release);
                let details = Details { question, release, ..Details::because("input_awaited") };
                self.report_of(attempt_id, JobStateName::AwaitingInput, details, Retryable::No)
            }
            Produced::Deferred(deferral) => return Some(self.deferring(job, attempt_id, deferral)),
            Produced::SubmitUnknown(failure) => self.losing(job, attempt_id, failure, &mut kept),
            Produced::Unexpected(what) => {
                // It says nothing of what it may have left outside.
                self.intended = None;
                let details = self.failed(unexpected(&what), &mut kept);
                self.report_of(attempt_id, JobStateName::Failed, details, Retryable::No)
            }
            Produced::Stopped => match stop {
                Stop::Cancelled => JobCommand::RecordCancelAnswer {
                    attempt_id: attempt_id.clone(),
                    answer: self.stopped_answer(job),
                    release: self.release,
                },
                Stop::TimeOver => {
                    let failure = Failure::transient("timed_out", "the attempt ran out of its time limit")
                        .limited_by(AttemptLimit::Job);
                    self.losing(job, attempt_id, failure, &mut kept)
                }
                Stop::Shutdown | Stop::Reported | Stop::LeaseLost | Stop::GoOn => return None,
            },
            Produced::StoppedWith(failure) => {
                let (state, failure) = match stop {
                    Stop::Cancelled => (JobStateName::Cancelled, failure),
                    Stop::TimeOver => (JobStateName::Failed, failure.limited_by(AttemptLimit::Job)),
                    Stop::Shutdown | Stop::Reported | Stop::LeaseLost | Stop::GoOn => return None,
                };
                let retryable = failure.retryable;
                let details = self.failed(failure, &mut kept);
                self.report_of(attempt_id, state, details, retryable)
            }
        };
        let mut order = self.order(command);
        order.bodies = kept.into_bodies();
        order.plugin_state = plugin_state;
        Some(order)
    }

    /// What an attempt that has stopped as asked says. One whose executor heard nothing of the cancel, and that has asked no service,
    /// has begun nothing; what went before an answer or a result from outside is begun.
    fn stopped_answer(&self, job: &Job) -> CancelAnswer {
        let is_first_call = job.answers.is_empty() && job.result.data.is_none();
        if is_first_call && self.intended.is_none() && !self.was_sent_cancel() {
            CancelAnswer::NeverStarted
        } else {
            CancelAnswer::Cancelled
        }
    }

    /// A failure of which nobody knows what it left outside.
    fn losing(&self, job: &Job, attempt_id: &AttemptId, failure: Failure, kept: &mut Kept) -> JobCommand {
        let not_before = self.not_before(job, &failure);
        let (details, jitter) = (Box::new(self.failed(failure, kept)), self.attempts.engine.ids().jitter());
        JobCommand::LoseSubmit { attempt_id: attempt_id.clone(), details, not_before, jitter }
    }

    fn failed(&self, failure: Failure, kept: &mut Kept) -> Details {
        let reason = Some(failure.reason.clone());
        let limit = failure.limit().cloned().map(Box::new);
        let (result, release) = (kept.failure(failure), self.release);
        Details { reason, limit, result, release, ..Details::default() }
    }

    /// Whether and when a failure may be tried again.
    fn retryable(&self, job: &Job, failure: &Failure) -> Retryable {
        match (failure.retryable, self.not_before(job, failure)) {
            (Retryable::Yes, Some(at)) => Retryable::NotBefore(at),
            (retryable, _) => retryable,
        }
    }

    /// Before when whoever should do it does not want it again: what they hint, within the host's bounds.
    fn not_before(&self, job: &Job, failure: &Failure) -> Option<Timestamp> {
        let kind = job.spec.executor.as_deref().unwrap_or_default();
        let policy = self.attempts.policy.for_kind_in(job.spec.circle.as_deref(), kind);
        policy.not_before(failure.retry_after, self.attempts.engine.ids().jitter(), self.attempts.timer.now())
    }
}

/// Whether the store may take the same report later.
fn may_pass(error: &EngineError) -> bool {
    match error {
        EngineError::Contended => true,
        EngineError::Store(error) => match error {
            StoreError::Busy | StoreError::Full | StoreError::OutcomeUnknown | StoreError::Unavailable(_) => {
                true
            }
            StoreError::Conflict
            | StoreError::Fenced
            | StoreError::ClaimHeld
            | StoreError::UnknownRecord
            | StoreError::KeyTaken(_)
            | StoreError::TooLarge { .. }
            | StoreError::BodyDamaged(_)
            | StoreError::Broken(_) => false,
        },
        EngineError::Refused(_) | EngineError::KeyTaken(_) | EngineError::TooManyConsequences => false,
    }
}

/// Whether what follows from the report needs a stored body that is damaged.
pub(crate) fn is_damage(error: &EngineError) -> bool {
    matches!(error, EngineError::Store(StoreError::BodyDamaged(_)))
}

/// Whether it is the report itself that cannot be: too large, not to be stored, or a move that the state does not have.
pub(crate) fn is_about_the_report(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Refused(
            Refusal::TooLarge { .. }
                | Refusal::NulInJson
                | Refusal::WrongBody { .. }
                | Refusal::TransitionRefused { .. }
        ) | EngineError::Store(StoreError::TooLarge { .. })
            | EngineError::TooManyConsequences
    )
}

/// Why a result is not taken; a part that is too large names its limit.
fn refused_report(reason: &str, error: &EngineError) -> Failure {
    let failure = Failure::permanent(reason, error.to_string());
    if let EngineError::Refused(Refusal::TooLarge { what, limit })
    | EngineError::Store(StoreError::TooLarge { what, limit }) = error
    {
        return failure.limited_by(NamedLimit::fixed(what, LimitValue::Count(*limit as u64)));
    }
    failure
}

/// The one name for an answer that a specialist may not give to `produce`.
fn unexpected(what: &str) -> Failure {
    let message = format!(
        "the attempt was answered with {what}; expected is one of Completed, Failed, Unavailable, Delivered, AwaitingInput, Deferred, \
         SubmitUnknown, Stopped and StoppedWith"
    );
    Failure::permanent("produce_returned_unexpected_type", message)
}
